"""What a figure draws are the numbers and intervals of the metrics, with labels, and the mark of simulated ones."""

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from memorydojo import figures, published
from memorydojo import metrics as md
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.figures._canvas import label, style

HOSTILE = [r"$\frac{1}{0}$", "_hidden", "x" * 400, "}{%s %n <script>", "a\u202eb\x1b[31m\n$", "$", ""]
ALL: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "gains": figures.gains,
    "heatmap": lambda table: figures.heatmap(table[table["insertion_session"].notna()]),
    "within_cross": figures.within_cross,
    "by_domain": figures.by_domain,
    "funnel": figures.funnel,
    "by_distance": figures.by_distance,
    "utility": figures.utility,
    "retrieval_and_reach": figures.retrieval_and_reach,
}


@pytest.fixture(params=ALL)
def draw(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame], Figure]:
    return ALL[request.param]


def bars(axes: Axes) -> dict[str, list[float]]:
    """The values of the bars of each group."""
    found = {}
    for container in axes.containers:
        assert isinstance(container, BarContainer)
        across = container.orientation == "horizontal"
        patches = container.patches
        found[str(container.get_label())] = [float(p.get_width() if across else p.get_height()) for p in patches]
    return found


def lines(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """The points of each group: places and values."""
    return {
        str(line.get_label()): (_floats(line.get_xdata()), _floats(line.get_ydata()))
        for line in axes.lines
        if line.get_gid() not in ("interval", "no cost") and not str(line.get_label()).startswith("_")
    }


def intervals(axes: Axes, *, across: bool = False) -> set[tuple[float, float]]:
    """The ends of all intervals along one axis."""
    ends = set()
    for line in axes.lines:
        x, y = _floats(line.get_xdata()), _floats(line.get_ydata())
        if line.get_gid() == "interval" and line.get_marker() == ("|" if across else "_"):
            ends.add(tuple(x if across else y))
    return ends  # type: ignore[return-value]


def _floats(values: Any) -> list[float]:
    return [float(value) for value in values]


def ends(rows: "pd.DataFrame | pd.Series[Any]", column: str) -> set[tuple[float, float]]:
    """The intervals that there are."""
    return {pair for pair in zip(rows[f"{column}_low"], rows[f"{column}_high"], strict=True) if not np.isnan(pair[0])}


def ticks(axes: Axes, axis: str = "x") -> list[str]:
    return [text.get_text() for text in (axes.get_xticklabels() if axis == "x" else axes.get_yticklabels())]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def marks(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts if text.get_gid() == "simulated"]


def test_gains_are_the_paired_differences(one_model: pd.DataFrame) -> None:
    figure = figures.gains(one_model)
    rows = md.compare(one_model, "payload_source", "optimized", "seed", by="memory")
    (axes,) = figure.axes
    for metric in ("BR", "BRT"):
        assert bars(axes)[metric] == rows.loc[rows["metric"] == metric, "difference"].tolist()
    shown = rows[rows["metric"].isin(["BR", "BRT"])]
    assert intervals(axes, across=True) == ends(shown, "difference")
    assert ticks(axes, "y") == ["a-mem", "mem0", "vector"]
    assert legend(figure) == ["BR", "BRT"]
    assert axes.yaxis.get_inverted()


def test_a_heatmap_has_each_value_and_interval(table: pd.DataFrame) -> None:
    attacked = table[table["payload_source"] == "optimized"]
    figure = figures.heatmap(attacked)
    rows = md.summarize(attacked, by=["memory", "model"])
    axes = figure.axes[0]
    image = np.asarray(axes.images[0].get_array())
    assert image.ravel().tolist() == rows["BRT"].tolist()
    cells = [text.get_text() for text in axes.texts if text.get_gid() == "cell"]
    assert cells == [
        f"{100 * value:.1f}\n{100 * low:.1f} to {100 * high:.1f}"
        for value, low, high in zip(rows["BRT"], rows["BRT_low"], rows["BRT_high"], strict=True)
    ]
    assert (ticks(axes), ticks(axes, "y")) == (["one", "two"], ["a-mem", "mem0", "vector"])


def test_parts_are_within_and_cross_domain(one_model: pd.DataFrame) -> None:
    (axes,) = figures.within_cross(one_model).axes
    for part in md.PARTS:
        rows = md.summarize(one_model, by="memory", part=part)
        assert bars(axes)[part] == rows["BRT"].tolist()
        assert ends(rows, "BRT") <= intervals(axes)


def test_domains_have_a_bar_for_each_memory(one_model: pd.DataFrame) -> None:
    figure = figures.by_domain(one_model)
    rows = md.summarize(one_model, by=["objective_domain", "memory"])
    rows = rows[rows["objective_domain"].notna()]
    (axes,) = figure.axes
    for memory, found in rows.groupby("memory"):
        assert bars(axes)[str(memory)] == found["BRT"].tolist()
    assert intervals(axes) == ends(rows, "BRT")
    assert ticks(axes) == ["banking", "slack", "travel", "workspace"]


@pytest.mark.parametrize("unit", ["runs", "later sessions"])
def test_a_funnel_has_every_stage(one_model: pd.DataFrame, unit: str) -> None:
    figure = figures.funnel(one_model, unit=unit)
    rows = md.funnel(one_model, by="memory")
    rows = rows[rows["unit"] == unit]
    (axes,) = figure.axes
    for memory, found in rows.groupby("memory"):
        assert bars(axes)[str(memory)] == found["share"].tolist()
    assert intervals(axes) == ends(rows, "share")
    assert ticks(axes) == list(md.STAGES)
    assert unit in axes.get_ylabel()


def test_distances_are_lines_with_intervals(one_model: pd.DataFrame) -> None:
    figure = figures.by_distance(one_model)
    rows = md.by_distance(one_model, by="memory")
    for axes, metric in zip(figure.axes, ("RSR", "BRT"), strict=True):
        for memory, found in rows.groupby("memory"):
            assert lines(axes)[str(memory)][1] == found[metric].tolist()
        assert intervals(axes) == ends(rows, metric)
        assert ticks(axes) == [name for name, _ in md.DISTANCES]


def test_a_marker_at_all_of_them_is_drawn_whole(one_model: pd.DataFrame) -> None:
    rows = md.by_distance(one_model, by="memory").assign(RSR=1.0, RSR_low=0.97, RSR_high=1.0)
    axes = figures.by_distance(rows).axes[0]
    assert axes.get_ylim() == pytest.approx((0, 1.05))


@pytest.mark.parametrize("metric", ["TU", "MU"])
def test_utility_is_a_point_without_and_with_attack(one_model: pd.DataFrame, metric: str) -> None:
    (axes,) = figures.utility(one_model, metric=metric).axes
    rows = md.summarize(one_model, by=["memory", "condition"]).set_index(["memory", "condition"])
    for memory in ("a-mem", "mem0", "vector"):
        expected = ([rows.loc[(memory, "clean"), metric]], [rows.loc[(memory, "poisoned"), metric]])
        assert lines(axes)[memory] == expected
    assert intervals(axes, across=True) == ends(rows.xs("clean", level="condition"), metric)
    assert intervals(axes) == ends(rows.xs("poisoned", level="condition"), metric)
    assert axes.get_xlim() == axes.get_ylim()


def test_retrieval_against_reach_has_a_panel_for_each_model(table: pd.DataFrame) -> None:
    figure = figures.retrieval_and_reach(table)
    rows = md.summarize(table, by=["model", "memory"])
    rows = rows[rows["condition"] == "poisoned"]
    for axes, model in zip(figure.axes, ("one", "two"), strict=True):
        assert axes.get_title() == model
        of_model = rows[rows["model"] == model].set_index("memory")
        for memory in of_model.index:
            assert lines(axes)[memory] == ([of_model.loc[memory, "RSR"]], [of_model.loc[memory, "BRT"]])
        assert intervals(axes, across=True) == ends(of_model, "RSR")
        assert intervals(axes) == ends(of_model, "BRT")


def test_a_table_of_the_paper_is_drawn_without_intervals() -> None:
    figure = figures.heatmap(published.table(6))
    paper = published.table(6).pivot(index="memory", columns="model", values="BRT")
    axes = figure.axes[0]
    shown = pd.DataFrame(np.asarray(axes.images[0].get_array()), index=ticks(axes, "y"), columns=ticks(axes))
    pd.testing.assert_frame_equal(shown, paper.loc[shown.index, shown.columns], check_names=False)
    assert not any("to" in text.get_text() for text in axes.texts)
    (axes,) = figures.within_cross(published.table(8)).axes
    assert bars(axes)["within-domain"] == published.table(8)["BRT"][:5].tolist()
    assert not intervals(axes)
    assert marks(figure) == []


def test_the_result_of_a_metric_makes_the_same_figure(one_model: pd.DataFrame) -> None:
    rows = md.by_distance(one_model, by="memory", replicates=20)
    figure = figures.by_distance(rows)
    assert intervals(figure.axes[0]) == ends(rows, "RSR")


def test_without_intervals_none_are_drawn(one_model: pd.DataFrame) -> None:
    figure = figures.funnel(md.funnel(one_model, by="memory", intervals=False))
    assert intervals(figure.axes[0]) == set()


def test_a_group_without_a_value_says_so(table: pd.DataFrame) -> None:
    some = table[(table["memory"] != "mem0") | (table["model"] == "one")]
    axes = figures.heatmap(some[some["insertion_session"].notna()]).axes[0]
    assert [t.get_text() for t in axes.texts].count("n/a") == 1
    (axes,) = figures.by_domain(some[(some["memory"] != "mem0") | (some["objective_domain"] != "slack")]).axes
    assert [t.get_text().strip() for t in axes.texts] == ["n/a"]


def test_simulated_numbers_are_marked(draw: Callable[[pd.DataFrame], Figure], table: pd.DataFrame) -> None:
    assert marks(draw(table)) == ["simulated"]
    assert marks(draw(table.assign(simulated=False))) == []
    assert marks(draw(table.assign(simulated=table["memory"] == "mem0"))) == ["partly simulated"]


def test_the_mark_covers_nothing(draw: Callable[[pd.DataFrame], Figure], table: pd.DataFrame) -> None:
    figure = draw(table)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    (mark,) = [text for text in figure.texts if text.get_gid() == "simulated"]
    box = mark.get_window_extent(renderer)
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)
    for axes in figure.axes:
        assert not axes.get_tightbbox(renderer).overlaps(box)  # type: ignore[union-attr]
    for below in figure.legends:
        assert not any(axes.get_tightbbox(renderer).overlaps(below.get_window_extent()) for axes in figure.axes)  # type: ignore[union-attr]


