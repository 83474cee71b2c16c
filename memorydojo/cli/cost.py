"""``memorydojo metrics --cost``: what saved runs asked of models."""

import sys
from pathlib import Path

import typer

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError


def print_cost(paths: list[Path], *, by: list[str] | None, prices: Path | None, form: str, output: Path | None) -> None:
    """Prints or writes the sums of all runs in ``paths``.

    Raises:
        MemoryDojoError: A path holds no saved runs, a file is wrong, or a column does not exist.
    """
    import pandas as pd

    from memorydojo.cost import read_prices, summarize_cost, usage_table
    from memorydojo.runs import load_runs

    for path in paths:
        if not path.is_dir():
            raise InvalidInputError(f"{path} is no directory of saved runs; --cost reads runs, not session tables")
    keys = [name.strip() for entry in by or [] for name in entry.split(",") if name.strip()]
    table = pd.concat([usage_table(load_runs(path)) for path in paths], ignore_index=True)
    result = summarize_cost(table, by=keys or None, prices=read_prices(prices) if prices is not None else None)
    if form == "table":
        _show(result)
        return
    text = result.to_csv(index=False) if form == "csv" else result.to_json(orient="records", indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot write {output}: {error.strerror or error}") from error
    typer.echo(f"wrote {plain(str(output))}", err=True)


def _show(result: "object") -> None:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    assert isinstance(result, pd.DataFrame)
    unmetered = int(result["unmetered"].sum())
    if not unmetered:
        result = result.drop(columns="unmetered")
    shown = Table()
    for name in result.columns:
        shown.add_column(Text(str(name).replace("_", " ")), justify="left" if name in ("role", "model") else "right")
    for row in result.itertuples(index=False):
        shown.add_row(*(Text(_cell(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(shown)
    if unmetered:
        calls = "1 call" if unmetered == 1 else f"{unmetered} calls"
        typer.echo(f"{calls} without token counts: their tokens are in no sum, and their price is not known.")
    if "simulated" in result.columns and bool(result["simulated"].any()):
        typer.echo("simulated: tokens of the simulator are estimated, four characters each.")


def _cell(value: object) -> str:
    if isinstance(value, float):
        # A price of a few calls is a fraction of a cent, and 0.00 would read as free.
        return "-" if value != value else f"{value:,.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"
    return plain(str(value), 60)
