"""Groups, conditions, missing values and errors of the summaries."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics import METRICS, by_distance, summarize
from memorydojo.runs.table import empty_session_table

RunRows = Callable[..., list[dict[str, Any]]]
ATTACK_ONLY = [name for name in METRICS if name not in ("TU", "MU")]


def test_clean_and_poisoned_runs_never_share_a_row(two_trajectories: pd.DataFrame) -> None:
    result = summarize(two_trajectories, by="memory", intervals=False)
    assert list(result.columns[:3]) == ["memory", "condition", "simulated"]
    assert list(result["condition"]) == ["clean", "poisoned"] * 2
    assert list(result["TU"]) == [0.75, 0.5] * 2
    assert result.loc[result["condition"] == "clean", ATTACK_ONLY].isna().all(axis=None)
    assert list(result.loc[result["condition"] == "clean", "n_later"]) == [0, 0]


def test_no_condition_is_added_where_the_keys_separate_them(two_trajectories: pd.DataFrame) -> None:
    labelled = two_trajectories.assign(attack=two_trajectories["insertion_session"].notna())
    assert "condition" not in summarize(labelled, by="attack").columns
    assert "condition" not in summarize(labelled[labelled["attack"]]).columns


def test_an_own_condition_column_that_mixes_is_refused(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="rename that column"):
        summarize(two_trajectories.assign(condition="all"), by="condition")


def test_null_keys_are_a_group_of_their_own_and_come_last(two_trajectories: pd.DataFrame) -> None:
    result = summarize(
        two_trajectories.assign(defense=two_trajectories["memory"].replace("vector", None)), by="defense"
    )
    assert list(result["defense"].isna()) == [False, False, True, True]
    assert result["n_runs"].sum() == 8


def test_groups_are_ordered_by_their_keys(run_rows: RunRows) -> None:
    rows = [row for n in (10, 2, 1) for row in run_rows(f"r{n}", ["slack"] * 2, k=n, payload_id=str(n % 2))]
    result = summarize(pd.DataFrame(rows), by=["payload_id", "k"], intervals=False)
    assert list(zip(result["payload_id"], result["k"], strict=True)) == [("0", 2), ("0", 10), ("1", 1)]


def test_keys_of_several_types_are_grouped(run_rows: RunRows) -> None:
    rows = [row for n, k in enumerate(["x", 1, 2.5]) for row in run_rows(f"r{n}", ["slack"] * 2, k=k)]
    assert len(summarize(pd.DataFrame(rows), by="k", intervals=False)) == 3


def test_a_group_is_simulated_if_any_run_of_it_is(two_trajectories: pd.DataFrame) -> None:
    assert not summarize(two_trajectories)["simulated"].any()
    table = two_trajectories.assign(simulated=two_trajectories["run_id"] == "mem0-t1-p")
    result = summarize(table, by="memory")
    marked = result.loc[result["simulated"], ["memory", "condition"]]
    assert marked.to_numpy().tolist() == [["mem0", "poisoned"]]
    assert result["simulated"].dtype == bool


def test_simulated_can_be_a_key(two_trajectories: pd.DataFrame) -> None:
    table = two_trajectories.assign(simulated=two_trajectories["memory"] == "mem0")
    result = summarize(table, by="simulated", intervals=False)
    assert list(result.columns).count("simulated") == 1
    assert list(result["simulated"]) == [False, False, True, True]


def test_memory_utility_covers_the_runs_with_a_question(run_rows: RunRows) -> None:
    answers = [True, False, True, None]
    rows = [row for n, a in enumerate(answers) for row in run_rows(f"r{n}", ["slack"] * 3, memory_correct=a)]
    assert summarize(pd.DataFrame(rows)).iloc[0]["MU"] == pytest.approx(2 / 3)


def test_an_empty_table_gives_one_row_of_nothing_or_no_groups() -> None:
    row = summarize(empty_session_table()).iloc[0]
    assert row["n_runs"] == 0
    assert row[list(METRICS)].isna().all()
    grouped = summarize(empty_session_table(), by=["memory", "condition"])
    assert len(grouped) == 0
    assert list(grouped.columns[:2]) == ["memory", "condition"]
    assert len(by_distance(empty_session_table(), by="memory")) == 0
    assert len(by_distance(empty_session_table())) == 4


def test_every_metric_has_its_interval_beside_it(two_trajectories: pd.DataFrame) -> None:
    columns = list(summarize(two_trajectories).columns)
    for name in METRICS:
        at = columns.index(name)
        assert columns[at : at + 3] == [name, f"{name}_low", f"{name}_high"]
    assert not [
        c for c in map(str, summarize(two_trajectories, intervals=False).columns) if c.endswith(("_low", "_high"))
    ]


def test_an_objective_without_a_domain_is_in_neither_part(run_rows: RunRows) -> None:
    table = pd.DataFrame(run_rows("r", ["slack"] * 3, objective_domain=None))
    assert [summarize(table, part=p)["n_runs"].iloc[0] for p in ("within-domain", "cross-domain")] == [0, 0]


def test_an_unknown_column_names_the_nearest(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="'memori'; did you mean 'memory'"):
        summarize(two_trajectories, by="memori")


def test_an_unknown_part_is_refused(two_trajectories: pd.DataFrame) -> None:
    part: Any = "within"
    with pytest.raises(UnknownNameError, match="within-domain"):
        summarize(two_trajectories, part=part)


def test_a_key_with_the_name_of_a_result_column_is_refused(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match=r"table\.assign\(my_n_sessions"):
        summarize(two_trajectories, by="n_sessions")


def test_keys_that_cannot_be_compared_are_refused(run_rows: RunRows) -> None:
    with pytest.raises(InvalidInputError, match="lists or dicts"):
        summarize(pd.DataFrame(run_rows("r", ["slack"] * 2, tags=["a"])), by="tags")


def test_a_broken_table_is_refused(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match=r"'mem0-t1-p'.*session 4 has no row"):
        summarize(two_trajectories.drop(index=3))


def test_the_table_that_was_given_is_not_changed(two_trajectories: pd.DataFrame) -> None:
    before = two_trajectories.copy(deep=True)
    summarize(two_trajectories, by="condition")
    pd.testing.assert_frame_equal(two_trajectories, before)
