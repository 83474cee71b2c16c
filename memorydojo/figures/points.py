"""Figures of points and lines: metrics by distance, utility with and without attack, retrieval against reach."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from memorydojo import metrics as md
from memorydojo.errors import InvalidInputError
from memorydojo.figures._canvas import Figure, finished, interval, label, marker, percent, sheet, style
from memorydojo.figures._rows import NOTHING, Value, check_metric, names, needs, rows_for, simulated, values

_UTILITIES = {"TU": "task utility", "MU": "memory utility"}
_DODGE = 0.06
"""By how much the lines of neighbouring groups are set apart, so that their intervals do not hide each other."""


def by_distance(
    data: pd.DataFrame,
    *,
    by: str = "memory",
    metrics: Sequence[str] = ("RSR", "BRT"),
    order: Sequence[object] | None = None,
) -> Figure:
    """Retrieval and reach by how many sessions lie since the insertion (the paper's Figure 6b).

    Args:
        data: A session table, or the result of ``metrics.by_distance(..., by=by)``.
        by: The key that has a line for each value.
        metrics: One panel each: RSR, BRT or both.
        order: The values of the key to draw; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column or a metric is not there.
    """
    for metric in metrics:
        check_metric(metric)
    rows = rows_for(data, lambda table: md.by_distance(table, by=by))
    made_by = f"metrics.by_distance(..., by={by!r})"
    needs(rows, [by, "distance", *metrics], figure="by_distance", made_by=made_by)
    drawn, bins = names(rows, by, order), [name for name, _ in md.DISTANCES]
    entries = [marker(name, number, line=True) for number, name in enumerate(drawn)]
    mark, wide = simulated(rows, {by: drawn}), 3.1 * len(metrics) + 0.4
    figure, panels = sheet(wide, 3.0, mark=mark, entries=entries, panels=(1, len(metrics)))
    for axes, metric in zip(panels, metrics, strict=True):
        found = values(rows, [by, "distance"], metric, figure="by_distance")
        for number, name in enumerate(drawn):
            shift = (number - (len(drawn) - 1) / 2) * _DODGE
            line = [found.get((name, distance), NOTHING) for distance in bins]
            _line(axes, [at + shift for at in range(len(bins))], line, name, number)
        axes.set_xticks(range(len(bins)), bins)
        axes.set_xlim(-0.5, len(bins) - 0.5)
        axes.set_ylim(0, 1.05 * max(axes.dataLim.y1, 0.05))  # room for a marker at the top
        axes.set(xlabel="sessions after the insertion", ylabel=f"{metric} (%)")
        percent(axes.yaxis)
        axes.grid(axis="y", linewidth=0.4)
    return finished(figure)


def utility(
    data: pd.DataFrame,
    *,
    metric: str = "MU",
    by: str = "memory",
    order: Sequence[object] | None = None,
) -> Figure:
    """Memory or task utility under attack against the same without (the paper's Figures 7 and 14).

    On the dashed line the attack costs nothing; below it, it does. Whether a difference is more than chance is for
    ``metrics.compare(table, "condition", "poisoned", "clean")``, which pairs the runs by trajectory.

    Args:
        data: A session table, or the result of ``metrics.summarize(..., by=[by, "condition"])``.
        metric: ``"MU"`` or ``"TU"``.
        by: The key that has a point for each value.
        order: The values of the key to draw; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column is not there.
    """
    if metric not in _UTILITIES:
        raise InvalidInputError(f"this figure shows TU or MU, and {metric!r} was asked for")
    rows = rows_for(data, lambda table: md.summarize(table, by=[by, "condition"]))
    made_by = f"metrics.summarize(..., by=[{by!r}, 'condition'])"
    needs(rows, [by, "condition", metric], figure="utility", made_by=made_by)
    if rows[metric].isna().all() and metric == "MU":
        raise InvalidInputError(
            "the figure 'utility' needs memory utility (MU), and no run has a held-out question; only runs of the "
            "history-prefixed collection have one. Task utility is always there: metric='TU'"
        )
    found = values(rows, [by, "condition"], metric, figure="utility")
    drawn = [name for name in names(rows, by, order) if {(name, "clean"), (name, "poisoned")} <= found.keys()]
    if not drawn:
        raise InvalidInputError(
            f"the figure 'utility' needs {metric} of runs with attack and of runs without, and no {by} has both; run "
            "the same trajectories without an attack too"
        )
    entries = [marker(name, number) for number, name in enumerate(drawn)]
    figure, (axes,) = sheet(4.4, 4.0, mark=simulated(rows, {by: drawn}), entries=entries)
    for number, name in enumerate(drawn):
        _point(axes, found[name, "clean"], found[name, "poisoned"], name, number)
    low, high = _frame(axes)
    axes.plot([low, high], [low, high], color="gray", linestyle="--", linewidth=0.8, zorder=1, gid="no cost")
    axes.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    axes.set(xlabel=f"{_UTILITIES[metric]} without attack (%)", ylabel=f"{_UTILITIES[metric]} under attack (%)")
    percent(axes.xaxis)
    percent(axes.yaxis)
    return finished(figure)


def retrieval_and_reach(
    data: pd.DataFrame,
    *,
    by: str = "memory",
    panels: str | None = "model",
    order: Sequence[object] | None = None,
) -> Figure:
    """How often the payload is retrieved against how often later sessions act on it (the paper's Figure 13).

    Args:
        data: A session table; or the result of ``metrics.summarize(..., by=[panels, by])``; or ``published.table(6)``.
        by: The key that has a point for each value.
        panels: The key that has a panel for each value; None for one panel.
        order: The values of ``by`` to draw; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column is not there.
    """
    keys = [by] if panels is None else [panels, by]
    rows = rows_for(data, lambda table: md.summarize(table, by=keys))
    made_by = f"metrics.summarize(..., by={keys!r})"
    needs(rows, [*keys, "RSR", "BRT"], figure="retrieval_and_reach", made_by=made_by)
    drawn = names(rows, by, order)
    retrieval = values(rows, keys, "RSR", figure="retrieval_and_reach")
    reach = values(rows, keys, "BRT", figure="retrieval_and_reach")
    parts: list[tuple[object, ...]] = [()] if panels is None else [(name,) for name in names(rows, panels)]
    wide = min(len(parts), 2)
    tall = math.ceil(len(parts) / wide)
    entries = [marker(name, number) for number, name in enumerate(drawn)]
    mark, width, height = simulated(rows, {by: drawn}), 1.0 + 3.0 * wide, 0.8 + 2.4 * tall
    figure, sheets = sheet(width, height, mark=mark, entries=entries, panels=(tall, wide))
    for number_of, (axes, part) in enumerate(zip(sheets, parts, strict=False)):
        for number, name in enumerate(drawn):
            if (*part, name) in retrieval:
                _point(axes, retrieval[*part, name], reach.get((*part, name), NOTHING), name, number)
        axes.set_title(label(part[0]) if part else "", fontsize=10)
        axes.grid(linewidth=0.4)
        percent(axes.xaxis)
        percent(axes.yaxis)
        if number_of >= len(parts) - wide:
            axes.set_xlabel("retrieval (RSR, %)")
            axes.tick_params(labelbottom=True)
        if number_of % wide == 0:
            axes.set_ylabel("reach (BRT, %)")
    for axes in sheets[len(parts) :]:
        axes.set_visible(False)
    top = max([0.05, *(value.high if value.has_interval else value.value for value in reach.values())])
    for axes in sheets:
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03 * top, 1.08 * top))
    return finished(figure)


def _line(axes: Axes, at: Sequence[float], line: Sequence[Value], name: object, number: int) -> None:
    how = style(number)
    axes.plot(
        at,
        [value.value for value in line],
        color=how.colour,
        linestyle=how.line,
        marker=how.marker,
        markeredgecolor="black",
        markeredgewidth=0.6,
        label=label(name),
        zorder=5,
    )
    for place, value in zip(at, line, strict=True):
        interval(axes, place, value, colour=how.colour)


def _point(axes: Axes, x: Value, y: Value, name: object, number: int) -> None:
    """A point with an interval along each axis."""
    how = style(number)
    interval(axes, y.value, x, across=True, colour=how.colour)
    interval(axes, x.value, y, colour=how.colour)
    axes.plot(
        [x.value],
        [y.value],
        color=how.colour,
        marker=how.marker,
        markersize=8,
        markeredgecolor="black",
        markeredgewidth=0.6,
        linestyle="none",
        label=label(name),
        zorder=5,
    )


def _frame(axes: Axes) -> tuple[float, float]:
    """Common limits of both axes, with a margin around all that is drawn."""
    low, high = min(axes.dataLim.x0, axes.dataLim.y0), max(axes.dataLim.x1, axes.dataLim.y1)
    margin = 0.05 * max(high - low, 0.1)
    return low - margin, high + margin
