"""What tables of metrics look like."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memorydojo as md
from memorydojo.errors import InvalidInputError
from memorydojo.metrics import METRICS, view
from memorydojo.view import Column


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    directory: Path = tmp_path_factory.mktemp("runs")
    for trajectory in md.trajectories.load("banking")[:2]:
        for attack in (None, md.Attack(objective="banking", payload="seed-1")):
            md.run(trajectory, "full_context", directory=directory, attack=attack)
    found = md.load_runs(directory).session_table()
    return found.assign(condition_=found["insertion_session"].isna().map({True: "clean", False: "poisoned"}))


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


def test_the_sides_of_a_comparison_are_what_was_compared(table: pd.DataFrame) -> None:
    result = md.metrics.compare(table, "condition", "poisoned", "clean", intervals=False)
    assert "clean %" in str(view(result))
    assert "clean %" in str(view(result[result["metric"] == "TU"]))


def test_where_there_is_no_interval_none_is_explained(table: pd.DataFrame) -> None:
    one = table[table["trajectory_id"] == table["trajectory_id"].iloc[0]]
    shown = str(view(md.metrics.summarize(one)))
    assert "[" not in shown
    assert "In brackets" not in shown


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


def test_a_session_table_is_no_table_of_metrics(table: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="no table of metrics; give what summarize"):
        view(table)


@pytest.mark.parametrize("name", ["failed_check", "unit", "base_rate", "difference", "a", "x_low", "route"])
def test_a_key_may_have_any_name(table: pd.DataFrame, name: str) -> None:
    result = md.metrics.summarize(table.assign(**{name: table["condition_"]}), by=name, replicates=20)
    shown = view(result)
    assert shown.title == "Metrics"
    heads = [column.name if isinstance(column, Column) else column for column in shown.columns[1:]]
    assert [head.splitlines()[0] for head in heads] == [f"{name}=clean", f"{name}=poisoned"]
    assert row(shown, "TU")[0] == "100.00 [100.00, 100.00]"


def test_keys_are_found_wherever_they_stand(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table, by=["memory", "condition"], intervals=False)
    usual = [[*cells] for cells in view(result).rows]
    turned = result[[*reversed(result.columns)]]
    assert [[*cells] for cells in view(turned).rows] == usual
    assert "condition=clean" in str(view(turned))
    assert str(view(result.set_index(["memory", "condition"]))) == str(view(result))


def test_groups_by_simulated_are_told_apart(table: pd.DataFrame) -> None:
    mixed = table.assign(simulated=table["condition_"] == "clean", run_id=table["run_id"])
    shown = str(view(md.metrics.summarize(mixed, by="simulated", part="within-domain", intervals=False)))
    assert "simulated=no" in shown
    assert "simulated=yes" in shown


def test_the_confidence_is_the_one_that_was_asked_for(table: pd.DataFrame) -> None:
    for make in (md.metrics.summarize, md.metrics.losses, md.metrics.by_distance, md.metrics.base_rates):
        assert "In brackets: 50 % intervals" in str(view(make(table, confidence=0.5, replicates=20)))
    unknown = md.metrics.summarize(table, replicates=20)
    unknown.attrs.clear()
    assert "In brackets: intervals" in str(view(unknown))


def test_a_part_of_a_summary_keeps_its_name(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table, intervals=False)
    assert view(result[["condition", "simulated", "n_runs", "RSR", "BRT_given_R"]]).title == "Metrics"


def test_a_mixture_is_no_simulated_table(table: pd.DataFrame) -> None:
    both = md.published.beside(md.metrics.summarize(table[table["insertion_session"].notna()], by="memory"), 1)
    shown = str(view(both, limit=None))
    assert shown.startswith("Metrics (partly simulated)")
    assert "What is marked simulated describes the offline simulator" in shown


def test_a_line_break_in_a_key_makes_no_line(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table.assign(memory="vector\ncondition=clean"), by="memory", intervals=False)
    assert r"memory=vector\ncondition=clean" in view(result).text(200)


@pytest.mark.parametrize("wrong", [None, [], pd.Series([1.0])])
def test_what_is_no_table_is_an_error(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="no table of metrics"):
        view(wrong)


def test_doubled_columns_are_an_error(table: pd.DataFrame) -> None:
    result = md.metrics.summarize(table, intervals=False)
    with pytest.raises(InvalidInputError, match="same name"):
        view(pd.concat([result, result[["RSR"]]], axis=1))