def test_only_drawn_groups_decide_about_the_mark(one_model: pd.DataFrame) -> None:
    some = one_model.assign(simulated=one_model["memory"] == "mem0")
    assert marks(figures.funnel(some, order=["vector", "a-mem"])) == []


def test_an_order_chooses_and_orders(one_model: pd.DataFrame) -> None:
    assert legend(figures.by_distance(one_model, order=["vector", "a-mem"])) == ["vector", "a-mem"]
    with pytest.raises(InvalidInputError, match="letta"):
        figures.by_distance(one_model, order=["letta"])


def test_hostile_names_are_plain_text(draw: Callable[[pd.DataFrame], Figure], table: pd.DataFrame) -> None:
    names = dict(zip(table["memory"].unique(), HOSTILE, strict=False))
    models = dict(zip(table["model"].unique(), HOSTILE[4:], strict=False))
    hostile = table.assign(memory=table["memory"].map(names), model=table["model"].map(models))
    figure = draw(hostile)
    with mpl.rc_context({"text.usetex": False}):
        figure.savefig(io.BytesIO(), format="png")
        figure.savefig(io.BytesIO(), format="svg")
    width, height = figure.get_size_inches()
    assert width < 12
    assert height < 12
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        assert text._preprocess_math(text.get_text())[1] is False  # type: ignore[attr-defined]
        assert not text.get_usetex()
        assert text.get_text().replace("\n", "").isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_label_shows_what_it_says_and_is_in_the_legend(one_model: pd.DataFrame, name: str) -> None:
    memory = one_model["memory"].replace("mem0", name)
    figure = figures.funnel(one_model.assign(memory=memory))
    assert label(name) in legend(figure)
    assert len(label(name).replace(r"\$", "$")) <= 29
    shown = label(name).replace(r"\$", "$").strip()
    assert shown == "(empty)" or name.startswith(shown.removesuffix("…").split("\\")[0])


