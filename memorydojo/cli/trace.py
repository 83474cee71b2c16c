"""``memorydojo trace``: what a payload did in a run, as a page to look at."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError

if TYPE_CHECKING:
    from memorydojo.runs import Run


def trace(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", exists=True, help="The folder of a run (DIRECTORY/runs/ID), or a directory of saved runs."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file that ends in .html for one run (default: trace.html), else a directory for the table of runs "
            "and all their traces. Only pages of memorydojo are replaced.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Whose labels to show; overlap, the offline judge, if not given.")
    ] = None,
) -> None:
    """Write the trace of a run, or of all runs of a directory with a table of them, as self-contained HTML.

    Example: memorydojo trace runs/demo -o traces
    """
    from memorydojo.runs import load_runs
    from memorydojo.runs.load import Run
    from memorydojo.viewer import write_sweep, write_trace

    runs: list[Run] = [Run(path)] if (path / "run.json").exists() else list(load_runs(path))
    if not runs:
        raise InvalidInputError(f"there are no runs in {plain(str(path))}; make some with: memorydojo run")
    if output is None and len(runs) == 1:
        output = Path("trace.html")
    if output is None:
        raise InvalidInputError(
            f"{plain(str(path))} holds {counted(len(runs), 'run')}; give a directory for their pages with -o, or "
            f"the folder of one run, such as {plain(str(runs[0].directory))}"
        )
    if output.suffix.lower() in (".html", ".htm"):
        write_trace(_only(runs, path), output, judge=judge)
        typer.echo(f"wrote {plain(str(output))}")
        return
    if output.exists() and not output.is_dir():
        raise InvalidInputError(
            f"{plain(str(output))} is no directory; with -o give a file that ends in .html"
            f"{' for the page of one run' if len(runs) > 1 else ''}, or a directory"
        )
    *traces, index = write_sweep(runs, output, judge=judge)
    typer.echo(f"wrote {counted(len(traces), 'trace')}; open {plain(str(index))}")


def _only(runs: "list[Run]", path: Path) -> "Run":
    if len(runs) > 1:
        raise InvalidInputError(
            f"{plain(str(path))} holds {len(runs)} runs, and a file shows one; give the folder of one run, such as "
            f"{plain(str(runs[0].directory))}, or a directory with -o"
        )
    return runs[0]
