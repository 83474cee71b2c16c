"""What a figure draws, taken out of a table and checked; no matplotlib here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError
from memorydojo.metrics import METRICS

_SESSION_TABLE = {"run_id", "session", "n_sessions", "insertion_session", "retrieved"}


@dataclass(frozen=True)
class Value:
    """A number and its interval, as the table has them; the ends are NaN where there is no interval."""

    value: float
    low: float = float("nan")
    high: float = float("nan")

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval to draw."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


NOTHING = Value(float("nan"))
Key = tuple[object, ...]


def rows_for(data: pd.DataFrame, compute: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """The rows to draw: computed from a session table, or as they were given."""
    return compute(data) if {*map(str, data.columns)} >= _SESSION_TABLE else data


def check_metric(metric: str) -> None:
    """Refuses what is no metric.

    Raises:
        UnknownNameError: There is no such metric.
    """
    from memorydojo.errors import UnknownNameError

    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)


def needs(rows: pd.DataFrame, columns: Sequence[str], *, figure: str, made_by: str) -> None:
    """Refuses rows that cannot make a figure.

    Raises:
        InvalidInputError: A column is missing, or there are no rows.
    """
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise InvalidInputError(
            f"the figure {figure!r} needs the column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing))}, which the table lacks; give a session table, or the result of {made_by}"
        )
    if not len(rows):
        raise InvalidInputError(f"the figure {figure!r} has nothing to draw: the table has no rows")


def values(rows: pd.DataFrame, keys: Sequence[str], column: str, *, figure: str) -> dict[Key, Value]:
    """The value of each group of keys, without those that have none.

    Raises:
        InvalidInputError: Several rows of one group have a value, or none of any group has.
    """
    found: dict[Key, Value] = {}
    low, high = f"{column}_low", f"{column}_high"
    for row in rows.to_dict("records"):
        value = float(row[column]) if pd.notna(row[column]) else float("nan")
        if np.isnan(value):
            continue
        key = tuple(_plain_null(row[name]) for name in keys)
        if key in found:
            shown = ", ".join(f"{name}={str(part)[:40]!r}" for name, part in zip(keys, key, strict=True))
            raise InvalidInputError(
                f"the figure {figure!r} draws one value for each {' and '.join(keys)}, and the table has several "
                f"for {shown}; choose rows first, or group by {' and '.join(keys)} alone"
            )
        found[key] = Value(value, float(row.get(low, np.nan)), float(row.get(high, np.nan)))
    if not found:
        raise InvalidInputError(f"the figure {figure!r} has nothing to draw: {column} has no value in any row")
    return found


def names(rows: pd.DataFrame, column: str, order: Sequence[object] | None = None) -> list[object]:
    """The values of a key in the order in which they are drawn; nulls are None.

    Args:
        rows: The rows.
        column: The key.
        order: The values to draw; None for all, in the order of the rows.

    Raises:
        InvalidInputError: ``order`` names a value that no row has, or one twice.
    """
    present = list(dict.fromkeys(map(_plain_null, rows[column])))
    if order is None:
        return present
    unknown = [name for name in order if name not in present]
    if unknown:
        raise InvalidInputError(
            f"`order` names {str(unknown[0])[:60]!r}, but column {column!r} holds: "
            f"{', '.join(str(name)[:40] for name in present[:12])}"
        )
    if len({*order}) != len(order):
        raise InvalidInputError("`order` names a value twice")
    return list(order)


def simulated(rows: pd.DataFrame, shown: Mapping[str, Sequence[object]] | None = None) -> str | None:
    """What the mark of a figure says: nothing, ``"simulated"`` or ``"partly simulated"``.

    Args:
        rows: The rows that were given.
        shown: By key, the values that are drawn; rows with others do not count.
    """
    if "simulated" not in rows.columns:
        return None
    flags = rows["simulated"].fillna(False).astype(bool)
    for column, drawn in (shown or {}).items():
        flags = flags[rows.loc[flags.index, column].map(_plain_null).isin(list(drawn))]
    return None if not flags.any() else "simulated" if flags.all() else "partly simulated"


def _plain_null(value: object) -> object:
    return None if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)) else value
