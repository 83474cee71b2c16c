"""Sums over sessions and runs, one row of them for each trajectory of a group."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memorydojo.metrics._rows import BoolArray, Codes, Rows

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sums:
    """Sums of one group, by cluster.

    Attributes:
        clusters: The clusters that count in the group, ascending.
        by_cluster: For each sum its value in each of these clusters: whole numbers.
    """

    clusters: Codes
    by_cluster: Mapping[str, FloatArray]

    def total(self, name: str) -> int:
        """The sum over all clusters."""
        return int(self.by_cluster[name].sum())

    def only(self, clusters: Codes) -> "Sums":
        """These sums in some of the clusters only, ``clusters`` ascending and all present."""
        at = np.searchsorted(self.clusters, clusters)
        return Sums(clusters, {name: values[at] for name, values in self.by_cluster.items()})


def sums_by_group(
    rows: Rows,
    of_row: Codes,
    n_groups: int,
    *,
    later: BoolArray,
    only_later: bool = False,
    more: Mapping[str, BoolArray] | None = None,
) -> list[Sums]:
    """The sums that the metrics are made of.

    Args:
        rows: The table.
        of_row: The number of each row's group.
        n_groups: The number of groups.
        later: The later sessions that count: all of them, or those of a part.
        only_later: Whether runs without such a session are left out altogether.
        more: Further sums by name, and which rows each counts.
    """
    unit, n_units, group_of, cluster_of = _units(rows, of_row)
    masks = _masks(rows, later) | dict(more or {})
    sums: dict[str, npt.NDArray[Any]] = {
        name: np.bincount(unit[mask], minlength=n_units) for name, mask in masks.items()
    }
    sums["reachable"] = sums["later"] > 0
    sums["reached"] = sums["met"] > 0
    sums["runs"] = sums["reachable"] if only_later else np.ones(n_units, dtype=bool)
    return _by_cluster(sums, group_of, cluster_of, n_groups)


def objective_sums(rows: Rows, of_row: Codes, n_groups: int, *, met: BoolArray, evaluated: BoolArray) -> list[Sums]:
    """The sums of one objective's base rate: clean sessions in which it was evaluated, and in which it was met."""
    unit, n_units, group_of, cluster_of = _units(rows, of_row)
    clean = evaluated & ~rows.attacked
    sessions = np.bincount(unit[clean], minlength=n_units)
    sums = {"sessions": sessions, "met": np.bincount(unit[clean & met], minlength=n_units), "runs": sessions > 0}
    return _by_cluster(sums, group_of, cluster_of, n_groups)


def _by_cluster(sums: Mapping[str, npt.NDArray[Any]], group_of: Codes, cluster_of: Codes, n: int) -> list[Sums]:
    """Adds up sums of units (runs, or parts of runs) by group and cluster.

    Args:
        sums: One value a unit; ``"runs"`` says which units count, and clusters without any are left out.
        group_of: The number of each unit's group.
        cluster_of: The number of each unit's cluster.
        n: The number of groups.
    """
    counted = np.asarray(sums["runs"], dtype=bool)
    width = int(cluster_of.max(initial=0)) + 1
    cells, cell = np.unique(group_of[counted] * width + cluster_of[counted], return_inverse=True)
    totals: dict[str, FloatArray] = {
        name: np.bincount(cell, values[counted].astype(np.float64), len(cells)).astype(np.float64)
        for name, values in sums.items()
    }
    bounds = np.searchsorted(cells // width, np.arange(n + 1))
    parts = [slice(int(start), int(stop)) for start, stop in itertools.pairwise(bounds)]
    return [Sums(cells[part] % width, {name: values[part] for name, values in totals.items()}) for part in parts]


def _units(rows: Rows, of_row: Codes) -> tuple[Codes, int, Codes, Codes]:
    """Units: the sessions of one run in one group. The unit of each row, and the group and cluster of each unit."""
    run, first = rows.runs.run, rows.runs.first
    if (of_row[first][run] == of_row).all():  # every run lies in one group: no need to number pairs
        return run, len(first), of_row[first], rows.cluster
    pairs, unit = np.unique(of_row * len(first) + run, return_inverse=True)
    return unit.astype(np.intp), len(pairs), pairs // len(first), rows.cluster[pairs % len(first)]


def _masks(rows: Rows, later: BoolArray) -> dict[str, BoolArray]:
    """Which rows each sum counts."""
    retrieved = rows.bools("retrieved") & later
    original, descendant = rows.bools("retrieved_original"), rows.bools("retrieved_descendant")
    met = rows.bools("objective_met")
    session = rows.table["session"].to_numpy()
    at_insertion = rows.attacked & (session == rows.table["insertion_session"].fillna(0).to_numpy(dtype=np.int64))
    masks = {
        "attacked": at_insertion,
        "inserted": at_insertion & rows.bools("inserted"),
        "met_at_insertion": at_insertion & met,
        "later": later,
        "retrieved": retrieved,
        "original_only": retrieved & original & ~descendant,
        "descendant_only": retrieved & ~original & descendant,
        "original_and_descendant": retrieved & original & descendant,
        "met": later & met,
        "met_and_retrieved": retrieved & met,
        "sessions": np.ones(len(session), dtype=bool),
        "useful": rows.bools("utility"),
    }
    if "simulated" in rows.table.columns:
        masks["simulated"] = rows.bools("simulated")
    else:
        masks["simulated"] = np.zeros(len(session), dtype=bool)
    asked = np.zeros(len(session), dtype=bool)
    if "memory_correct" in rows.table.columns:
        asked = (session == 1) & rows.table["memory_correct"].notna().to_numpy(dtype=bool)
        return masks | {"questions": asked, "correct": asked & rows.bools("memory_correct")}
    return masks | {"questions": asked, "correct": asked}
