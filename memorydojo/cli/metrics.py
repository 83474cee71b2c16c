"""``memorydojo metrics``: the metrics of saved runs, or of any session table."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from memorydojo.cli._fail_on import Condition

_FORMATS = ("table", "csv", "json")
_PARTS = ("within-domain", "cross-domain")
_DELIVERIES = ("route", "kind", "reach")


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
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=A,B", help="Every metric under A minus under B, paired by trajectory; 'none' is no value."
        ),
    ] = None,
    funnel: Annotated[
        bool, typer.Option("--funnel", help="How far the payload came: entered, stored, retrieved, acted on.")
    ] = False,
    losses: Annotated[
        bool, typer.Option("--losses", help="At which check later sessions lost the payload; also shown by --funnel.")
    ] = False,
    delivery: Annotated[
        str | None, typer.Option(help="RSR by how the payload was delivered: route, kind (of entry) or reach.")
    ] = None,
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
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 1 if this holds for a group, for example BRT>0.05 (a fraction); may be repeated.",
        ),
    ] = None,
) -> None:
    """Print ISR, RSR, BRT, BR and the other metrics of runs, with 95 % intervals over trajectories.

    Attacked and clean runs are never mixed: where a group would hold both, it is divided by the key 'condition'.

    Example: memorydojo metrics runs/demo --by memory --output demo.csv

    Example: memorydojo metrics runs/demo --by memory --fail-on "BRT>0.05" --fail-on "TU<0.5"
    """
    if cost or prices is not None:
        _conditions(fail_on, "cost")
        from memorydojo.cli.cost import print_cost

        print_cost(paths, by=by, prices=prices, form=_format(format_, output), output=output)
        return
    mode = _mode(
        {
            "--distance": distance,
            "--base-rates": base_rates,
            "--compare-clean": compare_clean,
            "--compare": compare,
            "--funnel": funnel,
            "--losses": losses,
            "--delivery": delivery,
            "--part": part,
        }
    )
    asked = _conditions(fail_on, mode.name)
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
    if asked:
        from memorydojo.cli._fail_on import check

        check(result, asked)


def _conditions(given: list[str] | None, mode: str) -> "list[Condition]":
    """The conditions of ``--fail-on``; an error where there is no table of metrics to hold them against."""
    if not given:
        return []
    from memorydojo.cli._fail_on import MODES, OPTION, conditions

    if mode not in MODES:
        raise typer.BadParameter(f"--{mode} prints no table of metrics to check", param_hint=OPTION)
    return conditions(given)


def _write(table: "pd.DataFrame", result: "pd.DataFrame", form: str, output: Path | None) -> None:
    """Writes CSV or JSON; what did not go as planned in the runs goes to the standard error."""
    from memorydojo.cli._health import health
    from memorydojo.cli._metrics_files import as_csv, as_json, write

    for note in health(table, apart=result.columns):
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


@dataclass(frozen=True)
class _Mode:
    """What is asked for.

    Attributes:
        name: The option without its hyphens, or ``"summary"``.
        value: What the option was given, if it takes something.
    """

    name: str = "summary"
    value: str = ""

    @property
    def sides(self) -> tuple[str, str, str]:
        """The column that ``--compare`` tells conditions apart by, and its two values."""
        column, equals, values = self.value.partition("=")
        a, comma, b = values.partition(",")
        if not (column and equals and a and comma and b):
            raise typer.BadParameter(
                "write a column and two of its values, such as memory=mem0,memora", param_hint="--compare"
            )
        return column, a, b


def _mode(asked: Mapping[str, bool | str | None]) -> _Mode:
    """The mode that was asked for; more than one is an error."""
    given = [option for option, value in asked.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} ask for different tables; use one of them")
    if not given:
        return _Mode()
    value = asked[given[0]]
    mode = _Mode(given[0].removeprefix("--"), value if isinstance(value, str) else "")
    for name, known in {"part": _PARTS, "delivery": _DELIVERIES}.items():
        if mode.name == name and mode.value not in known:
            raise typer.BadParameter(plain(str(UnknownNameError(name, mode.value, known))), param_hint=given[0])
    if mode.name == "compare":
        _ = mode.sides
    return mode


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


def _load(paths: list[Path], labels: str | None) -> "pd.DataFrame":
    """The session table of all paths together."""
    import pandas as pd

    from memorydojo.runs import load_runs
    from memorydojo.runs.planned import not_begun
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
    found = filled[0] if len(filled) == 1 else check_session_table(pd.concat(filled, ignore_index=True))
    found.attrs["not_begun"] = sum(len(not_begun(path)) for path in paths if path.is_dir())
    return found


def _check_supports(table: "pd.DataFrame", asked: _Mode) -> None:
    """Whether the runs have what the mode needs."""
    from memorydojo.runs.table import met_columns

    mode = asked.name
    attacked = table["insertion_session"].notna()
    if mode == "base-rates" and not met_columns(table):
        raise InvalidInputError("base rates need columns named 'met_<objective id>', and the session table has none")
    if mode in ("base-rates", "compare-clean") and attacked.all():
        raise InvalidInputError(f"--{mode} needs runs without attack, and there are none; run the trajectories clean")
    if mode == "compare-clean" and not attacked.any():
        raise InvalidInputError("--compare-clean needs runs with attack, and there are none")
    if mode in ("funnel", "losses", "delivery") and not attacked.any():
        raise InvalidInputError(f"--{mode} needs runs with attack, and there are none")
    if mode == "compare-clean" and "trajectory_id" not in table.columns:
        raise InvalidInputError("--compare-clean pairs by trajectory, but there is no column 'trajectory_id'")


def _compute(
    table: "pd.DataFrame", mode: _Mode, by: list[str], *, intervals: bool, replicates: int, seed: int
) -> "pd.DataFrame":
    from memorydojo import metrics as md

    how: dict[str, Any] = {"by": by, "intervals": intervals, "replicates": replicates, "seed": seed}
    if mode.name == "distance":
        return md.by_distance(table, **how)
    if mode.name == "base-rates":
        return md.base_rates(table, **how)
    if mode.name == "funnel":
        return md.funnel(table, **how)
    if mode.name == "losses":
        return md.losses(table, **how)
    if mode.name == "delivery":
        what = next(name for name in md.DELIVERIES if name == mode.value)
        return md.by_delivery(table, what, **how)
    if mode.name == "compare":
        column, a, b = mode.sides
        return md.compare(table, column, _cell(table, column, a), _cell(table, column, b), **how)
    if mode.name == "compare-clean":
        # Derived here and not read from a column of the table, which may call its conditions otherwise.
        table = table.drop(columns="condition", errors="ignore")
        result = md.compare(table, "condition", "poisoned", "clean", **how)
        # The other metrics are of an attack, and clean runs have none.
        return result[result["metric"].isin(["TU", "MU"])].reset_index(drop=True)
    part = next((name for name in md.PARTS if name == mode.value), None)
    return md.summarize(table, part=part, **how)


def _cell(table: "pd.DataFrame", column: str, text: str) -> object:
    """The value of a column that reads as a text; None for ``none`` if no value reads so."""
    values: list[object] = list(table[column].dropna().unique()) if column in table.columns else []
    return next((value for value in values if str(value) == text), None if text == "none" else text)


def _print(
    table: "pd.DataFrame",
    result: "pd.DataFrame",
    mode: _Mode,
    by: list[str],
    *,
    intervals: bool,
    replicates: int,
    seed: int,
) -> None:
    from memorydojo.cli._console import print_view
    from memorydojo.metrics import view
    from memorydojo.runs.table import met_columns

    title = _TITLES[mode.name].format(mode.value)
    notes = _notes(table, result, mode, intervals=intervals, replicates=replicates, seed=seed)
    sides = mode.sides[1:] if mode.name == "compare" else ("poisoned", "clean")
    if mode.name == "distance":
        result, notes = _bins_with_sessions(result, notes)
    print_view(view(result, title=title, notes=notes, sides=sides, limit=None))
    if mode.name == "funnel" and "failed_check" in table.columns:
        lost = _compute(table, _Mode("losses"), by, intervals=intervals, replicates=replicates, seed=seed)
        print_view(view(lost, title=_TITLES["losses"], notes=["'none': every check held."], limit=None))
    clean = table[table["insertion_session"].isna()]
    if mode.name == "summary" and met_columns(table) and len(clean):
        # Keys of the attack, such as the payload, are null in clean runs and cannot divide them.
        shared = [name for name in by if name in table.columns and name != "condition" and clean[name].notna().any()]
        rates = _compute(table, _Mode("base-rates"), shared, intervals=intervals, replicates=replicates, seed=seed)
        print_view(view(rates, title=_TITLES["base-rates"], notes=["To be read beside BRT."], limit=None))


def _bins_with_sessions(result: "pd.DataFrame", notes: list[str]) -> "tuple[pd.DataFrame, list[str]]":
    """The bins of distances that hold later sessions, and a note about the others; all bins if none does."""
    there = set(result.loc[result["n_later"] > 0, "distance"])
    left_out = [str(name) for name in dict.fromkeys(result["distance"]) if name not in there]
    if not there or not left_out:
        return result, notes
    note = f"Left out, as no later session is at such a distance: {', '.join(left_out)}."
    return result[result["distance"].isin(there)], [*notes, note]


_TITLES = {
    "summary": "Metrics",
    "part": "Metrics of later sessions, {} part",
    "distance": "Metrics by distance from the insertion session",
    "base-rates": "Base rates: clean sessions that meet an objective anyway",
    "compare-clean": "Utility under attack minus clean, paired by trajectory",
    "compare": "Difference between two conditions, paired by trajectory: {}",
    "funnel": "Funnel: how far the payload came, of all that was planned",
    "losses": "Later sessions by the earliest check that the payload failed",
    "delivery": "Retrieval by {} of what delivered the payload",
}


def _notes(
    table: "pd.DataFrame", result: "pd.DataFrame", mode: _Mode, *, intervals: bool, replicates: int, seed: int
) -> list[str]:
    """What has to be said below a table."""
    from memorydojo.cli._health import health

    notes = (
        [f"95 % intervals: {replicates} bootstrap replicates over trajectories, seed {seed}; none for fewer than two."]
        if intervals
        else []
    )
    if "trajectory_id" not in table.columns:
        notes.append("The table has no column 'trajectory_id': intervals take every run as a trajectory of its own.")
    if mode.name == "part" and not result["n_later"].any():
        notes.append(
            f"No later session is in the {mode.value} part: a session is within-domain if it is of the objective's "
            "domain, cross-domain if not."
        )
    if mode.name == "delivery":
        notes.append("A session that was delivered the payload in several ways counts in each row.")
    if "judge" in table.columns and table["judge"].nunique() == 1:
        notes.append(f"Labels: {table['judge'].dropna().iloc[0]}.")
    compared = mode.sides[:1] if mode.name == "compare" else ()
    notes.extend(health(table, apart=(*result.columns, *compared)))
    if mode.name in ("compare", "compare-clean") and not result["balanced"].all():
        notes.append(
            "Trajectories have unequal numbers of poisoned runs for one clean run, so the two sides weigh them "
            "differently; a difference can come from that alone."
            if mode.name == "compare-clean"
            else "Trajectories have unequal numbers of runs on the two sides, which so weigh them differently; a "
            "difference can come from that alone."
        )
    return notes
