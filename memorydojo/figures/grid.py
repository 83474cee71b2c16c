"""The heatmap of a metric over two keys."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize

from memorydojo import metrics as md
from memorydojo.figures._canvas import Figure, finished, label, percent, sheet, shown, slant
from memorydojo.figures._rows import NOTHING, check_metric, names, needs, rows_for, simulated, values


def heatmap(
    data: pd.DataFrame,
    *,
    metric: str = "BRT",
    rows: str = "memory",
    columns: str = "model",
    order: Sequence[object] | None = None,
) -> Figure:
    """A metric by memory system and model, in percent, with its interval in each cell (the paper's Figure 5b).

    Args:
        data: A session table; or the result of ``metrics.summarize(..., by=[rows, columns])``; or
            ``published.table(6)``.
        metric: Any metric.
        rows: The key from top to bottom.
        columns: The key from left to right.
        order: The values of ``rows`` to draw; None for all.

    Raises:
        InvalidInputError: The table cannot make this figure; the message says what is missing.
        UnknownNameError: A column or the metric is not there.
    """
    check_metric(metric)
    table = rows_for(data, lambda given: md.summarize(given, by=[rows, columns]))
    needs(
        table, [rows, columns, metric], figure="heatmap", made_by=f"metrics.summarize(..., by=[{rows!r}, {columns!r}])"
    )
    down, across = names(table, rows, order), names(table, columns)
    found = values(table, [rows, columns], metric, figure="heatmap")
    cells = [[found.get((row, column), NOTHING) for column in across] for row in down]
    numbers = np.array([[cell.value for cell in line] for line in cells])
    wide, tall = 2.6 + 1.15 * len(across), 1.3 + 0.55 * len(down)
    figure, (axes,) = sheet(wide, tall, mark=simulated(table, {rows: down}), entries=[])
    scale = Normalize(0, float(np.nanmax(numbers)) or 1.0)
    image = axes.imshow(numbers, cmap="cividis", norm=scale, aspect="auto")
    for y, line in enumerate(cells):
        for x, cell in enumerate(line):
            text = "n/a" if np.isnan(cell.value) else f"{100 * cell.value:.1f}"
            if cell.has_interval:
                text += f"\n{100 * cell.low:.1f} to {100 * cell.high:.1f}"
            bright = np.isnan(cell.value) or scale(cell.value) > 0.55
            axes.text(
                x, y, text, ha="center", va="center", fontsize=8, color="black" if bright else "white", gid="cell"
            )
    labels = [label(name) for name in across]
    axes.set_xticks(range(len(across)), labels)
    axes.set_yticks(range(len(down)), [label(name) for name in down])
    slant(axes, labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, label=f"{shown(metric)} (%)")
    percent(bar.ax.yaxis)
    return finished(figure)
