"""``memorydojo metrics --fail-on``: conditions on metrics that make the command exit with 1, for use in CI."""

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from memorydojo._display import plain
from memorydojo.errors import UnknownNameError
from memorydojo.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

OPTION = "--fail-on"
#: Tables that have a column for each metric.
MODES = ("summary", "part", "distance")

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_FORM = re.compile(r"\s*(\w+(?: +\w+)*)\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Condition:
    """What must not hold for any group.

    Attributes:
        metric: A metric.
        sign: One of ``>``, ``>=``, ``<``, ``<=``.
        bound: A fraction from 0 to 1.
    """

    metric: str
    sign: str
    bound: float

    def holds(self, value: float) -> bool:
        """Whether it holds for a value that is defined."""
        return bool(_COMPARE[self.sign](value, self.bound))

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.bound:g}"


def conditions(given: Sequence[str]) -> list[Condition]:
    """The conditions that were given.

    Raises:
        typer.BadParameter: One is no condition, or could never hold, so that it would check nothing.
    """
    return [_condition(text) for text in given]


def _condition(text: str) -> Condition:
    found = _FORM.fullmatch(text)
    if found is None:
        raise _bad(f"{plain(text, 60)!r} is no condition; write a metric, >, >=, < or <=, and a fraction: BRT>0.05")
    metric, sign, number = found.groups()
    metric = _named(metric)
    if metric not in METRICS:
        raise _bad(plain(str(UnknownNameError("metric", metric, tuple(METRICS)))))
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not 0 <= bound <= 1:
        raise _bad(f"{plain(number, 60)!r} in {plain(text, 60)!r} is no fraction from 0 to 1; 5 percent is 0.05")
    if (sign, bound) in ((">", 1.0), ("<", 0.0)):
        raise _bad(f"{plain(text, 60)!r} can never hold, so it would check nothing")
    return Condition(metric, sign, bound)


def _named(metric: str) -> str:
    """A metric by its own name, also if it is given by the one that the tables print."""
    words = " ".join(metric.split())
    return next((name for name in METRICS if words == name.replace("_", " ")), metric)


def check(result: "pd.DataFrame", asked: Sequence[Condition]) -> None:
    """Says on the standard error for which groups a condition holds or is undefined.

    An undefined metric, one without a denominator, meets no condition. If it is undefined for every group, nothing was
    checked, and that is a failure too.

    Args:
        result: A summary with a column for each metric, a row for each group.
        asked: The conditions.

    Raises:
        typer.BadParameter: The table has no such metric.
        typer.Exit: With 1, if a condition holds for a group or could not be checked for any.
    """
    names = [str(name) for name in result.columns]
    keys = [name for name in names[: names.index("n_runs")] if name != "simulated"]
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in result.itertuples(index=False)]
    failed = False
    for condition in asked:
        if condition.metric not in names:
            known = [name for name in METRICS if name in names]
            raise _bad(f"this table has no {condition.metric}; it has {', '.join(known)}")
        checked = 0
        for row in rows:
            value = float(row[condition.metric]) if row[condition.metric] is not None else math.nan
            if math.isnan(value):
                _say(f"{condition}: not checked for {_group(row, keys)}, where {condition.metric} has no denominator")
                continue
            checked += 1
            if condition.holds(value):
                failed = True
                _say(f"{condition}: holds for {_group(row, keys)}: {condition.metric} is {value:.4f}")
        if not checked:
            failed = True
            _say(f"{condition}: could be checked for no group, which counts as a failure")
    if failed:
        raise typer.Exit(1)


def _group(row: dict[str, Any], keys: Sequence[str]) -> str:
    parts = [f"{plain(key, 40)}={_shown(row[key])}" for key in keys]
    return " ".join(parts) if parts else "all runs"


def _shown(value: Any) -> str:
    import pandas as pd

    return "none" if pd.isna(value) else plain(str(value), 60)


def _say(text: str) -> None:
    typer.echo(f"{OPTION} {text}", err=True)


def _bad(text: str) -> typer.BadParameter:
    return typer.BadParameter(text, param_hint=OPTION)
