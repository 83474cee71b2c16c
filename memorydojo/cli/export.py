"""``memorydojo export``: saved runs for other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from memorydojo.runs import Run

_SUFFIXES = {".eval": "inspect", ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
_FORMATS = (*_SUFFIXES.values(), "agentdojo")
_TABLES = ("sessions", "usage", "labels")


def export(
    path: Annotated[
        Path, typer.Argument(metavar="RUNS", exists=True, file_okay=False, help="A directory of saved runs.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file, or for agentdojo the directory. Only exports are replaced."),
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", help="inspect, agentdojo, csv, jsonl or parquet; default: what --output ends in."),
    ] = None,
    table: Annotated[
        str, typer.Option(help="Of csv, jsonl and parquet: sessions, usage (calls and tokens) or labels.")
    ] = "sessions",
    labels: Annotated[
        str | None, typer.Option(help="Whose labels to use: a judge's model; default: the offline judge's.")
    ] = None,
) -> None:
    """Write saved runs as an Inspect log, AgentDojo traces, or a table.

    Example: memorydojo export runs/demo -o demo.eval
    """
    form = _form(format_, output)
    if table not in _TABLES:
        raise typer.BadParameter(plain(str(UnknownNameError("table", table, _TABLES))), param_hint="--table")
    if table != "sessions" and form in ("inspect", "agentdojo"):
        raise typer.BadParameter(f"--format {form} has no tables", param_hint="--table")
    from memorydojo.runs import load_runs

    runs = load_runs(path)
    if not len(runs):
        raise InvalidInputError(f"there are no runs in {plain(str(path))}; make some with: memorydojo run")
    _write(runs, output, form, table, labels)
    simulated = sum(run.header.simulated for run in runs)
    note = f"; {'all' if simulated == len(runs) else simulated} simulated" if simulated else ""
    typer.echo(f"wrote {plain(str(output))} ({counted(len(runs), 'run')}{note})")


def _write(runs: "Sequence[Run]", output: Path, form: str, table: str, labels: str | None) -> None:
    from memorydojo import export as md
    from memorydojo.cost import usage_table
    from memorydojo.judging.labels import OFFLINE_JUDGE
    from memorydojo.runs.rows import session_table

    if form == "inspect":
        md.write_inspect(runs, output, judge=labels)
    elif form == "agentdojo":
        md.write_agentdojo(runs, output, judge=labels)
    elif table == "sessions":
        md.write_table(session_table(runs, OFFLINE_JUDGE if labels is None else labels), output)
    else:
        md.write_table(usage_table(runs) if table == "usage" else md.labels_table(runs, labels), output)


def _form(given: str | None, output: Path) -> str:
    if given is not None and given not in _FORMATS:
        raise typer.BadParameter(plain(str(UnknownNameError("format", given, _FORMATS))), param_hint="--format")
    suffix = output.suffix.lower()
    form = given or _SUFFIXES.get(suffix)
    if form is None:
        raise typer.BadParameter("say which: inspect, agentdojo, csv, jsonl or parquet", param_hint="--format")
    if form != "agentdojo" and _SUFFIXES.get(suffix) != form:
        wanted = next(end for end, name in _SUFFIXES.items() if name == form)
        raise typer.BadParameter(f"the file of --format {form} must end in {wanted}", param_hint="--output")
    return form
