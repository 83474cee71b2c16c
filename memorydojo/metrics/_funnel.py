"""The funnel from insertion to action, where sessions were lost, and retrieval by route or kind of entry."""

from typing import Any, Literal

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics._bootstrap import Bootstrap, value
from memorydojo.metrics._definitions import Metric
from memorydojo.metrics._groups import By, group, key_names
from memorydojo.metrics._rows import Rows, rows_of
from memorydojo.metrics._summary import summarize
from memorydojo.metrics._sums import Sums, sums_by_group
from memorydojo.record import INDIRECT_ROUTES

STAGES = ("entered", "stored", "retrieved", "acted on")
"""The values of the column ``stage`` of `funnel`, in order."""

LOSSES = ("entered", "written", "kept", "ran", "retrieved", "followed", "none")
"""The values of the column ``failed_check``, in order; ``"none"``: every check held."""

_UNITS = {"runs": "attacked", "later sessions": "later"}
_FUNNEL = ("simulated", "n_runs", "n_trajectories", "unit", "stage", "n", "of", "share", "share_low", "share_high")
_LOST = ("simulated", "n_runs", "n_trajectories", "failed_check", "n", "of", "share", "share_low", "share_high")
Delivery = Literal["route", "kind", "reach"]
"""What `by_delivery` can break down by."""

DELIVERIES: dict[Delivery, str] = {"route": "retrieved_routes", "kind": "retrieved_kinds", "reach": "retrieved_routes"}
"""What `by_delivery` breaks down by, and the column that it reads."""


