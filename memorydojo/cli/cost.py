"""``memorydojo metrics --cost``: what saved runs asked of models."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memorydojo._display import counted, plain
from memorydojo.cli._console import print_view
from memorydojo.errors import InvalidInputError
from memorydojo.view import Column, View

if TYPE_CHECKING:
    import pandas as pd

_WIDTH = 160


def print_cost(paths: list[Path], *, by: list[str] | None, prices: Path | None, form: str, output: Path | None) -> None:
    """Prints or writes the sums of all runs in ``paths``.

    Raises:
        MemoryDojoError: A path holds no saved runs, a file is wrong, or a column does not exist.
    """
    import pandas as pd

    from memorydojo.cost import read_prices, summarize_cost, usage_table
    from memorydojo.runs import load_runs
    from memorydojo.runs._files import saving

    for path in paths:
        if not path.is_dir():
            raise InvalidInputError(f"{path} is no directory of saved runs; --cost reads runs, not session tables")
    keys = [name.strip() for entry in by or [] for name in entry.split(",") if name.strip()]
    found = [load_runs(path) for path in paths]
    table = pd.concat([usage_table(runs) for runs in found], ignore_index=True)
    result = summarize_cost(table, by=keys or None, prices=read_prices(prices) if prices is not None else None)
    if form == "table":
        # Not every table of sums says it, and simulated runs may have asked no model at all.
        simulated = any(run.header.simulated for runs in found for run in runs)
        print_view(_view(result, simulated=simulated), width=_WIDTH)
        return
    text = result.to_csv(index=False) if form == "csv" else result.to_json(orient="records", indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    with saving(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {plain(str(output))}", err=True)


def _view(result: "pd.DataFrame", *, simulated: bool) -> View:
    from memorydojo.cost import KEYS

    unmetered = int(result["unmetered"].sum())
    if not unmetered:
        result = result.drop(columns="unmetered")
    names = [str(name) for name in result.columns]
    notes = []
    if unmetered:
        notes.append(
            f"{counted(unmetered, 'call')} without token counts: their tokens are in no sum, and their price is not "
            "known."
        )
    if simulated:
        notes.append("simulated: tokens of the simulator are estimated, four characters each.")
    return View(
        "Calls, tokens and time",
        [Column(name.replace("_", " "), number=name not in KEYS or name == "session") for name in names],
        [[_cell(value) for value in row] for row in result.itertuples(index=False)],
        notes=notes,
        simulated=simulated,
        repeated=sum(name in KEYS for name in names) or 1,
    )


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A price of a few calls is a fraction of a cent, and 0.00 would read as free.
        return "-" if value != value else f"{value:,.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else plain(str(value), 60)
