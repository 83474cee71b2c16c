from typing import Any

import pytest

import memorydojo as md
from memorydojo.running.prefix import Prefix, count_sessions, tree, trunk_of
from memorydojo.runs import RunPlan, run_id
from tests.running.test_sharing import trajectory

LENGTH = 9


def poisoned(session: int, payload: str = "seed-1", **more: Any) -> RunPlan:
    attack = md.Attack(objective="banking", payload=payload, session=session)
    return md.plan_run(trajectory(*range(LENGTH)), "vector", attack=attack, **more)


def clean(**more: Any) -> RunPlan:
    return md.plan_run(trajectory(*range(LENGTH)), "vector", **more)


def shape(*plans: RunPlan, **more: Any) -> list[list[int]]:
    """Of every run how many sessions are its base's, nearest base first."""
    graph = tree(plans, share=lambda _: True, **more)
    found = []
    for plan in plans:
        if run_id(plan) in graph:
            found.append([prefix.sessions for prefix in trunk_of(graph, run_id(plan))])
    return found


def test_payloads_and_the_clean_run_fork_at_the_insertion_session() -> None:
    assert shape(poisoned(5), poisoned(5, "seed-2"), clean()) == [[4], [4], [4]]


def test_later_insertions_go_on_from_earlier_forks() -> None:
    assert shape(poisoned(3), poisoned(5), poisoned(5, "seed-2"), clean()) == [[2], [4, 2], [4, 2], [4, 2]]


def test_the_last_fork_is_where_two_runs_are_left() -> None:
    assert shape(poisoned(3), poisoned(5)) == [[2], [2]]


def test_an_insertion_in_the_first_session_shares_nothing() -> None:
    assert shape(poisoned(1), poisoned(1, "seed-2"), clean()) == [[], [], []]


def test_a_single_run_shares_with_nobody() -> None:
    assert shape(poisoned(5)) == [[]]
    assert shape(clean()) == [[]]


def test_runs_that_are_done_need_no_prefix() -> None:
    plans = [poisoned(5), poisoned(5, "seed-2"), clean()]
    assert shape(*plans, done={run_id(plan) for plan in plans[:2]}) == [[]]


def test_a_prefix_that_was_run_is_used_for_a_single_run() -> None:
    plans = [poisoned(5), poisoned(5, "seed-2"), clean()]
    done = {run_id(plan) for plan in plans[:2]}
    assert shape(*plans, done=done, ready=lambda prefix: prefix.sessions == 4) == [[4]]


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"defense": "spotlighting_with_delimiting"},
        {"memory_settings": {"top_k": 2}},
        {"on_failure": "continue"},
        {"model": "m"},
        {"memory_model": "m"},
        {"embedding_model": "m"},
    ],
)
def test_runs_that_differ_in_more_than_their_attack_share_nothing(other: dict[str, Any]) -> None:
    assert shape(poisoned(5), poisoned(5, **other)) == [[], []]


def test_trajectories_share_nothing() -> None:
    other = md.plan_run(
        trajectory(*range(LENGTH - 1)), "vector", attack=md.Attack(objective="banking", payload="seed-1", session=5)
    )
    assert shape(poisoned(5), other) == [[], []]


def test_runs_that_may_not_share_are_alone() -> None:
    graph = tree([poisoned(5), clean()], share=lambda _: False)
    assert graph.number_of_edges() == 0
    assert len(graph) == 2


def test_the_id_of_a_prefix_is_that_of_its_plan_and_its_length() -> None:
    assert Prefix(clean(), 4).id == Prefix(clean(), 4).id
    assert len({Prefix(clean(), 4).id, Prefix(clean(), 5).id, Prefix(clean(seed=1), 4).id}) == 3


def test_sessions_are_counted_with_and_without_sharing() -> None:
    plans = [poisoned(3), poisoned(5), poisoned(5, "seed-2"), clean(), clean()]
    assert count_sessions(plans, share=lambda _: False).task == 4 * LENGTH
    assert count_sessions(plans, share=lambda _: True).task == 2 + (LENGTH - 2) + 2 + 3 * (LENGTH - 4)
