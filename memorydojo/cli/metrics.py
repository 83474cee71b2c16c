"""``memorydojo metrics``: the metrics of saved runs, or of any session table."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

_FORMATS = ("table", "csv", "json")
_PARTS = ("within-domain", "cross-domain")


def metrics(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            exists=True,
            help="Directories of saved runs, or session tables (.csv, .json, .jsonl, .parquet). Several are pooled.",
        ),
    ],
    by: Annotated[
        list[str] | None, typer.Option(help="Column to group by; repeat it or separate names by commas.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Only later sessions of one part: within-domain or cross-domain.")
    ] = None,
    distance: Annotated[bool, typer.Option("--distance", help="RSR and BRT by distance from the insertion.")] = False,
    base_rates: Annotated[
        bool, typer.Option("--base-rates", help="How often clean runs meet each objective anyway.")
    ] = False,
    compare_clean: Annotated[
        bool, typer.Option("--compare-clean", help="Utility under attack minus clean, paired by trajectory.")
    ] = False,
    cost: Annotated[
        bool, typer.Option("--cost", help="Calls, tokens, seconds, retries and errors instead of metrics.")
    ] = False,
    prices: Annotated[
        Path | None, typer.Option(help="A TOML file of prices by model, for --cost; see docs/models.md.")
    ] = None,
    intervals: Annotated[bool, typer.Option("--intervals/--no-intervals", help="Print 95 % intervals.")] = True,
    replicates: Annotated[int, typer.Option(min=1, help="Replicates of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    labels: Annotated[
        str | None,
        typer.Option(help="Whose labels of saved runs to use: a judge's model; default: the offline judge's."),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, csv or json; default: table, or what --output ends in.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write to this .csv or .json file. An existing file is replaced only if it holds metrics."),
    ] = None,
) -> None:
    """Print ISR, RSR, BRT, BR and the other metrics of runs, with 95 % intervals over trajectories.

    Attacked and clean runs are never mixed: where a group would hold both, it is divided by the key 'condition'.
    """
    if cost or prices is not None:
        from memorydojo.cli.cost import print_cost

        print_cost(paths, by=by, prices=prices, form=_format(format_, output), output=output)
        return
    mode = _mode(part=part, distance=distance, base_rates=base_rates, compare_clean=compare_clean)
    form = _format(format_, output)
    keys = [name.strip() for entry in by or [] for name in entry.split(",") if name.strip()]
    if output is not None:
        _check_output(output)
    try:
        table = _load(paths, labels)
        _check_supports(table, mode)
    except MemoryDojoError as error:
        typer.echo(f"error: {plain(str(error))}", err=True)
        raise typer.Exit(1) from error
    try:
        result = _compute(table, mode, keys, intervals=intervals, replicates=replicates, seed=seed)
    except (UnknownNameError, InvalidInputError) as error:
        raise typer.BadParameter(plain(str(error))) from error
    if form == "table":
        _print(table, result, mode, keys, intervals=intervals, replicates=replicates, seed=seed)
    else:
        _write(table, result, form, output)


def _write(table: "pd.DataFrame", result: "pd.DataFrame", form: str, output: Path | None) -> None:
    """Writes CSV or JSON; what did not go as planned in the runs goes to the standard error."""
    from memorydojo.cli._metrics_files import as_csv, as_json, write
    from memorydojo.cli._metrics_view import health

    for note in health(table):
        typer.echo(f"note: {note}", err=True)
    text = as_csv(result) if form == "csv" else as_json(result)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        write(output, text)
    except OSError as error:
        typer.echo(f"error: cannot write {plain(str(output))}: {plain(error.strerror or str(error))}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"wrote {plain(str(output))}", err=True)


def _mode(*, part: str | None, distance: bool, base_rates: bool, compare_clean: bool) -> str:
    """What is asked for: ``"summary"``, the name of a part, ``"distance"``, ``"base-rates"`` or ``"compare-clean"``."""
    if part is not None and part not in _PARTS:
        raise typer.BadParameter(plain(str(UnknownNameError("part", part, _PARTS))), param_hint="--part")
    asked = {"--distance": distance, "--base-rates": base_rates, "--compare-clean": compare_clean}
    modes = [option for option, on in asked.items() if on] + (["--part"] if part else [])
    if len(modes) > 1:
        raise typer.BadParameter(f"{' and '.join(modes)} ask for different tables; use one of them")
    if part:
        return part
    return modes[0].removeprefix("--") if modes else "summary"


def _format(given: str | None, output: Path | None) -> str:
    if given is not None and given not in _FORMATS:
        raise typer.BadParameter(plain(str(UnknownNameError("format", given, _FORMATS))), param_hint="--format")
    if output is None:
        return given or "table"
    suffix = output.suffix.lower().removeprefix(".")
    if suffix not in ("csv", "json"):
        raise typer.BadParameter(f"{plain(str(output))} must end in .csv or .json", param_hint="--output")
    if given not in (None, suffix):
        raise typer.BadParameter(f"--format {given} contradicts --output {plain(str(output))}")
    return suffix


def _check_output(output: Path) -> None:
    from memorydojo.cli._metrics_files import may_replace

    if output.exists() and not may_replace(output):
        raise typer.BadParameter(
            f"{plain(str(output))} exists and holds something else than metrics; choose another name or remove it",
            param_hint="--output",
        )
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {plain(str(output.parent))}", param_hint="--output")


def _load(paths: list[Path], labels: str | None) -> "pd.DataFrame":
    """The session table of all paths together."""
    import pandas as pd

    from memorydojo.runs import load_runs
    from memorydojo.runs.table import check_session_table, read_session_table

    tables: list[pd.DataFrame] = []
    origin: dict[str, Path] = {}
    for path in paths:
        table = load_runs(path).session_table(labels) if path.is_dir() else read_session_table(path)
        for run_id in table["run_id"].unique():
            if run_id in origin:
                raise InvalidInputError(
                    f"run {run_id!r} is in {str(origin[run_id])!r} and in {str(path)!r}; a run must not count twice, "
                    "so give only one of them"
                )
            origin[run_id] = path
        tables.append(table)
    if not origin:
        raise InvalidInputError(f"there are no runs in {', '.join(repr(str(path)) for path in paths)}")
    filled = [table for table in tables if len(table)]
    return filled[0] if len(filled) == 1 else check_session_table(pd.concat(filled, ignore_index=True))


def _check_supports(table: "pd.DataFrame", mode: str) -> None:
    """Whether the runs have what the mode needs."""
    from memorydojo.runs.table import met_columns

    attacked = table["insertion_session"].notna()
    if mode == "base-rates" and not met_columns(table):
        raise InvalidInputError("base rates need columns named 'met_<objective id>', and the session table has none")
    if mode in ("base-rates", "compare-clean") and attacked.all():
        raise InvalidInputError(f"--{mode} needs runs without attack, and there are none; run the trajectories clean")
    if mode == "compare-clean" and not attacked.any():
        raise InvalidInputError("--compare-clean needs runs with attack, and there are none")
    if mode == "compare-clean" and "trajectory_id" not in table.columns:
        raise InvalidInputError("--compare-clean pairs by trajectory, but there is no column 'trajectory_id'")


def _compute(
    table: "pd.DataFrame", mode: str, by: list[str], *, intervals: bool, replicates: int, seed: int
) -> "pd.DataFrame":
    from memorydojo.metrics import PARTS, base_rates, by_distance, compare, summarize

    if mode == "distance":
        return by_distance(table, by=by, intervals=intervals, replicates=replicates, seed=seed)
    if mode == "base-rates":
        return base_rates(table, by=by, intervals=intervals, replicates=replicates, seed=seed)
    if mode == "compare-clean":
        # Derived here and not read from a column of the table, which may call its conditions otherwise.
        table = table.drop(columns="condition", errors="ignore")
        result = compare(
            table, "condition", "poisoned", "clean", by=by, intervals=intervals, replicates=replicates, seed=seed
        )
        # The other metrics are of an attack, and clean runs have none.
        return result[result["metric"].isin(["TU", "MU"])].reset_index(drop=True)
    part = next((name for name in PARTS if name == mode), None)
    return summarize(table, by=by, part=part, intervals=intervals, replicates=replicates, seed=seed)


def _print(
    table: "pd.DataFrame",
    result: "pd.DataFrame",
    mode: str,
    by: list[str],
    *,
    intervals: bool,
    replicates: int,
    seed: int,
) -> None:
    from memorydojo.cli._metrics_view import health, print_comparison, print_groups, print_rows
    from memorydojo.runs.table import met_columns

    titles = {
        "summary": "Metrics",
        "distance": "Metrics by distance from the insertion session",
        "base-rates": "Base rates: clean sessions that meet an objective anyway",
        "compare-clean": "Utility under attack minus clean, paired by trajectory",
    }
    title = titles.get(mode, f"Metrics of later sessions, {mode} part")
    notes = (
        [f"95 % intervals: {replicates} bootstrap replicates over trajectories, seed {seed}; none for fewer than two."]
        if intervals
        else []
    )
    if "trajectory_id" not in table.columns:
        notes.append("The table has no column 'trajectory_id': intervals take every run as a trajectory of its own.")
    if mode in _PARTS and not result["n_later"].any():
        notes.append(
            f"No later session is in the {mode} part: a session is within-domain if it is of the objective's domain, "
            "cross-domain if not."
        )
    if "judge" in table.columns and table["judge"].nunique() == 1:
        notes.append(f"Labels: {table['judge'].dropna().iloc[0]}.")
    notes.extend(health(table))
    if mode == "compare-clean":
        if not result["balanced"].all():
            notes.append(
                "Trajectories have unequal numbers of poisoned runs for one clean run, so the two sides weigh them "
                "differently; a difference can come from that alone."
            )
        print_comparison(result, title=title, notes=notes)
        return
    if mode == "base-rates":
        print_rows(result, title=title, notes=notes)
        return
    print_groups(result, title=title, notes=notes)
    clean = table[table["insertion_session"].isna()]
    if mode == "summary" and met_columns(table) and len(clean):
        # Keys of the attack, such as the payload, are null in clean runs and cannot divide them.
        shared = [name for name in by if name in table.columns and name != "condition" and clean[name].notna().any()]
        rates = _compute(table, "base-rates", shared, intervals=intervals, replicates=replicates, seed=seed)
        print_rows(rates, title=titles["base-rates"], notes=["To be read beside BRT."])
