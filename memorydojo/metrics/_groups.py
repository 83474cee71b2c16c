"""Which group each row belongs to."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics._rows import Codes, Rows, combined
from memorydojo.runs.table import varies_within

CONDITION = "condition"
"""The key that keeps runs with and without attack apart: ``"poisoned"`` or ``"clean"``. A table need not have it."""

By = str | Iterable[str] | None


@dataclass(frozen=True)
class Groups:
    """The groups of a table.

    Attributes:
        keys: One row a group, in the order of the keys' values, nulls last; one column a key.
        of_row: The number of each row's group.
        whole_runs: Whether every run lies in one group; False if a key differs within a run, as ``domain`` may.
        simulated: Whether any run with a row in the group is simulated.
    """

    keys: pd.DataFrame
    of_row: Codes
    whole_runs: bool
    simulated: pd.Series

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.keys)


def key_names(by: By) -> list[str]:
    """The columns to group by, each once."""
    return [by] if isinstance(by, str) else list(dict.fromkeys(by or ()))


def condition_column(rows: Rows) -> pd.Series:
    """The derived condition of each row's run."""
    codes = rows.attacked.astype(np.intp)
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(["clean", "poisoned"])), name=CONDITION)


def group(
    rows: Rows, by: Sequence[str], *, reserved: Collection[str], unmix: bool, side: Codes | None = None
) -> Groups:
    """Groups the rows of a table.

    Args:
        rows: The table.
        by: Names of columns; ``"condition"`` is derived if the table has no such column.
        reserved: Names of the columns that the result will have beside the keys.
        unmix: Whether to add the key ``condition`` if a group would hold runs with attack and runs without.
        side: In a comparison the side of each row, 0 or 1; then it is one side of a group that must not mix.

    Raises:
        UnknownNameError: The table has no such column.
        InvalidInputError: A key has the name of a result column, or its values cannot be grouped.
    """
    columns = _columns(rows, by, reserved)
    numbers = combined(columns, len(rows.table))
    if unmix and _mixes(numbers if side is None else numbers * 2 + side, rows):
        if CONDITION in {*by, *reserved}:
            raise InvalidInputError(
                f"the table's own column {CONDITION!r} puts runs with attack and runs without into one group, which "
                "would mix their utilities; rename that column, and group by the derived one"
            )
        columns.append(condition_column(rows))
        numbers = combined(columns, len(rows.table))
    whole = all(not varies_within(column, rows.run, rows.first).any() for column in columns)
    _, first, of_row = np.unique(numbers, return_index=True, return_inverse=True)
    keys = pd.DataFrame({str(column.name): column.take(first).reset_index(drop=True) for column in columns})
    for name, dtype in keys.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            keys[name] = keys[name].astype(dtype.categories.dtype)
    if not columns:  # no key: one group, and of an empty table too
        keys = pd.DataFrame(index=pd.RangeIndex(1))
    return Groups(keys, of_row.astype(np.intp), whole, _simulated(rows, of_row.astype(np.intp), len(keys)))


def _columns(rows: Rows, by: Sequence[str], reserved: Collection[str]) -> list[pd.Series]:
    known = [str(name) for name in rows.table.columns]
    columns = []
    for name in by:
        if name in reserved:
            raise InvalidInputError(
                f"cannot group by {name!r}: the result has a column of that name; "
                f"group by a copy with another name: table.assign(my_{name}=table[{name!r}])"
            )
        if name not in known and name != CONDITION:
            raise UnknownNameError("column of the session table", name, [*known, CONDITION])
        columns.append(rows.table[name] if name in known else condition_column(rows))
    return columns


def _mixes(numbers: Codes, rows: Rows) -> bool:
    groups = np.unique(numbers, return_inverse=True)[1]
    attacked = np.bincount(groups, weights=rows.attacked)
    total = np.bincount(groups)
    return bool(((attacked > 0) & (attacked < total)).any())


def _simulated(rows: Rows, of_row: Codes, n_groups: int) -> pd.Series:
    if "simulated" not in rows.table.columns:
        return pd.Series(np.zeros(n_groups, dtype=bool), name="simulated")
    return pd.Series(np.bincount(of_row[rows.bools("simulated")], minlength=n_groups) > 0, name="simulated")
