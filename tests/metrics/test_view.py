"""What tables of metrics look like."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memorydojo as md
from memorydojo.errors import InvalidInputError
from memorydojo.metrics import METRICS, view


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    directory: Path = tmp_path_factory.mktemp("runs")
    for trajectory in md.trajectories.load("banking")[:2]:
        for attack in (None, md.Attack(objective="banking", payload="seed-1")):
            md.run(trajectory, "full_context", directory=directory, attack=attack)
    return md.load_runs(directory).session_table()


def row(shown: Any, name: str) -> list[object]:
    return next([*cells[1:]] for cells in shown.rows if cells[0] == name)


def test_a_summary_has_each_metric_in_percent_with_its_interval(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table, by="condition", replicates=50)
    shown = view(result)
    assert [cells[0] for cells in shown.rows][-len(METRICS) :] == [name.replace("_", " ") for name in METRICS]
    poisoned = result.iloc[1]
    ends = f"[{100 * poisoned['TU_low']:.2f}, {100 * poisoned['TU_high']:.2f}]"
    assert row(shown, "TU")[1] == f"{100 * poisoned['TU']:.2f} {ends}"
    assert row(shown, "ISR")[0] == "-"


def test_simulated_metrics_say_so(table: pd.DataFrame) -> None:
    shown = str(view(md.metrics.summarize(table, intervals=False)))
    assert shown.splitlines()[0] == "Metrics (simulated)"
    assert "never a language model" in shown


def test_metrics_that_are_not_simulated_do_not(table: pd.DataFrame) -> None:
    shown = str(view(md.metrics.summarize(table.assign(simulated=False), intervals=False)))
    assert "(simulated)" not in shown
    assert "language model" not in shown


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (lambda t: md.metrics.by_distance(t, replicates=20), "Metrics by distance"),
        (lambda t: md.metrics.compare(t, "condition", "poisoned", "clean", replicates=20), "Difference between"),
        (lambda t: md.metrics.base_rates(t, replicates=20), "Base rates"),
        (lambda t: md.metrics.funnel(t, replicates=20), "Funnel"),
        (lambda t: md.metrics.losses(t, replicates=20), "Later sessions by the earliest check"),
        (lambda t: md.metrics.by_delivery(t, "kind", replicates=20), "Retrieval by what delivered"),
        (lambda _: md.published.table(1), "Table 1: "),
    ],
)
def test_every_table_of_metrics_shows_itself(table: pd.DataFrame, make: Any, title: str) -> None:
    shown = view(make(table))
    assert shown.title.startswith(title)
    assert max(map(len, shown.text(80).splitlines())) <= 80
    assert "<table" in shown._repr_html_()


def test_the_sides_of_a_comparison_are_named(table: pd.DataFrame) -> None:
    result = md.metrics.compare(table, "condition", "poisoned", "clean", replicates=20)
    shown = str(view(result, sides=("poisoned", "clean")))
    assert "poisoned %" in shown
    assert "Trajectories: 2; left out: 0 / 0; runs: 2 / 2." in shown


def test_many_groups_are_cut_with_a_line_that_counts_the_rest(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table, by="run_id", intervals=False)
    assert view(result, limit=1).more == "and 3 more groups"
    assert view(result, limit=None).more == ""


def test_a_hostile_key_is_text(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table.assign(memory="<b>[red]\x1b[0m"), by="memory", intervals=False)
    assert "memory=<b>[red]\\x1b[0m" in view(result).text(200)
    assert "memory=&lt;b&gt;[red]\\x1b[0m" in view(result).html()


def test_another_table_is_an_error_that_names_what_is_wanted() -> None:
    with pytest.raises(InvalidInputError, match="no table of metrics; give what summarize"):
        view(pd.DataFrame({"a": [1]}))
