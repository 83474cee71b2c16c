"""What all figures share: the sheet, the styles of groups, safe labels, intervals, the mark of simulated numbers."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure as _MatplotlibFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from memorydojo._display import plain
from memorydojo.figures._rows import Value

LABEL_LENGTH = 28
_MARK_INCHES = 0.34
"""Height of the strip above the axes that the mark has for itself."""
_LINE_INCHES, _ENTRY_INCHES, _CHARACTER_INCHES = 0.24, 0.65, 0.075
"""Of a legend: the height of a line, and the width of an entry without its letters and of a letter, rather too much."""

#: The palette of Okabe and Ito (2008), which people with any kind of colour vision can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_Line = Literal["-", "--", "-.", ":"]
_LINES: tuple[_Line, ...] = ("-", "--", "-.", ":")


class Figure(_MatplotlibFigure):
    """A matplotlib figure that a notebook shows as it is, without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


@dataclass(frozen=True)
class Style:
    """How a group looks: by colour, and by hatch, marker and line for those who do not see it."""

    colour: str
    hatch: str
    marker: str
    line: _Line


def style(number: int) -> Style:
    """The style of the n-th group; the first 64 all differ."""
    shape = number + number // len(COLOURS)
    return Style(
        colour=COLOURS[number % len(COLOURS)],
        hatch=_HATCHES[shape % len(_HATCHES)],
        marker=_MARKERS[shape % len(_MARKERS)],
        line=_LINES[shape % len(_LINES)],
    )


def label(name: object) -> str:
    r"""A name as a label: on one line, not too long, and never read as a formula.

    >>> print(label("$x^2$"))
    \$x^2\$
    """
    shown = plain("none" if name is None else str(name), LABEL_LENGTH)
    # Of labels that begin with an underscore matplotlib makes no entry in a legend.
    return (" " + shown if shown.startswith("_") else shown or "(empty)").replace("$", r"\$")


def sheet(
    width: float,
    height: float,
    *,
    mark: str | None,
    entries: Sequence[Patch | Line2D],
    panels: tuple[int, int] = (1, 1),
) -> tuple[Figure, list[Axes]]:
    """A new figure: panels, a legend below them, and above them the mark of simulated numbers.

    Args:
        width: In inches.
        height: Of the panels, in inches.
        mark: What the mark says, or None.
        entries: What the legend says; none makes no legend.
        panels: How many below each other and beside each other; all share their axes if there are several rows.
    """
    longest = max((len(str(one.get_label())) for one in entries), default=0)
    columns = min(max(int(width / (_ENTRY_INCHES + _CHARACTER_INCHES * longest)), 1), max(len(entries), 1))
    strip = _MARK_INCHES if mark else 0.0
    total = height + strip + _LINE_INCHES * math.ceil(len(entries) / columns)
    figure = Figure(figsize=(width, total), layout=ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - strip / total)))
    shared = panels[0] > 1
    axes = figure.subplots(*panels, squeeze=False, sharex=shared, sharey=shared).ravel().tolist()
    if entries:
        figure.legend(handles=[*entries], loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    if mark:
        figure.text(
            *(1 - 0.08 / width, 1 - 0.06 / total),
            mark,
            ha="right",
            va="top",
            fontsize=9,
            fontweight="bold",
            color="white",
            bbox={"boxstyle": "round,pad=0.3", "facecolor": "black", "edgecolor": "none"},
            gid="simulated",
        )
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
    return figure, axes


def percent(axis: Any) -> None:
    """Fractions shown as percent."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}"))


def interval(axes: Axes, at: float, value: Value, *, across: bool = False, colour: str = "black") -> None:
    """Draws an interval as a line with caps, if there is one.

    Args:
        axes: Where.
        at: The place on the axis of the groups, or the value on the other axis.
        value: The interval.
        across: Whether it lies along the x axis.
        colour: Of the line.
    """
    if not value.has_interval:
        return
    ends, place = (value.low, value.high), (at, at)
    axes.plot(
        *((ends, place) if across else (place, ends)),
        color=colour,
        linewidth=1,
        marker="|" if across else "_",
        markersize=5,
        gid="interval",
        zorder=4,
    )


def patch(name: object, number: int) -> Patch:
    """The entry of a legend for bars."""
    how = style(number)
    return Patch(facecolor=how.colour, hatch=how.hatch, edgecolor="black", linewidth=0.6, label=label(name))


def marker(name: object, number: int, *, line: bool = False) -> Line2D:
    """The entry of a legend for markers or lines."""
    how = style(number)
    return Line2D(
        [],
        [],
        color=how.colour,
        marker=how.marker,
        markeredgecolor="black",
        markeredgewidth=0.6,
        linestyle=how.line if line else "none",
        label=label(name),
    )


def slant(axes: Axes, labels: Sequence[str]) -> None:
    """Turns the labels of the x axis where they are too long to stand beside each other."""
    if max(map(len, labels)) > 10:
        for tick in axes.get_xticklabels():
            tick.set(rotation=25, ha="right", rotation_mode="anchor")


def shown(metric: str) -> str:
    """The name of a metric as the paper writes it."""
    return metric.replace("_given_", " given ")


def finished(figure: Figure) -> Figure:
    """The figure, with no text that a user's settings could hand to LaTeX."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_ticklabels()  # makes the labels, which otherwise come into being when the figure is drawn
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_usetex(False)
    return figure
