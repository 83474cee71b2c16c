"""The metrics of each group of runs."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from memorydojo.errors import UnknownNameError
from memorydojo.metrics._bootstrap import Bootstrap, value
from memorydojo.metrics._definitions import METRICS, Metric
from memorydojo.metrics._groups import By, group, key_names
from memorydojo.metrics._rows import BoolArray, Rows, rows_of
from memorydojo.metrics._sums import Sums, sums_by_group

Part = Literal["within-domain", "cross-domain"]
"""Later sessions in the objective's domain, or outside of it."""

PARTS: tuple[Part, ...] = ("within-domain", "cross-domain")
"""Both parts, in order."""

DISTANCES: tuple[tuple[str, int], ...] = (("1-10", 1), ("11-20", 11), ("21-30", 21), ("31+", 31))
"""The bins of t - t0, and where each begins."""

_COUNTS = ("simulated", "n_runs", "n_trajectories", "n_sessions", "n_later", "n_retrieved")
_RESERVED = frozenset({*_COUNTS[1:], "distance", *METRICS, *(f"{m}_{end}" for m in METRICS for end in ("low", "high"))})


def summarize(
    table: pd.DataFrame,
    *,
    by: By = None,
    part: Part | None = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """The metrics of each group of runs, as fractions (definitions in the project's metrics page; paper, section 4.3).

    *Attacked and clean runs never share a row.* ISR, ASR and the metrics of later sessions count attacked runs only; TU
    and MU count every run of the row. So that a row's TU is the utility of one condition, the key ``condition``
    (``"poisoned"`` or ``"clean"``) is added as the last key as soon as a group would hold both kinds of runs. It may
    also be named in ``by``.

    *A key that differs within runs*, such as ``domain`` in cross-domain trajectories, divides sessions instead of runs:
    ``n_runs`` then counts the runs with a session in the group, BR covers those with a later session in it, and the
    metrics of whole runs (ISR, ASR, MU) are left out.

    *Intervals* come from a percentile bootstrap that draws trajectories, all runs of a trajectory together. In a table
    without ``trajectory_id`` each run is drawn on its own, which makes intervals too narrow if runs share trajectories;
    ``n_trajectories`` is then null. An interval is NaN unless two trajectories have a denominator.

    Args:
        table: A session table.
        by: Columns to group by. Nulls form a group of their own. None: one group.
        part: Only later sessions whose domain equals (``"within-domain"``) or differs from (``"cross-domain"``) the
            objective's. Runs without such a session do not count, nor do clean runs or objectives without a domain.
            The result has only the metrics of later sessions.
        intervals: Whether to add ``*_low`` and ``*_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        One row a group, ordered by the keys: the keys; ``simulated`` (any run of the group is; False if the table does
        not say); ``n_runs``, ``n_trajectories``, ``n_sessions`` (planned task sessions), ``n_later`` (denominator of
        RSR and BRT), ``n_retrieved`` (N_R); then each metric with its ends. NaN where there is no denominator.

    Raises:
        InvalidInputError: The table is no session table, or an argument is out of range.
        UnknownNameError: ``by`` names no column, or ``part`` no part.
    """
    if part is not None and part not in PARTS:
        raise UnknownNameError("part", str(part), PARTS)
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    rows = rows_of(table)
    groups = group(rows, key_names(by), reserved=_RESERVED, unmix=part is None)
    later = rows.later if part is None else rows.later & _in_part(rows, part)
    sums = sums_by_group(rows, groups.of_row, len(groups), later=later, only_later=part is not None)
    of = {"later"} if part else {"later", "session", *(["run"] if groups.whole_runs else [])}
    metrics = [metric for metric in METRICS.values() if metric.of in of]
    without = () if part is None else ("n_sessions",)
    return _assembled(groups.keys, groups.simulated, rows, sums, metrics, bootstrap).drop(columns=[*without])


def by_distance(
    table: pd.DataFrame,
    *,
    by: By = None,
    intervals: bool = True,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """RSR and BRT of attacked runs by how many sessions lie between insertion and session: 1-10, 11-20, 21-30, 31+.

    Args:
        table: A session table.
        by: Columns to group by, as in ``summarize``.
        intervals: Whether to add ``*_low`` and ``*_high``.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.
        confidence: Mass of an interval.

    Returns:
        Four rows a group: the keys, ``distance``, ``simulated``, ``n_runs`` (those with a session in the bin),
        ``n_trajectories``, ``n_later``, ``n_retrieved``, RSR and BRT with their ends. A bin that no run reaches is NaN.

    Raises:
        InvalidInputError: The table is no session table, or an argument is out of range.
        UnknownNameError: ``by`` names no column.
    """
    bootstrap = Bootstrap(replicates, seed, confidence) if intervals else None
    rows = rows_of(table)
    groups = group(rows, key_names(by), reserved=_RESERVED, unmix=False)
    insertion = rows.table["insertion_session"].fillna(0).to_numpy(dtype=np.int64)
    distance = rows.table["session"].to_numpy() - insertion
    bins = np.searchsorted([start for _, start in DISTANCES], distance, side="right") - 1
    cells = groups.of_row * len(DISTANCES) + np.maximum(bins, 0)
    sums = sums_by_group(rows, cells, len(groups) * len(DISTANCES), later=rows.later, only_later=True)
    at = np.repeat(np.arange(len(groups)), len(DISTANCES))
    keys = groups.keys.take(at).reset_index(drop=True)
    keys["distance"] = [name for name, _ in DISTANCES] * len(groups)
    simulated = groups.simulated.take(at).reset_index(drop=True)
    result = _assembled(keys, simulated, rows, sums, [METRICS["RSR"], METRICS["BRT"]], bootstrap)
    return result.drop(columns=["n_sessions"])


def _in_part(rows: Rows, part: Part) -> BoolArray:
    domain, objective = rows.table["domain"], rows.table["objective_domain"]
    same = np.asarray(domain == objective, dtype=bool)
    return same if part == "within-domain" else ~same & objective.notna().to_numpy(dtype=bool)


def _assembled(
    keys: pd.DataFrame,
    simulated: "pd.Series[Any]",
    rows: Rows,
    sums: Sequence[Sums],
    metrics: Sequence[Metric],
    bootstrap: Bootstrap | None,
) -> pd.DataFrame:
    """One row for each key: the counts and the metrics."""
    records = [_record(one, metrics, bootstrap) for one in sums]
    columns = list(_COUNTS[1:])
    for metric in metrics:
        columns += [metric.name, *([f"{metric.name}_low", f"{metric.name}_high"] if bootstrap else [])]
    numbers = pd.DataFrame(records, columns=columns)
    counts = {name: "Int64" if name == "n_trajectories" else "int64" for name in _COUNTS[1:]}
    numbers = numbers.astype({name: counts.get(name, "float64") for name in columns})
    if not rows.has_trajectories:
        numbers["n_trajectories"] = pd.array([pd.NA] * len(numbers), dtype="Int64")
    front = keys if "simulated" in keys.columns else keys.assign(simulated=simulated)
    result = pd.concat([front, numbers], axis=1)
    return bootstrap.marked(result) if bootstrap else result


def _record(sums: Sums, metrics: Sequence[Metric], bootstrap: Bootstrap | None) -> dict[str, float]:
    record: dict[str, float] = {
        "n_runs": sums.total("runs"),
        "n_trajectories": len(sums.clusters),
        "n_sessions": sums.total("sessions"),
        "n_later": sums.total("later"),
        "n_retrieved": sums.total("retrieved"),
    }
    ends = bootstrap.intervals(sums, metrics) if bootstrap else {}
    for metric in metrics:
        record[metric.name] = value(sums, metric)
        if metric.name in ends:
            record[f"{metric.name}_low"], record[f"{metric.name}_high"] = ends[metric.name]
    return record