def test_settings_of_a_user_send_no_name_to_latex(one_model: pd.DataFrame) -> None:
    with mpl.rc_context({"text.usetex": True}):
        figure = figures.funnel(one_model)
        texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
        assert texts
        assert not any(text.get_usetex() for text in texts)


def test_groups_differ_without_colour() -> None:
    styles = [style(number) for number in range(64)]
    assert len({(s.colour, s.hatch, s.marker) for s in styles}) == 64
    assert len({(s.hatch, s.marker) for s in styles[:8]}) == 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: figures.gains(md.summarize(t, by="memory", intervals=False)), "'metric', 'difference'"),
        (lambda t: figures.heatmap(md.summarize(t, by="memory", intervals=False)), "'model'"),
        (lambda t: figures.within_cross(md.summarize(t, by="memory", intervals=False)), "'part'"),
        (lambda t: figures.by_distance(md.summarize(t, by="memory", intervals=False)), "'distance'"),
        (lambda t: figures.funnel(md.losses(t.assign(failed_check="none"), by="memory")), "'unit', 'stage'"),
        (lambda t: figures.utility(t.drop(columns="memory_correct")), "held-out question"),
        (lambda t: figures.utility(t[t["insertion_session"].notna()], metric="TU"), "runs without"),
        (lambda t: figures.utility(t, metric="BRT"), "TU or MU"),
        (lambda t: figures.by_distance(t.iloc[:0]), "no rows|no value"),
        (lambda t: figures.heatmap(md.summarize(t, by=["memory", "model", "payload_source"])), "several for memory="),
        (lambda t: figures.within_cross(t[t["insertion_session"].isna()]), "no value"),
        (lambda t: figures.funnel(t, unit="days"), "funnel of days"),
    ],
)
def test_a_table_that_cannot_make_the_figure_says_why(
    table: pd.DataFrame, make: Callable[[pd.DataFrame], Figure], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(table)


def test_unknown_names_are_named(one_model: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="BRT_given_R"):
        figures.heatmap(one_model, metric="BRT given R")
    with pytest.raises(UnknownNameError, match="memory"):
        figures.by_distance(one_model, by="memmory")


def test_figures_show_themselves_in_notebooks(one_model: pd.DataFrame) -> None:
    png = figures.funnel(one_model)._repr_png_()
    assert png.startswith(b"\x89PNG")


@pytest.mark.slow
def test_figures_do_not_touch_pyplot_or_need_matplotlib_to_be_imported() -> None:
    code = (
        "import sys, memorydojo.figures, memorydojo.published as p\n"
        "assert 'matplotlib' not in sys.modules\n"
        "memorydojo.figures.heatmap(p.table(6))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_matplotlib_the_command_that_adds_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from memorydojo.errors import MissingPackageError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'memorydojo\[figures\]'"):
        _ = figures.heatmap
