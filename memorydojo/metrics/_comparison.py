"""Differences between two conditions, paired by trajectory, and the base rates of objectives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics._bootstrap import Bootstrap, value
from memorydojo.metrics._definitions import METRICS, Metric
from memorydojo.metrics._groups import CONDITION, By, Groups, condition_column, group, key_names
from memorydojo.metrics._rows import BoolArray, Codes, Rows, rows_of
from memorydojo.metrics._sums import Sums, objective_sums, sums_by_group
from memorydojo.runs.table import met_columns

_COMPARED = ("n_trajectories", "n_only_a", "n_only_b", "n_runs_a", "n_runs_b", "balanced")
_COMPARISON = ("metric", *_COMPARED, "a", "b", "difference", "difference_low", "difference_high", "sign")
_WITH_INTERVALS = ("difference_low", "difference_high", "sign")
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

    A key that is null in all runs of one side only, as the payload is in clean runs, divides the other side alone: each
    of its groups is compared with the same runs of the undivided side.

    Args:
        table: A session table with the column ``trajectory_id``.
        column: The column that tells the conditions apart, constant in each run; ``"condition"`` is derived.
        a: Its value in one condition; None stands for null.
        b: Its value in the other.
        by: Further columns to group by, as in ``summarize``.
        intervals: Whether to add ``difference_low``, ``difference_high`` and ``sign``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group and metric: the keys, ``simulated`` (any run of either side), ``metric``, ``n_trajectories``
        (shared), ``n_only_a`` and ``n_only_b`` (trajectories left out because the other side lacks them), ``n_runs_a``
        and ``n_runs_b`` (in the shared ones), ``balanced`` (every shared trajectory has as many runs of a for one of b;
        if not, the sides weigh trajectories differently, and a difference can come from that alone), ``a``, ``b``,
        ``difference`` = a - b and its ends, and with them its ``sign``: ``"+"`` or ``"-"`` if the whole interval lies
        on that side of 0, ``"0"`` if it does not, null without an interval.

    Raises:
        InvalidInputError: The table is no session table or has no trajectories, an argument is out of range, or each
            side has keys that the other lacks.
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
    pairs = _pairs(kept, groups, side)
    metrics = [m for m in METRICS.values() if groups.whole_runs or m.of != "run"]
    records = [_differences(in_a, in_b, metrics, bootstrap) for _, in_a, in_b in pairs]
    columns = [name for name in _COMPARISON if bootstrap or name not in _WITH_INTERVALS]
    keys = groups.keys.take([number for number, _, _ in pairs])
    simulated = [bool(in_a.total("simulated") or in_b.total("simulated")) for _, in_a, in_b in pairs]
    found = _beside(keys, simulated, records, columns)
    found.attrs["sides"] = ("none" if a is None else str(a), "none" if b is None else str(b))
    return bootstrap.marked(found) if bootstrap else found


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
    found = _beside(groups.keys, groups.simulated.tolist(), records, columns).astype({"n_trajectories": "Int64"})
    return bootstrap.marked(found) if bootstrap else found


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


def _beside(
    keys: pd.DataFrame, simulated: Sequence[bool], records: list[list[dict[str, Any]]], columns: list[str]
) -> pd.DataFrame:
    """The keys of each group beside each of its records."""
    at = np.repeat(np.arange(len(keys)), [len(some) for some in records])
    front = keys.take(at).reset_index(drop=True)
    if "simulated" not in front.columns:
        front["simulated"] = np.asarray(simulated, dtype=bool)[at]
    return pd.concat([front, pd.DataFrame([one for some in records for one in some], columns=columns)], axis=1)


def _pairs(rows: Rows, groups: Groups, side: Codes) -> list[tuple[int, Sums, Sums]]:
    """What is compared: the number of a group, and its sums on either side."""
    sums = sums_by_group(rows, groups.of_row * 2 + side, len(groups) * 2, later=rows.later)
    own = [_own_keys(rows, groups, side, number) for number in (0, 1)]
    if own[0] and own[1]:
        raise InvalidInputError(
            f"cannot compare by {own[0] + own[1]} at once: each side lacks keys of the other; compare by one of them"
        )
    if not (own[0] or own[1]):
        return [(number, sums[2 * number], sums[2 * number + 1]) for number in range(len(groups))]
    divided = 0 if own[0] else 1
    shared = group(rows, [name for name in groups.keys.columns if name not in own[divided]], reserved=(), unmix=False)
    whole = sums_by_group(rows, shared.of_row * 2 + side, len(shared) * 2, later=rows.later)
    in_divided = np.flatnonzero(side == divided)
    numbers, first = np.unique(groups.of_row[in_divided], return_index=True)
    pairs = []
    for number, row in zip(numbers.tolist(), in_divided[first], strict=True):
        mine, other = sums[2 * number + divided], whole[2 * int(shared.of_row[row]) + 1 - divided]
        pairs.append((number, other, mine) if divided else (number, mine, other))
    return pairs


def _own_keys(rows: Rows, groups: Groups, side: Codes, number: int) -> list[str]:
    """The keys of one side that are null in all runs of the other."""
    null = {name: rows.table[name].isna().to_numpy(bool) for name in groups.keys.columns if name in rows.table.columns}
    return [n for n, gaps in null.items() if gaps[side != number].all() and not gaps[side == number].all()]


def _sides(rows: Rows, column: str, a: object, b: object) -> Codes:
    """0 in rows of condition a, 1 in rows of b, else -1."""
    if not rows.has_trajectories:
        raise InvalidInputError("a comparison is paired by trajectory, but the table has no column 'trajectory_id'")
    if column not in rows.table.columns and column != CONDITION:
        raise UnknownNameError("column of the session table", column, {*map(str, rows.table.columns), CONDITION})
    values = rows.table[column] if column in rows.table.columns else condition_column(rows)
    if rows.runs.varies(values).any():
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


def _sign(low: float, high: float) -> str | None:
    """On which side of 0 an interval lies."""
    if np.isnan(low):
        return None
    return "+" if low > 0 else "-" if high < 0 else "0"


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
            record["sign"] = _sign(*ends[metric.name])
        records.append(record)
    return records
