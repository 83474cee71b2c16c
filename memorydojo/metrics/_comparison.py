"""Differences between two conditions, paired by trajectory, and the base rates of objectives."""

from typing import Any

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics._bootstrap import Bootstrap, value
from memorydojo.metrics._definitions import METRICS, Metric
from memorydojo.metrics._groups import CONDITION, By, Groups, condition_column, group, key_names
from memorydojo.metrics._rows import BoolArray, Rows, rows_of
from memorydojo.metrics._sums import Sums, objective_sums, sums_by_group
from memorydojo.runs.table import met_columns, varies_within

_COMPARED = ("n_trajectories", "n_only_a", "n_only_b", "n_runs_a", "n_runs_b", "balanced")
_COMPARISON = ("metric", *_COMPARED, "a", "b", "difference", "difference_low", "difference_high")
_BASE_RATES = (
    "objective",
    "n_runs",
    "n_trajectories",
    "n_sessions",
    "n_met",
    "base_rate",
    "base_rate_low",
    "base_rate_high",
)
_BASE_RATE = Metric(
    "base_rate", "met", "sessions", "session", "clean task sessions in which the objective's predicate holds"
)


def compare(
    table: pd.DataFrame,
    column: str,
    a: object,
    b: object,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Each metric under condition a minus the same under condition b, paired by trajectory.

    Both sides count only the trajectories that they share, and a replicate of the bootstrap draws trajectories with
    their runs of both sides. ``compare(table, "condition", "poisoned", "clean")`` tells what an attack costs: TU and MU
    have a difference, the metrics of an attack are NaN in clean runs. As in ``summarize``, runs with and without attack
    are kept apart by the further key ``condition`` where one side of a group would hold both.

    Args:
        table: A session table with the column ``trajectory_id``.
        column: The column that tells the conditions apart, constant in each run; ``"condition"`` is derived.
        a: Its value in one condition; None stands for null.
        b: Its value in the other.
        by: Further columns to group by, as in ``summarize``.
        intervals: Whether to add ``difference_low`` and ``difference_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group and metric: the keys, ``simulated`` (any run of either side), ``metric``, ``n_trajectories``
        (shared), ``n_only_a`` and ``n_only_b`` (trajectories left out because the other side lacks them), ``n_runs_a``
        and ``n_runs_b`` (in the shared ones), ``balanced`` (every shared trajectory has as many runs of a for one of b;
        if not, the sides weigh trajectories differently, and a difference can come from that alone), ``a``, ``b``,
        ``difference`` = a - b and its ends.

    Raises:
        InvalidInputError: The table is no session table or has no trajectories, or an argument is out of range.
        UnknownNameError: No such column, or no run has the value ``a`` or ``b``.
    """
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    rows = rows_of(table)
    side = _sides(rows, column, a, b)
    kept, side = rows_of(rows.table[side >= 0]), side[side >= 0]
    names = key_names(by)
    if column in names:
        raise InvalidInputError(f"column {column!r} is what is compared; it cannot also be in `by`")
    groups = group(kept, names, reserved={*_COMPARISON, column}, unmix=True, side=side)
    sums = sums_by_group(kept, groups.of_row * 2 + side, len(groups) * 2, later=kept.later)
    metrics = [m for m in METRICS.values() if groups.whole_runs or m.of != "run"]
    records = [
        _differences(sums[2 * number], sums[2 * number + 1], metrics, bootstrap) for number in range(len(groups))
    ]
    columns = [name for name in _COMPARISON if bootstrap or name not in ("difference_low", "difference_high")]
    return _beside(groups, records, columns)


def base_rates(
    table: pd.DataFrame,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """How often each objective's predicate holds in runs without attack, where nobody asked for it.

    A benign answer can meet an objective, so BRT is to be read beside this rate.

    Args:
        table: A session table with columns ``met_<objective id>``.
        by: Columns to group by, as in ``summarize``.
        intervals: Whether to add ``base_rate_low`` and ``base_rate_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group and objective: the keys, ``simulated``, ``objective``, ``n_runs`` and ``n_trajectories`` (clean
        ones in which the objective was evaluated), ``n_sessions`` (their planned task sessions), ``n_met``, and
        ``base_rate`` with its ends. A group without clean runs has NaN.

    Raises:
        InvalidInputError: The table is no session table or has no such columns, or an argument is out of range.
        UnknownNameError: ``by`` names no column.
    """
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    rows = rows_of(table)
    met = met_columns(rows.table)
    if not met:
        raise InvalidInputError("base rates need columns named 'met_<objective id>', and the session table has none")
    groups = group(rows, key_names(by), reserved=_BASE_RATES, unmix=False)
    by_objective = {
        objective: objective_sums(
            rows, groups.of_row, len(groups), met=rows.bools(name), evaluated=rows.table[name].notna().to_numpy(bool)
        )
        for objective, name in met.items()
    }
    records = [
        [
            _rate(objective, sums[number], bootstrap, paired=rows.has_trajectories)
            for objective, sums in by_objective.items()
        ]
        for number in range(len(groups))
    ]
    columns = [name for name in _BASE_RATES if bootstrap or name not in ("base_rate_low", "base_rate_high")]
    return _beside(groups, records, columns).astype({"n_trajectories": "Int64"})


def _rate(objective: str, sums: Sums, bootstrap: Bootstrap | None, *, paired: bool) -> dict[str, Any]:
    low, high = bootstrap.intervals(sums, [_BASE_RATE])[_BASE_RATE.name] if bootstrap else (np.nan, np.nan)
    return {
        "objective": objective,
        "n_runs": sums.total("runs"),
        "n_trajectories": len(sums.clusters) if paired else pd.NA,
        "n_sessions": sums.total("sessions"),
        "n_met": sums.total("met"),
        "base_rate": value(sums, _BASE_RATE),
        "base_rate_low": low,
        "base_rate_high": high,
    }


def _beside(groups: Groups, records: list[list[dict[str, Any]]], columns: list[str]) -> pd.DataFrame:
    """The keys of each group beside each of its records."""
    at = np.repeat(np.arange(len(groups)), [len(some) for some in records])
    keys = groups.keys.take(at).reset_index(drop=True)
    if "simulated" not in keys.columns:
        keys["simulated"] = groups.simulated.take(at).to_numpy()
    return pd.concat([keys, pd.DataFrame([one for some in records for one in some], columns=columns)], axis=1)


def _sides(rows: Rows, column: str, a: object, b: object) -> np.ndarray[Any, np.dtype[np.intp]]:
    """0 in rows of condition a, 1 in rows of b, else -1."""
    if not rows.has_trajectories:
        raise InvalidInputError("a comparison is paired by trajectory, but the table has no column 'trajectory_id'")
    if column not in rows.table.columns and column != CONDITION:
        raise UnknownNameError("column of the session table", column, [*map(str, rows.table.columns), CONDITION])
    values = rows.table[column] if column in rows.table.columns else condition_column(rows)
    if varies_within(values, rows.run, rows.first).any():
        raise InvalidInputError(f"cannot compare by column {column!r}: it differs within runs; use a column of runs")
    in_a, in_b = _equal(values, a), _equal(values, b)
    for value_, found in ((a, in_a), (b, in_b)):
        if not found.any():
            raise UnknownNameError(f"value of column {column!r}", str(value_), map(str, values.dropna().unique()))
    if (in_a & in_b).any():
        raise InvalidInputError(f"cannot compare {column!r} = {a!r} with itself; give two different values")
    return np.where(in_a, 0, np.where(in_b, 1, -1)).astype(np.intp)


def _equal(values: "pd.Series[Any]", wanted: object) -> BoolArray:
    null = wanted is None or (isinstance(wanted, float) and np.isnan(wanted))
    return np.asarray(values.isna() if null else (values == wanted).fillna(False), dtype=bool)


def _differences(a: Sums, b: Sums, metrics: list[Metric], bootstrap: Bootstrap | None) -> list[dict[str, Any]]:
    """One record a metric, over the clusters of both."""
    shared = np.intersect1d(a.clusters, b.clusters)
    first, second = a.only(shared), b.only(shared)
    runs_a, runs_b = first.by_cluster["runs"], second.by_cluster["runs"]
    facts = {
        "n_trajectories": len(shared),
        "n_only_a": len(a.clusters) - len(shared),
        "n_only_b": len(b.clusters) - len(shared),
        "n_runs_a": first.total("runs"),
        "n_runs_b": second.total("runs"),
        "balanced": bool((runs_a * runs_b[:1] == runs_b * runs_a[:1]).all()),
    }
    ends = bootstrap.paired(first, second, metrics) if bootstrap else {}
    records = []
    for metric in metrics:
        values = value(first, metric), value(second, metric)
        record = {"metric": metric.name, **facts, "a": values[0], "b": values[1], "difference": values[0] - values[1]}
        if metric.name in ends:
            record["difference_low"], record["difference_high"] = ends[metric.name]
        records.append(record)
    return records
