"""The numbers that the paper prints, as data, to stand beside numbers of your own; and clearly apart from them.

They are transcribed from the paper's Tables 1, 2 and 6 to 9 (``tables.json`` has them as printed, in percent). A test
holds each of them against the whole count that it must be (``tests/published``).
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memorydojo.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PAPER", "TABLES", "THIS_SWEEP", "beside", "source", "table"]

PAPER = "paper"
"""``source`` of a row that the paper prints."""
THIS_SWEEP = "this sweep"
"""``source`` of a row of your own."""
TABLES = (1, 2, 6, 7, 8, 9)
"""The tables that are here."""

_KEYS = ("model", "collection", "insertion", "payload_source", "condition", "part", "memory")
_FRONT = ("source", "paper_table", "simulated")


@cache
def _data() -> Mapping[str, Any]:
    text = files("memorydojo.published").joinpath("tables.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


def source() -> dict[str, Any]:
    """Where the numbers come from: title, authors, arXiv id and address of the paper, as they are to be cited."""
    return dict(_data()["paper"])


def table(number: int) -> "pd.DataFrame":
    """One of the paper's tables of results, with the columns of `memorydojo.metrics.summarize`.

    Args:
        number: 1 (same-domain; seed and optimized payloads), 2 (history-prefixed), 6 (four models), 7 (insertion in the
            middle), 8 (within and cross-domain parts) or 9 (cross-domain).

    Returns:
        One row for each row that is printed: ``source`` (``"paper"``), ``paper_table``, ``simulated`` (False); the keys
        ``model``, ``collection``, ``insertion``, ``payload_source`` (``"seed"`` is what the paper calls unoptimized;
        null where it does not say), ``condition`` (all are poisoned), ``part`` and ``memory`` (by the name that the
        memory system has here); and every metric as a fraction, NaN where the table does not print it. The paper prints
        no intervals. ``attrs`` holds the table's title and the paper.

    Raises:
        UnknownNameError: The table is not here.
    """
    import pandas as pd

    from memorydojo.metrics import METRICS

    if number not in TABLES:
        raise UnknownNameError("table of the paper's results", str(number), map(str, TABLES))
    found = _data()["tables"][str(number)]
    rows = pd.DataFrame(found["rows"], columns=found["columns"]).assign(**found["constant"], condition="poisoned")
    result = pd.DataFrame({"source": PAPER, "paper_table": number, "simulated": False}, index=rows.index)
    for key in _KEYS:
        given = rows[key] if key in rows.columns else pd.Series([None] * len(rows), dtype=object)
        result[key] = given.astype(pd.Series([""]).dtype)
    for metric in METRICS:
        # Percentages with two decimals: rounding takes away what dividing adds in the last place.
        result[metric] = (rows[metric] / 100).round(6) if metric in rows.columns else float("nan")
    result.attrs.update(source(), title=f"Table {number}: {found['title']}", paper=source()["title"])
    return result


def beside(summary: "pd.DataFrame", paper: "int | pd.DataFrame") -> "pd.DataFrame":
    """Your own metrics and the paper's in one table, told apart by the column ``source``.

    They are two things, never one: other trajectories, models and judges stand behind the paper's. No row of this table
    may be averaged with one of the other source, and simulated rows say nothing about any language model.

    Args:
        summary: From `memorydojo.metrics.summarize`, with intervals or without.
        paper: The number of a table, or rows of `table`, for example those of one model.

    Returns:
        First ``source``, ``paper_table`` and ``simulated``, then the keys of both, the counts and the metrics with
        their ends. Where both have the key ``memory``, its rows stand together, the paper's first. What a side does not
        have is null in its rows.

    Raises:
        InvalidInputError: The summary is none, or already holds rows of the paper.
        UnknownNameError: The paper's table is not here.
    """
    import pandas as pd

    from memorydojo.metrics import METRICS

    printed = table(paper) if isinstance(paper, int) else paper
    if "source" not in printed.columns or not (printed["source"] == PAPER).all():
        raise InvalidInputError(
            "`paper` holds rows that are not the paper's; give a number, or rows of published.table"
        )
    taken = [name for name in ("source", "paper_table") if name in summary.columns]
    if taken:
        raise InvalidInputError(
            f"the summary already has the column {taken[0]!r}; give the result of metrics.summarize"
        )
    metrics = [name for name in METRICS if name in summary.columns]
    if not metrics or "simulated" not in summary.columns:
        raise InvalidInputError(
            "the summary has no metrics or no column 'simulated'; give a result of metrics.summarize"
        )
    own = summary.assign(source=THIS_SWEEP, paper_table=None)
    keys = [name for name in own.columns[: own.columns.get_loc("n_runs")] if name not in _FRONT]
    keys += [name for name in _KEYS if name not in keys and printed[name].notna().any()]
    numbers = [name for name in summary.columns if name not in {*keys, *_FRONT}]
    numbers += [name for name in METRICS if name not in numbers and printed[name].notna().any()]
    columns = [*_FRONT, *keys, *numbers]
    sides = [side.reindex(columns=columns).astype(object) for side in (printed, own)]
    both = pd.concat(sides, ignore_index=True).astype({"simulated": bool, "paper_table": "Int64"})
    both = both.astype({name: "float64" for name in numbers if name not in summary.columns or _is_float(summary[name])})
    both = both.astype({name: "Int64" for name in numbers if not _is_float(both[name])})
    if "memory" in keys:
        both = both.sort_values("memory", kind="stable", ignore_index=True)
    return both.astype({name: pd.Series([""]).dtype for name in ("source", *keys) if _is_text(both[name])})


def _is_float(values: "pd.Series[Any]") -> bool:
    return bool(values.dtype == "float64")


def _is_text(values: "pd.Series[Any]") -> bool:
    return all(isinstance(value, str) for value in values.dropna())
