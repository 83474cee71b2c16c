"""Which group each row belongs to."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics._rows import BoolArray, Codes, Rows, combined
from memorydojo.runs.table import SESSION_TABLE

CONDITION = "condition"
"""The key that keeps runs with and without attack apart: ``"poisoned"`` or ``"clean"``. A table need not have it."""

_PER_RUN = frozenset(column.name for column in SESSION_TABLE if column.per_run) | {"run_id"}
"""Columns of which the check of the table has found that they do not differ within a run."""

By = str | Iterable[str] | None
"""The columns that make the groups: one, several, or none given for the usual ones."""


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
    whole = all(column.name in _PER_RUN or not rows.runs.varies(column).any() for column in columns)
    # Numbered are runs, or rows if a key differs within a run.
    at = rows.runs.first if whole else np.arange(len(rows.table))
    numbers = combined([column.take(at) for column in columns], len(at))
    if unmix and _mixes(numbers if side is None else numbers * 2 + side[at], rows.attacked[at]):
        if CONDITION in {*by, *reserved}:
            raise InvalidInputError(
                f"the table's own column {CONDITION!r} puts runs with attack and runs without into one group, which "
                "would mix their utilities; rename that column, and group by the derived one"
            )
        columns.append(condition_column(rows))
        numbers = combined([column.take(at) for column in columns], len(at))
    _, first, of_one = np.unique(numbers, return_index=True, return_inverse=True)
    of_row = (of_one[rows.runs.run] if whole else of_one).astype(np.intp)
    keys = pd.DataFrame({str(column.name): column.take(at[first]).reset_index(drop=True) for column in columns})
    for name, dtype in keys.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            keys[name] = keys[name].astype(dtype.categories.dtype)
    if not columns:  # no key: one group, and of an empty table too
        keys = pd.DataFrame(index=pd.RangeIndex(1))
    return Groups(keys, of_row, whole, _simulated(rows, of_row, len(keys)))


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
            raise UnknownNameError("column of the session table", name, {*known, CONDITION})
        columns.append(rows.table[name] if name in known else condition_column(rows))
    return columns


def _mixes(numbers: Codes, attacked: BoolArray) -> bool:
    groups = np.unique(numbers, return_inverse=True)[1]
    with_attack = np.bincount(groups, weights=attacked)
    return bool(((with_attack > 0) & (with_attack < np.bincount(groups))).any())


def _simulated(rows: Rows, of_row: Codes, n_groups: int) -> pd.Series:
    if "simulated" not in rows.table.columns:
        return pd.Series(np.zeros(n_groups, dtype=bool), name="simulated")
    return pd.Series(np.bincount(of_row[rows.bools("simulated")], minlength=n_groups) > 0, name="simulated")
