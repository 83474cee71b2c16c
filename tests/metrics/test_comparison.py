"""Paired differences and base rates."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics import METRICS, base_rates, compare, summarize

RunRows = Callable[..., list[dict[str, Any]]]


def _metric(result: pd.DataFrame, name: str) -> "pd.Series[Any]":
    return result[result["metric"] == name].iloc[0]


def test_poisoned_against_clean_gives_what_an_attack_costs(two_trajectories: pd.DataFrame) -> None:
    result = compare(two_trajectories, "condition", "poisoned", "clean", by="memory")
    assert list(result["metric"]) == list(METRICS) * 2
    row = _metric(result, "TU")
    assert (row["a"], row["b"], row["difference"]) == (0.5, 0.75, -0.25)
    assert (row["difference_low"], row["difference_high"]) == (-0.25, -0.25)
    assert result.loc[~result["metric"].isin(["TU"]), "difference"].isna().all()


def test_only_shared_trajectories_count_and_the_rest_is_reported(
    two_trajectories: pd.DataFrame, run_rows: RunRows
) -> None:
    extra = run_rows("x", ["slack"] * 3, t0=None, objective_domain=None, memory="mem0", trajectory_id="t9")
    result = compare(pd.concat([two_trajectories, pd.DataFrame(extra)]), "condition", "poisoned", "clean")
    row = _metric(result, "TU")
    assert (row["n_trajectories"], row["n_only_a"], row["n_only_b"]) == (2, 0, 1)
    assert (row["n_runs_a"], row["n_runs_b"], row["b"]) == (4, 4, 0.75)


def test_conditions_are_compared_apart_when_a_side_would_mix(two_trajectories: pd.DataFrame) -> None:
    result = compare(two_trajectories, "memory", "mem0", "vector", intervals=False)
    assert set(result["condition"]) == {"clean", "poisoned"}
    poisoned = result[result["condition"] == "poisoned"]
    assert _metric(poisoned, "ISR")["difference"] == 1
    assert _metric(poisoned, "RSR")["difference"] == pytest.approx(2 / 3)


def test_an_own_condition_column_that_mixes_is_refused(two_trajectories: pd.DataFrame) -> None:
    table = two_trajectories.assign(condition=two_trajectories["memory"])
    with pytest.raises(InvalidInputError, match="rename that column"):
        compare(table, "condition", "mem0", "vector")


def test_pairing_removes_what_trajectories_share(run_rows: RunRows) -> None:
    """Trajectories differ widely, the conditions by exactly one session each: the paired interval has no width."""
    rows: list[dict[str, Any]] = []
    for n in range(10):
        for model, extra in (("a", 1), ("b", 0)):
            met = range(2, 2 + n + extra)
            rows += run_rows(f"{model}{n}", ["slack"] * 12, met=met, model=model, trajectory_id=f"t{n}")
    table = pd.DataFrame(rows)
    row = _metric(compare(table, "model", "a", "b"), "BRT")
    assert row["difference"] == pytest.approx(1 / 11)
    assert row["difference_low"] == pytest.approx(1 / 11)
    assert row["difference_high"] == pytest.approx(1 / 11)
    alone = summarize(table, by="model")
    assert (alone["BRT_high"] - alone["BRT_low"]).min() > 0.2


def test_the_difference_changes_its_sign_with_the_sides(two_trajectories: pd.DataFrame) -> None:
    there, back = (compare(two_trajectories, "memory", *sides) for sides in (("mem0", "vector"), ("vector", "mem0")))
    pd.testing.assert_series_equal(there["difference"], -back["difference"])
    pd.testing.assert_series_equal(there["difference_low"], -back["difference_high"], check_names=False)


def test_unequal_numbers_of_runs_are_reported(two_trajectories: pd.DataFrame) -> None:
    assert compare(two_trajectories, "condition", "poisoned", "clean")["balanced"].all()
    fewer = two_trajectories[two_trajectories["run_id"] != "mem0-t1-c"]
    assert not compare(fewer, "condition", "poisoned", "clean")["balanced"].any()


def test_null_is_a_side(two_trajectories: pd.DataFrame) -> None:
    table = two_trajectories.assign(defense=two_trajectories["memory"].where(two_trajectories["memory"] == "mem0"))
    assert not compare(table, "defense", "mem0", None, by="condition", intervals=False).empty


def test_no_shared_trajectory_gives_nan(run_rows: RunRows) -> None:
    table = pd.DataFrame(
        run_rows("r1", ["slack"] * 2, model="a", trajectory_id="t1")
        + run_rows("r2", ["slack"] * 2, model="b", trajectory_id="t2")
    )
    result = compare(table, "model", "a", "b")
    assert (result["n_trajectories"] == 0).all()
    assert result["difference"].isna().all()


def test_a_comparison_is_simulated_if_either_side_is(two_trajectories: pd.DataFrame) -> None:
    table = two_trajectories.assign(simulated=two_trajectories["run_id"] == "mem0-t1-c")
    result = compare(table, "condition", "poisoned", "clean", by="memory", intervals=False)
    assert result.groupby("memory")["simulated"].all().to_dict() == {"mem0": True, "vector": False}


def test_comparisons_that_make_no_sense_are_refused(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="value of column 'memory' 'mem1'; did you mean 'mem0'"):
        compare(two_trajectories, "memory", "mem1", "vector")
    with pytest.raises(UnknownNameError, match="did you mean 'memory'"):
        compare(two_trajectories, "memery", "mem0", "vector")
    with pytest.raises(InvalidInputError, match="with itself"):
        compare(two_trajectories, "memory", "mem0", "mem0")
    with pytest.raises(InvalidInputError, match="differs within runs"):
        compare(two_trajectories, "utility", True, False)
    with pytest.raises(InvalidInputError, match="cannot also be in `by`"):
        compare(two_trajectories, "memory", "mem0", "vector", by="memory")
    with pytest.raises(InvalidInputError, match="trajectory_id"):
        compare(two_trajectories.drop(columns="trajectory_id"), "memory", "mem0", "vector")


def test_the_base_rate_counts_clean_runs_only(two_trajectories: pd.DataFrame) -> None:
    poisoned = two_trajectories["insertion_session"].notna()
    everywhere = two_trajectories.assign(met_workspace=two_trajectories["met_workspace"].mask(poisoned, True))
    row = base_rates(everywhere).iloc[0]
    assert (row["objective"], row["n_runs"], row["n_sessions"], row["n_met"]) == ("workspace", 4, 16, 1)
    assert row["base_rate"] == 1 / 16
    assert (row["base_rate_low"], row["base_rate_high"]) == (0, 1 / 8)


def test_a_group_without_clean_runs_has_no_base_rate(two_trajectories: pd.DataFrame) -> None:
    table = two_trajectories[~two_trajectories["run_id"].isin(["vector-t1-c", "vector-t2-c"])]
    result = base_rates(table, by="memory").set_index("memory")
    assert result.loc["mem0", "base_rate"] == 1 / 8
    assert result["base_rate"].isna().to_dict() == {"mem0": False, "vector": True}


def test_base_rates_need_the_predicates(two_trajectories: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="met_<objective id>"):
        base_rates(two_trajectories.drop(columns="met_workspace"))


def test_a_key_of_the_attack_divides_the_poisoned_side_alone(two_trajectories: pd.DataFrame) -> None:
    poisoned = two_trajectories["insertion_session"].notna()
    trajectory = two_trajectories["trajectory_id"]
    table = two_trajectories.assign(payload_id=trajectory.where(poisoned), simulated=trajectory.eq("t1") & ~poisoned)
    result = compare(table, "condition", "poisoned", "clean", by=["memory", "payload_id"], intervals=False)
    assert len(result) == 4 * len(METRICS)
    assert result["payload_id"].notna().all()
    for _, row in result[result["metric"] == "TU"].iterrows():
        assert (row["n_trajectories"], row["n_only_a"], row["n_only_b"]) == (1, 0, 1)
        assert (row["a"], row["b"], row["difference"]) == (0.5, 0.75, -0.25)
        assert row["simulated"]
    turned = compare(table, "condition", "clean", "poisoned", by=["memory", "payload_id"], intervals=False)
    pd.testing.assert_series_equal(turned["difference"], -result["difference"])
    pd.testing.assert_series_equal(turned["n_only_a"], result["n_only_b"], check_names=False)


def test_sides_that_each_lack_keys_of_the_other_are_refused(two_trajectories: pd.DataFrame) -> None:
    first = two_trajectories["memory"] == "mem0"
    table = two_trajectories.assign(
        payload_id=two_trajectories["trajectory_id"].where(first),
        defense=two_trajectories["trajectory_id"].where(~first),
    )
    with pytest.raises(InvalidInputError, match="each side lacks keys"):
        compare(table, "memory", "mem0", "vector", by=["payload_id", "defense"])
