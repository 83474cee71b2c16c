"""``memorydojo experiments``: the paper's experiments, as plans to run or to copy."""

from pathlib import Path
from typing import Annotated

import typer

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError

app = typer.Typer(help="List, show and copy the experiments that ship.", no_args_is_help=True)


@app.command("list")
def list_experiments() -> None:
    """List the experiments; run one with `memorydojo sweep --experiment NAME`.

    Example: memorydojo experiments list
    """
    from memorydojo.planning import experiment, experiment_names

    for name in experiment_names():
        typer.echo(f"{name:<12} {plain(experiment(name).description)}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="For example table-1.")]) -> None:
    """Print the file of an experiment.

    Example: memorydojo experiments show table-1
    """
    from memorydojo.planning import experiment_text

    typer.echo(experiment_text(name), nl=False)


@app.command()
def copy(
    name: Annotated[str, typer.Argument(help="For example table-1.")],
    to: Annotated[Path | None, typer.Argument(help="A new file; NAME.toml here if not given.")] = None,
) -> None:
    """Copy the file of an experiment, to change it; nothing is overwritten.

    Example: memorydojo experiments copy table-1 mine.toml
    """
    from memorydojo.planning import experiment_text

    target = to or Path(f"{name}.toml")
    text = experiment_text(name)
    if target.exists():
        raise InvalidInputError(f"{plain(str(target))} exists; remove it or choose another place")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInputError(f"cannot write {plain(str(target))}: {error.strerror or error}") from error
    typer.echo(f"wrote {plain(str(target))}; run it with: memorydojo sweep {plain(str(target))}")
