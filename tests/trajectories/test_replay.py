"""Replays: which pairs pass, and which sessions are flagged."""

import datetime
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from memorydojo.errors import UnknownNameError
from memorydojo.running import environment
from memorydojo.trajectories import load
from memorydojo.trajectories.replay import Replayer
from memorydojo.trajectory import DOMAINS


def workspace(*numbers: int) -> list[tuple[str, str]]:
    return [("workspace", f"user_task_{n}") for n in numbers]


def test_a_task_that_deletes_what_another_needs_fails_the_pair(replayer: Replayer) -> None:
    outcome = replayer.pair("workspace", "user_task_35", "user_task_38")
    assert outcome.problem == "its ground truth fails: ValueError: File with ID '11' not found."
    assert not outcome.flags


def test_a_check_that_no_longer_holds_fails_the_pair(replayer: Replayer) -> None:
    outcome = replayer.pair("banking", "user_task_2", "user_task_9")
    assert outcome.problem == "its utility check does not hold after its ground truth"
    assert replayer.pair("banking", "user_task_9", "user_task_2").passed


def test_a_check_that_raises_fails_the_session(replayer: Replayer, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*args: Any, **kwargs: Any) -> bool:
        raise KeyError("Charlie")

    replayer.pair("slack", "user_task_0", "user_task_7")
    monkeypatch.setattr(environment, "check_utility", check)
    assert replayer.sequence([("slack", "user_task_7")])[0].problem == "its utility check raises KeyError: 'Charlie'"


def test_a_pair_whose_first_task_fails_by_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    task = environment.user_task("banking", "user_task_1")
    monkeypatch.setattr(type(task), "GROUND_TRUTH_OUTPUT", "I do not know.")
    outcome = Replayer().pair("banking", "user_task_1", "user_task_0")
    assert outcome.problem == "user_task_1 fails by itself: its utility check does not hold after its ground truth"


def test_changed_observations_of_a_checked_answer_are_drift(replayer: Replayer) -> None:
    """The largest file (26) after a file was added (31); its text answer is checked."""
    assert replayer.answer_checked("workspace", "user_task_26")
    assert replayer.pair("workspace", "user_task_31", "user_task_26").flags == {"drift"}
    assert replayer.pair("workspace", "user_task_26", "user_task_31").flags == frozenset()


def test_changed_observations_without_a_checked_answer_are_no_drift(replayer: Replayer) -> None:
    """Banking's task 8 sums up the transactions, to which task 0 adds one; any text passes."""
    assert not replayer.answer_checked("banking", "user_task_8")
    assert replayer.pair("banking", "user_task_0", "user_task_8").flags == frozenset()


def test_a_check_that_an_earlier_session_already_met_is_stale_success(replayer: Replayer) -> None:
    """Slack's task 0 asks to read a page that task 1 reads too."""
    assert replayer.pair("slack", "user_task_1", "user_task_0").flags == {"stale-success"}
    assert replayer.pair("slack", "user_task_0", "user_task_1").flags == frozenset()


def test_a_check_that_always_passes_is_no_stale_success(replayer: Replayer) -> None:
    """Banking's tasks 8 and 10 pass when nothing is done, on a fresh environment too."""
    assert replayer.pair("banking", "user_task_0", "user_task_10").flags == frozenset()


def test_a_flag_depends_on_all_sessions_before(replayer: Replayer) -> None:
    outcomes = replayer.sequence(workspace(31, 0, 26))
    assert [outcome.flags for outcome in outcomes] == [frozenset(), frozenset(), {"drift"}]


def test_a_sequence_ends_with_the_first_session_that_fails(replayer: Replayer) -> None:
    outcomes = replayer.sequence(workspace(35, 38, 0))
    assert [outcome.passed for outcome in outcomes] == [True, False]


def test_each_domain_has_a_state_of_its_own(replayer: Replayer) -> None:
    mixed = [("workspace", "user_task_35"), ("slack", "user_task_2"), ("banking", "user_task_0")]
    assert all(outcome.passed for outcome in replayer.sequence(mixed))


def test_sequences_do_not_see_each_other(replayer: Replayer) -> None:
    assert replayer.sequence(workspace(35))[0].passed
    assert replayer.sequence(workspace(38))[0].passed


def test_an_unknown_task_is_named(replayer: Replayer) -> None:
    with pytest.raises(UnknownNameError, match="unknown slack task 'user_task_99'"):
        replayer.pair("slack", "user_task_99", "user_task_0")


def test_a_task_by_itself_has_no_flag(replayer: Replayer) -> None:
    """Some observe times that their tools take from the clock: those are all that can differ here."""
    for domain, task_id in [(d, t) for d in DOMAINS for t in environment.task_ids(d)]:
        assert replayer.sequence([(domain, task_id)])[0].flags == frozenset(), task_id


@pytest.mark.parametrize("years", [1, 40])
def test_the_year_makes_no_difference(years: int, replayer: Replayer, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentdojo.default_suites.v1.tools import cloud_drive_client, email_client

    from memorydojo.trajectories import replay

    tasks = [(s.domain, s.task_id) for s in load("workspace")["workspace-035-01"].sessions]
    today = replayer.sequence(tasks)
    for module in (cloud_drive_client, email_client, replay):
        monkeypatch.setattr(module, "datetime", _Shifted(datetime.timedelta(days=365 * years)))
    assert Replayer().sequence(tasks) == today


class _Shifted:
    """Stands in for the module datetime, with ``now`` some time later."""

    def __init__(self, shift: datetime.timedelta) -> None:
        class Later(datetime.datetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return datetime.datetime.now(tz) + shift

        class Meta(type):
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, datetime.datetime)

        class Shifted(Later, metaclass=Meta):
            pass

        self.datetime = Shifted

    def __getattr__(self, name: str) -> Any:
        return getattr(datetime, name)


# Ordered pairs that pass; of those, pairs whose second task drifts, and whose second task succeeds without an action.
PAIRS = {"workspace": (1558, 69, 0), "travel": (380, 16, 0), "banking": (237, 12, 3), "slack": (400, 0, 9)}


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_passing_and_flagged_pairs_are_those_that_were_counted(domain: str, replayer: Replayer) -> None:
    outcomes = [replayer.pair(domain, *pair) for pair in permutations(environment.task_ids(domain), 2)]
    flags = [outcome.flags for outcome in outcomes if outcome.passed]
    assert (len(flags), sum("drift" in f for f in flags), sum("stale-success" in f for f in flags)) == PAIRS[domain]


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_pruning_equal_parts_changes_no_verdict(
    domain: str, replayer: Replayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every 25th pair; the benchmark compares all of them."""
    from memorydojo.trajectories import replay

    pairs = list(permutations(environment.task_ids(domain), 2))[::25]
    pruned = [replayer.pair(domain, *pair) for pair in pairs]
    whole: Callable[[Any, Any], Any] = lambda pre, post: post  # noqa: E731
    monkeypatch.setattr(replay, "_sharing", whole)
    unpruned = Replayer()
    assert [unpruned.pair(domain, *pair) for pair in pairs] == pruned
