"""A checked session table as arrays with one value a row, and the trajectory that each run belongs to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from memorydojo.errors import InvalidInputError
from memorydojo.runs.table import RunIndex, check_with_runs

Codes = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """A session table, row by row.

    Attributes:
        table: The checked table.
        runs: The run of each row.
        cluster: The number of each run's cluster, which the bootstrap draws; ordered by (collection, trajectory_id).
        has_trajectories: Whether clusters are trajectories; else each run is its own cluster.
        attacked: Whether the row's run has an attack.
        later: Whether the row's session comes after the insertion session.
    """

    table: pd.DataFrame
    runs: RunIndex
    cluster: Codes
    has_trajectories: bool
    attacked: BoolArray
    later: BoolArray

    def bools(self, column: str) -> BoolArray:
        """A boolean column; nulls are False."""
        return self.table[column].fillna(False).to_numpy(dtype=bool)


def rows_of(table: pd.DataFrame) -> Rows:
    """Checks a session table and prepares it.

    Raises:
        InvalidInputError: It is no session table.
    """
    checked, runs = check_with_runs(table)
    first = runs.first
    has_trajectories = "trajectory_id" in checked.columns
    names = [n for n in ("collection", "trajectory_id") if n in checked.columns] if has_trajectories else ["run_id"]
    clusters = combined([checked[name].take(first) for name in names], len(first))
    insertion = checked["insertion_session"].fillna(0).to_numpy(dtype=np.int64)
    attacked = insertion > 0
    return Rows(
        table=checked,
        runs=runs,
        cluster=np.unique(clusters, return_inverse=True)[1].astype(np.intp),
        has_trajectories=has_trajectories,
        attacked=attacked,
        later=attacked & (checked["session"].to_numpy() > insertion),
    )


def combined(columns: "list[pd.Series[Any]]", length: int) -> Codes:
    """Numbers for the rows of some columns: equal rows get equal numbers, in the order of the values, nulls last.

    The numbers have gaps. The order depends on the values alone, not on the order of the rows.

    Raises:
        InvalidInputError: A column holds values that cannot be compared, such as lists.
    """
    numbers = np.zeros(length, dtype=np.intp)
    for column in columns:
        codes, size = _ordered(column)
        # Numbers stay below length * size, which is far below 2**63 for any table that fits into memory.
        numbers = np.unique(numbers, return_inverse=True)[1].astype(np.intp) if numbers.any() else numbers
        numbers = numbers * size + codes
    return numbers


def _ordered(column: "pd.Series[Any]") -> tuple[Codes, int]:
    """Numbers for the values of a column in their order, nulls last; and how many numbers there can be."""
    try:
        codes, levels = pd.factorize(column)
    except TypeError as error:
        raise InvalidInputError(
            f"cannot group by column {column.name!r}: it holds values such as lists or dicts; turn them into text"
        ) from error
    try:
        order = np.asarray(levels.argsort())
    except TypeError:  # values of several types, which have no order among each other
        order = np.array(sorted(range(len(levels)), key=lambda i: (type(levels[i]).__name__, str(levels[i]))))
    rank = np.empty(len(levels) + 1, dtype=np.intp)
    rank[order] = np.arange(len(levels))
    rank[-1] = len(levels)
    return rank[codes], len(levels) + 1
