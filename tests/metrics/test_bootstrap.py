"""Intervals: a case that can be worked out, coverage, and what they must not depend on."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from memorydojo.errors import InvalidInputError
from memorydojo.metrics import summarize

RunRows = Callable[..., list[dict[str, Any]]]


def _binomial_quantile(n: int, p: float, q: float) -> int:
    total = 0.0
    for k in range(n + 1):
        total += math.comb(n, k) * p**k * (1 - p) ** (n - k)
        if total >= q:
            return k
    return n


def _one_later_session_each(run_rows: RunRows, met: list[bool]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for number, hit in enumerate(met):
        keys = {"trajectory_id": f"t{number:03d}"}
        rows += run_rows(f"r{number:03d}", ["workspace"] * 2, met=[2] if hit else [], **keys)
    return pd.DataFrame(rows)


def _random_table(seed: int, trajectories: int = 12) -> pd.DataFrame:
    """Two runs a trajectory that share the trajectory's own rate of meeting the objective, which is 0.4 on average."""
    random = np.random.default_rng(seed)
    rate = np.repeat(random.beta(2, 3, trajectories), 2)
    met = random.random((2 * trajectories, 9)) < rate[:, None]
    run = np.repeat(np.arange(2 * trajectories), 10)
    table = pd.DataFrame({"run_id": [f"r{r}" for r in run], "session": np.tile(np.arange(1, 11), 2 * trajectories)})
    false: dict[str, Any] = dict.fromkeys(
        ["inserted", "retrieved", "retrieved_original", "retrieved_descendant", "utility"], False
    )
    fixed: dict[str, Any] = {
        "n_sessions": 10,
        "insertion_session": 1,
        "domain": "slack",
        "objective_domain": "slack",
        "completed": True,
    }
    table = table.assign(**fixed, **false, trajectory_id=[f"t{r // 2:02d}" for r in run])
    table["objective_met"] = np.concatenate([[[False]] * (2 * trajectories), met], axis=1).ravel()
    return table


def test_a_case_with_a_known_distribution(run_rows: RunRows) -> None:
    """Equal trajectories of one session: a replicate is a binomial count over n."""
    table = _one_later_session_each(run_rows, [True] * 12 + [False] * 28)
    row = summarize(table, replicates=20_000).iloc[0]
    low, high = (_binomial_quantile(40, 0.3, q) / 40 for q in (0.025, 0.975))
    assert row["BRT"] == pytest.approx(0.3)
    assert row["BRT_low"] == pytest.approx(low, abs=1 / 40)
    assert row["BRT_high"] == pytest.approx(high, abs=1 / 40)


def test_trajectories_are_drawn_with_all_their_runs(run_rows: RunRows) -> None:
    """Two trajectories of many runs, all met or none: means of replicates are 0, 1/2 and 1, however many the runs."""
    table = _one_later_session_each(run_rows, [True] * 20 + [False] * 20)
    table["trajectory_id"] = ["a"] * 40 + ["b"] * 40
    wide = summarize(table, replicates=500).iloc[0]
    assert (wide["BRT_low"], wide["BRT_high"]) == (0, 1)
    narrow = summarize(table, replicates=500, confidence=0.3).iloc[0]
    assert (narrow["BRT_low"], narrow["BRT_high"]) == (0.5, 0.5)


def test_the_same_trajectory_id_in_two_collections_is_two_trajectories(run_rows: RunRows) -> None:
    table = _one_later_session_each(run_rows, [True, False])
    table["trajectory_id"] = "t"
    assert summarize(table).iloc[0]["n_trajectories"] == 1
    table["collection"] = ["one"] * 2 + ["two"] * 2
    assert summarize(table).iloc[0]["n_trajectories"] == 2


def test_without_trajectories_each_run_is_a_cluster_and_the_count_is_null() -> None:
    table = _random_table(1)
    by_run = summarize(table.drop(columns="trajectory_id"), intervals=True).iloc[0]
    same = summarize(table.assign(trajectory_id=table["run_id"])).iloc[0]
    assert pd.isna(by_run["n_trajectories"])
    assert (by_run["BRT_low"], by_run["BRT_high"]) == (same["BRT_low"], same["BRT_high"])
    assert by_run["BRT_high"] - by_run["BRT_low"] < 1


@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rows = [summarize(_random_table(seed, 40), replicates=300).iloc[0] for seed in range(200)]
    covered = sum(1 for row in rows if row["BRT_low"] <= 0.4 <= row["BRT_high"])
    assert 0.88 <= covered / len(rows) <= 0.99


def test_equal_seeds_agree_and_other_seeds_differ() -> None:
    table = _random_table(2)
    pd.testing.assert_frame_equal(summarize(table, seed=7), summarize(table, seed=7))
    assert summarize(table, seed=7)["BRT_low"].iloc[0] != summarize(table, seed=8)["BRT_low"].iloc[0]


def test_the_order_of_rows_does_not_matter() -> None:
    table = _random_table(3).assign(memory=lambda t: t["run_id"].str[-1])
    shuffled = table.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(summarize(table, by="memory"), summarize(shuffled, by="memory"))


def test_other_groups_do_not_matter() -> None:
    one, two = _random_table(4).assign(memory="m"), _random_table(5, 7).assign(memory="n")
    two["run_id"], two["trajectory_id"] = "other-" + two["run_id"], "a-" + two["trajectory_id"]
    alone = summarize(one, by="memory")
    together = summarize(pd.concat([two, one]), by="memory")
    pd.testing.assert_frame_equal(together[together["memory"] == "m"].reset_index(drop=True), alone)


def test_replicates_without_denominator_are_left_out(run_rows: RunRows) -> None:
    rows: list[dict[str, Any]] = []
    for number in range(4):
        recalled = [2] if number < 2 else []
        keys = {"trajectory_id": f"t{number}", "original": recalled, "met": [2] if number == 0 else []}
        rows += run_rows(f"r{number}", ["workspace"] * 2, **keys)
    row = summarize(pd.DataFrame(rows), replicates=2000).iloc[0]
    assert row["BRT_given_R"] == 0.5
    assert (row["BRT_given_R_low"], row["BRT_given_R_high"]) == (0, 1)


def test_one_trajectory_with_a_denominator_gives_no_interval(run_rows: RunRows) -> None:
    rows = run_rows("a", ["slack"] * 3, trajectory_id="a", original=[2]) + run_rows(
        "b", ["slack"], t0=None, trajectory_id="b"
    )
    attacked = summarize(pd.DataFrame(rows), by="condition").iloc[-1]
    assert attacked["RSR"] == 0.5
    assert attacked[["RSR_low", "RSR_high", "PE_low", "PE_high"]].isna().all()


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    table = _random_table(6)
    narrow, wide = (summarize(table, confidence=c).iloc[0] for c in (0.5, 0.99))
    assert wide["BRT_low"] < narrow["BRT_low"] <= narrow["BRT"] <= narrow["BRT_high"] < wide["BRT_high"]


def test_many_clusters_are_drawn_in_blocks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _random_table(7)
    whole = summarize(table)
    monkeypatch.setattr("memorydojo.metrics._bootstrap._CELLS_AT_ONCE", 100)
    monkeypatch.setattr("memorydojo.metrics._bootstrap._KEPT_CELLS", 0)
    pd.testing.assert_frame_equal(summarize(table), whole)


@pytest.mark.parametrize("wrong", [{"replicates": 0}, {"seed": -1}, {"confidence": 1.0}, {"confidence": 95}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        summarize(_random_table(8), **wrong)