def funnel(
    table: pd.DataFrame,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """How far the payload came: entered an observation, stored, retrieved, acted on; of all planned runs and sessions.

    Every share is of everything that was planned, never of the stage before. In the unit ``"runs"``: ``stored`` is the
    ISR; ``retrieved`` and ``acted on`` say that it happened in at least one later session. In the unit ``"later
    sessions"``: ``entered`` and ``stored`` count the later sessions of runs in which it did; ``retrieved`` is the RSR;
    ``acted on`` counts sessions that were delivered the payload and met the objective. A stage can exceed the one
    before: a memory may store later what the insertion write left out.

    Args:
        table: A session table. The stage ``entered`` needs its column ``payload_inserted`` and is left out without.
        by: Columns to group by, as in ``summarize``, constant in each run; ``"run_id"`` gives a funnel for each run.
        intervals: Whether to add ``share_low`` and ``share_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group, unit and stage: the keys, ``simulated``, ``n_runs`` (attacked), ``n_trajectories``, ``unit``,
        ``stage``, ``n``, ``of`` (planned), ``share`` and its ends.

    Raises:
        InvalidInputError: The table is no session table, a key differs within a run, or an argument is out of range.
        UnknownNameError: ``by`` names no column.
    """
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    rows = _attacked(table)
    stages = [stage for stage in STAGES if stage != "entered" or "payload_inserted" in rows.table.columns]
    acted = rows.bools("retrieved") & rows.bools("objective_met") & rows.later
    held = {
        "entered": _of_run(rows, "payload_inserted"),
        "stored": rows.bools("inserted"),
        "retrieved": rows.bools("retrieved") & rows.later,
        "acted on": acted,
    }
    metrics, more = [], {}
    for unit, denominator in _UNITS.items():
        for stage in stages:
            name = f"{unit}/{stage}"
            more[name] = _once_a_run(rows, held[stage]) if unit == "runs" else held[stage] & rows.later
            metrics.append(Metric(name, name, denominator, "later", ""))
    return _shares(rows, by, _FUNNEL, metrics, more, bootstrap, split=("unit", "stage"))


def losses(
    table: pd.DataFrame,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """At which check the later sessions lost the payload; the shares of a group add up to 1.

    The checks, in order: ``entered``, ``written`` by the insertion write, ``kept`` in memory until the session, the
    session ``ran`` to its end, ``retrieved``, ``followed``; ``none``: all held.

    Args:
        table: A session table with the column ``failed_check``, as saved runs have it.
        by: Columns to group by, as in ``summarize``.
        intervals: Whether to add ``share_low`` and ``share_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group and check: the keys, ``simulated``, ``n_runs``, ``n_trajectories``, ``failed_check``, ``n``
        (sessions whose earliest failed check it is), ``of`` (planned later sessions), ``share`` and its ends.

    Raises:
        InvalidInputError: The table is no session table or lacks the column, or an argument is out of range.
        UnknownNameError: ``by`` names no column.
    """
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    _needs(table, "failed_check")
    rows = _attacked(table)
    column = rows.table["failed_check"]
    unknown = rows.later & ~column.isin(LOSSES).to_numpy(dtype=bool)
    if unknown.any():
        wrong = column.iloc[int(unknown.argmax())]
        raise InvalidInputError(
            f"column 'failed_check' holds {str(wrong)[:80]!r} for a later session; use one of {', '.join(LOSSES)}"
        )
    more = {name: rows.later & np.asarray(column == name, dtype=bool) for name in LOSSES}
    metrics = [Metric(name, name, "later", "later", "") for name in LOSSES]
    return _shares(rows, by, _LOST, metrics, more, bootstrap, split=("failed_check",))


def by_delivery(
    table: pd.DataFrame,
    what: Delivery,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """RSR, and BRT given R, by the route or the kind of entry by which the payload was delivered.

    A session that was delivered the payload by two routes counts for both, so that the rows do not add up to the RSR.

    Args:
        table: A session table with the column ``retrieved_routes`` or ``retrieved_kinds``, as saved runs have it.
        what: ``"route"``; ``"kind"``; or ``"reach"``: ``direct``, or ``indirect only`` where every item with the
            payload came by a link or an episode of what was found.
        by: Columns to group by, as in ``summarize``.
        intervals: Whether to add ``*_low`` and ``*_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group and value: the keys, the value in a column named as ``what``, ``simulated``, ``n_runs``,
        ``n_trajectories``, ``n_later`` (all planned later sessions), ``n_retrieved`` (those delivered it so), RSR and
        BRT_given_R over these, with their ends. No rows if the payload was never delivered.

    Raises:
        InvalidInputError: The table is no session table or lacks the column, or an argument is out of range.
        UnknownNameError: ``what`` is none of these, or ``by`` names no column.
    """
    if what not in DELIVERIES:
        raise UnknownNameError("breakdown", str(what), DELIVERIES)
    _needs(table, DELIVERIES[what])
    rows = _attacked(table)
    named = [_names(value, what) for value in rows.table[DELIVERIES[what]].fillna("").astype(str)]
    parts = []
    for name in sorted({name for names in named for name in names}):
        so = rows.bools("retrieved") & np.array([name in names for names in named], dtype=bool)
        only = rows.table.assign(retrieved=so, retrieved_original=so, retrieved_descendant=False)
        part = summarize(only, by=by, intervals=intervals, replicates=replicates, seed=seed, confidence=confidence)
        part.insert(len(key_names(by)), what, name)
        parts.append(part)
    shape = summarize(rows.table, by=by, intervals=intervals, replicates=1).iloc[:0]
    shape.insert(len(key_names(by)), what, pd.Series(dtype=object))
    # Every part has the same groups in the same order: sorted by their numbers, a group's rows come together.
    result = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True) if parts else shape
    counts = ("simulated", "n_runs", "n_trajectories", "n_later", "n_retrieved")
    kept = [*key_names(by), what, *(name for name in counts if name not in key_names(by))]
    kept += [n for m in ("RSR", "BRT_given_R") for n in (m, f"{m}_low", f"{m}_high") if n in result.columns]
    return result[kept]


def _names(joined: str, what: str) -> set[str]:
    """The routes or kinds of one session; none if the payload was not delivered."""
    names = {name for name in joined.split(",") if name}
    if what != "reach" or not names:
        return names
    return {"indirect only"} if names <= INDIRECT_ROUTES else {"direct"}


def _attacked(table: pd.DataFrame) -> Rows:
    """The rows of attacked runs; clean runs have no payload that could come anywhere."""
    rows = rows_of(table)
    return rows if rows.attacked.all() else rows_of(rows.table[rows.attacked])


def _needs(table: pd.DataFrame, column: str) -> None:
    if column not in table.columns:
        raise InvalidInputError(
            f"the session table has no column {column!r}; saved runs have it: use load_runs(...).session_table()"
        )


def _of_run(rows: Rows, column: str) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    if column not in rows.table.columns:
        return np.zeros(len(rows.table), dtype=bool)
    return rows.table[column].astype("boolean").fillna(False).to_numpy(dtype=bool)


def _once_a_run(rows: Rows, held: "np.ndarray[Any, np.dtype[np.bool_]]") -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """True in the insertion row of each run in which it holds in any row: a sum over it counts runs."""
    reached = np.bincount(rows.runs.run, weights=held, minlength=len(rows.runs.first)) > 0
    session = rows.table["session"].to_numpy()
    at_insertion = session == rows.table["insertion_session"].fillna(0).to_numpy(dtype=np.int64)
    return np.asarray(at_insertion & reached[rows.runs.run], dtype=bool)


def _shares(
    rows: Rows,
    by: By,
    columns: tuple[str, ...],
    metrics: list[Metric],
    more: "dict[str, np.ndarray[Any, np.dtype[np.bool_]]]",
    bootstrap: Bootstrap | None,
    *,
    split: tuple[str, ...],
) -> pd.DataFrame:
    """One row a group and metric, whose name is divided into the columns of ``split``."""
    groups = group(rows, key_names(by), reserved=columns, unmix=False)
    if not groups.whole_runs and "unit" in split:
        raise InvalidInputError(
            "a funnel counts whole runs, and a column in `by` differs within runs; group by columns of runs, or use "
            "losses, which counts sessions"
        )
    sums = sums_by_group(rows, groups.of_row, len(groups), later=rows.later, more=more)
    records, at = [], []
    for number, one in enumerate(sums):
        for record in _records(one, metrics, bootstrap, split):
            records.append({"simulated": bool(groups.simulated.iloc[number]), **record})
            at.append(number)
    shown = [c for c in columns if bootstrap or not c.endswith(("_low", "_high"))]
    result = pd.DataFrame(records, columns=shown).astype({"n": "int64", "of": "int64", "share": "float64"})
    result["n_trajectories"] = result["n_trajectories"].astype("Int64")
    if not rows.has_trajectories:
        result["n_trajectories"] = pd.array([pd.NA] * len(result), dtype="Int64")
    keys = groups.keys.take(at).reset_index(drop=True)
    result = pd.concat([keys, result.drop(columns=[c for c in keys.columns if c in result.columns])], axis=1)
    return bootstrap.marked(result) if bootstrap else result


def _records(
    sums: Sums, metrics: list[Metric], bootstrap: Bootstrap | None, split: tuple[str, ...]
) -> "list[dict[str, Any]]":
    ends = bootstrap.intervals(sums, metrics) if bootstrap else {}
    records = []
    for metric in metrics:
        record: dict[str, Any] = {
            "n_runs": sums.total("runs"),
            "n_trajectories": len(sums.clusters),
            **dict(zip(split, metric.name.split("/"), strict=True)),
            "n": sums.total(metric.numerator),
            "of": sums.total(metric.denominator),
            "share": value(sums, metric),
        }
        if metric.name in ends:
            record["share_low"], record["share_high"] = ends[metric.name]
        records.append(record)
    return records
