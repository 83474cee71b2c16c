"""What tables of metrics look like: percentages with their intervals, and whether they are simulated."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError
from memorydojo.metrics._definitions import METRICS
from memorydojo.metrics._funnel import DELIVERIES
from memorydojo.view import LONGEST, SIMULATED, Column, View, cut

_HEADS = {
    "n_runs": "runs",
    "n_trajectories": "trajectories",
    "n_sessions": "task sessions",
    "n_later": "later sessions",
    "n_retrieved": "with retrieval",
    "n_met": "met",
    "failed_check": "earliest failed check",
    "share": "share %",
    "RSR": "RSR %",
    "BRT_given_R": "BRT given R %",
    "base_rate": "base rate %",
}
_NUMBERS = frozenset({*METRICS, "base_rate", "share", "difference"})
_FRACTIONS = ("base_rate", "a", "b", "difference", "share", "RSR", "BRT_given_R")
_MADE_BY = "summarize, by_distance, compare, base_rates, funnel, losses or by_delivery"
_OF_GROUPS = (("n_trajectories",), ("n_only_a", "n_only_b"), ("n_runs_a", "n_runs_b"))


def view(
    result: pd.DataFrame,
    *,
    title: str | None = None,
    notes: Sequence[str] | None = None,
    sides: tuple[str, str] | None = None,
    confidence: float | None = None,
    limit: int | None = LONGEST,
) -> View:
    """A table of metrics as people read it: in percent, with intervals, and with the mark of simulated numbers.

    In a notebook, by ``print`` and by ``rich.print`` it shows itself; nothing is computed anew.

    Args:
        result: What `summarize`, `by_distance`, `compare`, `base_rates`, `funnel`, `losses` or `by_delivery` returns,
            or a table of `memorydojo.published`.
        title: Stands above; None for what the table is.
        notes: Stand below; None to explain the intervals.
        sides: What the two sides of `compare` are called; None for what it compared, as far as the table still
            knows it.
        confidence: The confidence that the intervals were asked for with; None for what the table says of it.
        limit: How many groups, or rows, to show; None for all.

    Raises:
        InvalidInputError: It is no such table.
    """
    result = _with_keys(result)
    names = [str(name) for name in result.columns]
    kind = _kind(names)
    ends = [name for name in names if name.endswith(("_low", "_high")) and name.rpartition("_")[0] in _NUMBERS]
    wide = bool(ends) and bool(result[ends].notna().to_numpy().any())
    mass = confidence if confidence is not None else result.attrs.get("confidence")
    percent = f"{100 * mass:.4g} % " if isinstance(mass, int | float) else ""
    if notes is None:
        notes = [f"In brackets: {percent}intervals, drawn over trajectories."] if wide else []
    if kind == "a comparison":
        found = _comparison(result, sides=sides or result.attrs.get("sides", ("a", "b")), limit=limit)
    elif kind == "groups":
        found = _groups(result, interval=f" [{percent.strip() or 'interval'}]" if wide else "", limit=limit)
    else:
        found = _rows(result, limit=limit)
    simulated = result["simulated"].fillna(False).astype(bool)
    partly = bool(simulated.any()) and not bool(simulated.all())
    told = _TITLES.get(kind, _title(result)) if title is None else title
    return View(
        f"{told} (partly simulated)" if partly else told,
        found.columns,
        found.rows,
        more=found.more,
        notes=[*([_PARTLY] if partly else [SIMULATED] if simulated.any() else []), *notes, *found.notes],
        simulated=bool(simulated.all()) and len(simulated) > 0,
        rules=found.rules,
        repeated=found.repeated,
    )


_PARTLY = "What is marked simulated describes the offline simulator and the memory systems, never a language model."


def _with_keys(result: object) -> pd.DataFrame:
    """The table with its named index as columns.

    Raises:
        InvalidInputError: It is no table, or two columns have one name.
    """
    if not isinstance(result, pd.DataFrame):
        raise InvalidInputError(
            f"this is no table of metrics but {type(result).__name__}; give what {_MADE_BY} returns"
        )
    if any(name is not None for name in result.index.names):
        result = result.reset_index()
    result = result.rename(columns=str)
    if not result.columns.is_unique:
        raise InvalidInputError("two columns of the table have the same name; rename one of them")
    return result


_KINDS = {
    "a comparison": {"metric", "n_only_a", "a", "b", "difference"},
    "base_rate": {"objective", "n_met", "base_rate"},
    "unit": {"unit", "stage", "n", "of", "share"},
    "failed_check": {"failed_check", "n", "of", "share"},
}
"""The columns that tell one table from another: a key may bear the name of one of them."""


def _kind(names: Sequence[str]) -> str:
    if "simulated" in names:
        for kind, columns in _KINDS.items():
            if columns <= {*names}:
                return kind
        shown = {name for name in names if name in METRICS}
        if shown == {"RSR", "BRT_given_R"} and {*DELIVERIES} & {*names}:
            return "delivery"
        if shown:
            return "groups"
    raise InvalidInputError(f"this is no table of metrics; give what {_MADE_BY} of memorydojo.metrics returns")


def _title(result: pd.DataFrame) -> str:
    return str(result.attrs.get("title", "Metrics by distance" if "distance" in result.columns else "Metrics"))


_TITLES = {
    "a comparison": "Difference between two conditions, paired by trajectory",
    "base_rate": "Base rates: clean sessions that meet an objective anyway",
    "unit": "Funnel: how far the payload came, of all that was planned",
    "failed_check": "Later sessions by the earliest check that the payload failed",
    "delivery": "Retrieval by what delivered the payload",
}


def _groups(result: pd.DataFrame, *, interval: str, limit: int | None) -> View:
    """A row for each metric and a column for each group."""
    names = [str(name) for name in result.columns]
    counts = [name for name in _HEADS if name in names and name.startswith("n_")]
    metrics = [name for name in METRICS if name in names]
    numbers = {*counts, *metrics, *(f"{name}_{end}" for name in metrics for end in ("low", "high"))}
    keys = [name for name in names if name not in numbers and name != "simulated"]
    if result.duplicated(keys).any() if keys else len(result) > 1:
        keys.append("simulated")  # asked for as a key, it is what tells groups apart
    groups, more = cut([row for _, row in result.iterrows()], "group", limit=limit)
    rows = [["simulated", *(_text(row["simulated"]) for row in groups)]]
    rows += [[_HEADS[name], *(_text(row[name], "-") for row in groups)] for name in counts]
    rows += [[name.replace("_", " "), *(_percent(row, name) for row in groups)] for name in metrics]
    heads = ["\n".join(plain(f"{key}={_text(row[key])}") for key in keys) or "all runs" for row in groups]
    return View(
        columns=[Column(f"percent{interval}", whole=True), *(Column(head, number=True) for head in heads)],
        rows=rows,
        more=more,
        rules=frozenset({1 + len(counts)}),
    )


def _comparison(result: pd.DataFrame, *, sides: tuple[str, str], limit: int | None) -> View:
    """A row for each group and metric that both sides have."""
    names = [str(name) for name in result.columns]
    keys = [name for name in names[: names.index("metric")] if name != "simulated" or _varies(result, [name])]
    there = result["difference"].notna()
    notes = []
    if there.any() and not there.all():
        lost = ", ".join(dict.fromkeys(str(name).replace("_", " ") for name in result.loc[~there, "metric"]))
        notes.append(f"Left out where a side has no such metric: {lost}.")
        result = result[there]
    both = f"{sides[0]} / {sides[1]}"
    heads: dict[str, Callable[[Any], str]] = {"trajectories": lambda row: _text(row["n_trajectories"])}
    heads["left out"] = lambda row: f"{row['n_only_a']} / {row['n_only_b']}"
    heads["runs"] = lambda row: f"{row['n_runs_a']} / {row['n_runs_b']}"
    varying = {head: of for (head, of), one in zip(heads.items(), _OF_GROUPS, strict=True) if _varies(result, one)}
    if len(result) and len(varying) < len(heads):
        same = "; ".join(f"{head}: {of(result.iloc[0])}" for head, of in heads.items() if head not in varying)
        notes.append(f"{same[:1].upper()}{same[1:]}.")
    notes.append(f"Left out: trajectories that only one side has. Left out and runs: {both}.")
    columns: list[Column | str] = [
        *keys,
        "metric",
        Column(f"{sides[0]} %", number=True),
        Column(f"{sides[1]} %", number=True),
    ]
    columns.append(Column("difference", number=True))
    if "sign" in names:
        columns.append("sign")
        notes.append("Sign: + or - where the whole interval lies on that side of 0, else 0.")
    shown, more = cut([row for _, row in result.iterrows()], "row", limit=limit)
    rows = []
    for row in shown:
        sign = ["" if pd.isna(row["sign"]) else str(row["sign"])] if "sign" in names else []
        front = [*(_text(row[key]) for key in keys), str(row["metric"]).replace("_", " ")]
        values = (_percent(row, name) for name in ("a", "b", "difference"))
        rows.append([*front, *values, *sign, *(of(row) for of in varying.values())])
    columns += [Column(head, number=True) for head in varying]
    return View(columns=columns, rows=rows, more=more, notes=notes, repeated=len(keys) + 1)


def _varies(result: pd.DataFrame, names: Sequence[str]) -> bool:
    return any(result[name].nunique(dropna=False) > 1 for name in names)


def _rows(result: pd.DataFrame, *, limit: int | None) -> View:
    """Base rates or shares row by row."""
    ends = {f"{name}_{end}" for name in _FRACTIONS for end in ("low", "high")}
    names = [str(name) for name in result.columns if name not in ends]
    left_out = {*([] if _varies(result, ["simulated"]) else ["simulated"])}
    if "base_rate" not in names:
        left_out.add("n_trajectories")
    names = [name for name in names if name not in left_out]
    numbers = [name for name in names if name in (*_FRACTIONS, "n", "of") or name.startswith("n_")]
    shown, more = cut([row for _, row in result.iterrows()], "row", limit=limit)
    return View(
        columns=[Column(_HEADS.get(name, name), number=name in numbers) for name in names],
        rows=[[_percent(row, name) if name in _FRACTIONS else _text(row[name]) for name in names] for row in shown],
        more=more,
        repeated=next((at for at, name in enumerate(names) if name in numbers), 1) or 1,
    )


def _text(value: Any, nothing: str = "none") -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return nothing if pd.isna(value) else str(value)


def _percent(row: "pd.Series[Any] | Mapping[str, Any]", name: str) -> str:
    """A fraction in percent with its interval; a dash where it is undefined."""
    if pd.isna(row[name]):
        return "-"
    low, high = row.get(f"{name}_low", np.nan), row.get(f"{name}_high", np.nan)
    value = f"{100 * row[name]:.2f}"
    return value if pd.isna(low) else f"{value} [{100 * low:.2f}, {100 * high:.2f}]"
