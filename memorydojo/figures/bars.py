"""Figures of bars: gains, parts, domains, and the funnel."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from memorydojo import metrics as md
from memorydojo.figures._canvas import Figure, finished, interval, label, patch, percent, sheet, shown, slant, style
from memorydojo.figures._rows import NOTHING, Key, Value, check_metric, names, needs, rows_for, simulated, values

_WIDTH = 0.8
"""Of all bars of one place together."""


def gains(
    data: pd.DataFrame,
    *,
    column: str = "payload_source",
    a: object = "optimized",
    b: object = "seed",
    by: str = "memory",
    metrics: Sequence[str] = ("BR", "BRT"),
    order: Sequence[object] | None = None,
) -> Figure:
    """How much more one condition reaches than another, with paired intervals (the paper's Figure 5a).

    Args:
        data: A session table, or the result of ``metrics.compare(..., by=by)``.
        column: In a session table: what tells the conditions apart.
        a: Its value in the one.
        b: Its value in the other.
        by: The key that has a pair of bars for each value.
        metrics: What is compared.
        order: The values of the key to draw, from top to bottom; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column, a metric or a condition is not there.
    """
    for metric in metrics:
        check_metric(metric)
    rows = rows_for(data, lambda table: md.compare(table, column, a, b, by=by))
    needs(rows, [by, "metric", "difference"], figure="gains", made_by=f"metrics.compare(..., by={by!r})")
    rows = rows[rows["metric"].isin([*metrics])]
    needs(rows, [], figure="gains", made_by="metrics.compare")
    drawn = names(rows, by, order)
    found = values(rows, [by, "metric"], "difference", figure="gains")
    entries = [patch(metric, number) for number, metric in enumerate(metrics)]
    figure, (axes,) = sheet(6, 0.8 + 0.5 * len(drawn), mark=simulated(rows, {by: drawn}), entries=entries)
    _bars(axes, found, drawn, metrics, across=True)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("difference (percentage points)")
    return finished(figure)


def within_cross(
    data: pd.DataFrame,
    *,
    metric: str = "BRT",
    by: str = "memory",
    order: Sequence[object] | None = None,
) -> Figure:
    """A metric of later sessions within the objective's domain and outside of it (the paper's Figure 6a).

    Args:
        data: A session table; or the results of ``metrics.summarize(..., part=...)`` for both parts, one below the
            other, with a column ``part``; or ``published.table(8)``.
        metric: A metric of later sessions.
        by: The key that has a pair of bars for each value.
        order: The values of the key to draw, from left to right; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column or the metric is not there.
    """

    def parts(table: pd.DataFrame) -> pd.DataFrame:
        each = [md.summarize(table, by=by, part=part).assign(part=part) for part in md.PARTS]
        return pd.concat(each, ignore_index=True)

    check_metric(metric)
    rows = rows_for(data, parts)
    needs(rows, [by, "part", metric], figure="within_cross", made_by="metrics.summarize(..., part=...) with its part")
    drawn = names(rows, by, order)
    found = values(rows, [by, "part"], metric, figure="within_cross")
    entries = [patch(part, number) for number, part in enumerate(md.PARTS)]
    wide = 1.6 + 0.9 * max(len(drawn), 3)
    figure, (axes,) = sheet(wide, 3.0, mark=simulated(rows, {by: drawn}), entries=entries)
    _bars(axes, found, drawn, md.PARTS)
    axes.set_ylabel(f"{shown(metric)} (%)")
    return finished(figure)


def by_domain(
    data: pd.DataFrame,
    *,
    metric: str = "BRT",
    by: str = "memory",
    domain: str = "objective_domain",
    order: Sequence[object] | None = None,
) -> Figure:
    """A metric by domain and memory system (the paper's Figure 12, in which task and objective share the domain).

    Args:
        data: A session table, or the result of ``metrics.summarize(..., by=[domain, by])``.
        metric: Any metric.
        by: The key that has a bar in each domain.
        domain: The column of the domains.
        order: The values of ``by`` to draw, from left to right; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column or the metric is not there.
    """
    check_metric(metric)
    rows = rows_for(data, lambda table: _attacked(md.summarize(table, by=[domain, by]), domain))
    needs(rows, [domain, by, metric], figure="by_domain", made_by=f"metrics.summarize(..., by=[{domain!r}, {by!r}])")
    drawn, domains = names(rows, by, order), names(rows, domain)
    found = values(rows, [domain, by], metric, figure="by_domain")
    entries = [patch(name, number) for number, name in enumerate(drawn)]
    wide = 1.6 + 1.2 * max(len(domains), 3)
    figure, (axes,) = sheet(wide, 3.0, mark=simulated(rows, {by: drawn}), entries=entries)
    _bars(axes, found, domains, drawn)
    axes.set_ylabel(f"{shown(metric)} (%)")
    return finished(figure)


def funnel(
    data: pd.DataFrame,
    *,
    unit: str = "later sessions",
    by: str = "memory",
    order: Sequence[object] | None = None,
) -> Figure:
    """How far the payload came: entered, stored, retrieved, acted on; each of all that was planned.

    Args:
        data: A session table, or the result of ``metrics.funnel(..., by=by)``.
        unit: ``"later sessions"`` or ``"runs"``.
        by: The key that has a bar at each stage.
        order: The values of the key to draw, from left to right; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column is not there.
    """
    rows = rows_for(data, lambda table: md.funnel(table, by=by))
    needs(rows, [by, "unit", "stage", "share"], figure="funnel", made_by=f"metrics.funnel(..., by={by!r})")
    rows = rows[rows["unit"] == unit]
    needs(rows, [], figure=f"funnel of {unit}", made_by="metrics.funnel")
    drawn, stages = names(rows, by, order), names(rows, "stage")
    found = values(rows, ["stage", by], "share", figure="funnel")
    entries = [patch(name, number) for number, name in enumerate(drawn)]
    wide = 1.6 + 1.2 * max(len(stages), 3)
    figure, (axes,) = sheet(wide, 3.0, mark=simulated(rows, {by: drawn}), entries=entries)
    _bars(axes, found, stages, drawn)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel(f"share of all planned {unit} (%)")
    return finished(figure)


def _attacked(rows: pd.DataFrame, domain: str) -> pd.DataFrame:
    """Without the clean runs, which have no objective and so no domain of one."""
    return rows[rows[domain].notna()] if domain == "objective_domain" else rows


def _bars(
    axes: Axes, found: Mapping[Key, Value], places: Sequence[object], groups: Sequence[object], *, across: bool = False
) -> None:
    """At each place one bar a group, with its interval; ``n/a`` where a group has no value."""
    width = _WIDTH / len(groups)
    for number, group in enumerate(groups):
        at = [place + (number - (len(groups) - 1) / 2) * width for place in range(len(places))]
        drawn = [found.get((place, group), NOTHING) for place in places]
        how = style(number)
        draw = axes.barh if across else axes.bar
        draw(
            at,
            [value.value for value in drawn],
            width,
            color=how.colour,
            hatch=how.hatch,
            edgecolor="black",
            linewidth=0.6,
            label=label(group),
        )
        for place, value in zip(at, drawn, strict=True):
            interval(axes, place, value, across=across)
            if value.value != value.value:
                x, y = (0.0, place) if across else (place, 0.0)
                axes.text(
                    x,
                    y,
                    " n/a",
                    fontsize=7,
                    rotation=0 if across else 90,
                    va="center" if across else "bottom",
                    ha="left" if across else "center",
                    color="dimgray",
                )
    ticks, values_axis = (axes.yaxis, axes.xaxis) if across else (axes.xaxis, axes.yaxis)
    labels = [label(place) for place in places]
    ticks.set_ticks(range(len(places)), labels)
    if not across:
        slant(axes, labels)
    percent(values_axis)
    axes.grid(axis="x" if across else "y", linewidth=0.4)
