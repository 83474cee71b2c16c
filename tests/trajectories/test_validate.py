"""The validator finds what was put in, and names the place and the reason."""

import pytest

from memorydojo.errors import UnknownNameError
from memorydojo.trajectories import Collection, load
from memorydojo.trajectories.replay import Replayer
from memorydojo.trajectories.validate import Problem, composition_problems, validate
from memorydojo.trajectory import Flag, Session, Trajectory


def made(
    *tasks: str, domain: str = "workspace", flags: dict[int, Flag] | None = None, name: str = "a-001"
) -> Trajectory:
    """A trajectory of tasks given by number, with ``domain/number`` for another domain."""
    sessions = []
    for n, task in enumerate(tasks, start=1):
        other, _, number = task.rpartition("/")
        flag = (flags or {}).get(n)
        recorded = frozenset([flag] if flag else [])
        sessions.append(Session(domain=other or domain, task_id=f"user_task_{number}", flags=recorded))
    return Trajectory(id=name, collection="mine", sessions=tuple(sessions))


def collected(*trajectories: Trajectory) -> Collection:
    return Collection("mine", trajectories)


def problems(replayer: Replayer, *trajectories: Trajectory) -> list[str]:
    return [str(problem) for problem in validate(collected(*trajectories), replayer).problems]


def test_a_good_collection_has_no_problem(replayer: Replayer) -> None:
    assert problems(replayer, made("26", "31"), made("slack/0", "banking/0", name="b")) == []


def test_a_bad_pair_is_named_first_with_the_reason(replayer: Replayer) -> None:
    found = problems(replayer, made("0", "35", "1", "38"))
    assert found[0] == (
        "trajectory a-001, sessions 2 and 4: workspace user_task_38 does not pass after user_task_35: "
        "its ground truth fails: ValueError: File with ID '11' not found."
    )
    assert found[1] == (
        "trajectory a-001, session 4: workspace user_task_38 does not pass at its place: "
        "its ground truth fails: ValueError: File with ID '11' not found."
    )
    assert len(found) == 2


def test_only_tasks_of_one_domain_make_a_pair(replayer: Replayer) -> None:
    report = validate(collected(made("slack/2", "banking/2", "slack/0", "travel/1")), replayer)
    assert report.pairs == 1


def test_a_repeat_is_named(replayer: Replayer) -> None:
    found = problems(replayer, made("0", "3", "0"))
    assert found == ["trajectory a-001, sessions 1 and 3: workspace user_task_0 repeats"]


def test_an_unknown_task_is_named_with_the_nearest(replayer: Replayer) -> None:
    found = problems(replayer, made("0", "399"))
    assert len(found) == 1
    assert found[0].startswith(
        "trajectory a-001, session 2: unknown workspace task 'user_task_399'; did you mean 'user_task_39' or "
    )


def test_an_unknown_domain_is_named_with_the_nearest(replayer: Replayer) -> None:
    found = problems(replayer, made("bank/0"))
    assert found == ["trajectory a-001, session 1: unknown domain 'bank'; did you mean 'banking'?"]


def test_a_missing_flag_is_named(replayer: Replayer) -> None:
    assert problems(replayer, made("31", "26")) == [
        "trajectory a-001, session 2: workspace user_task_26 is recorded with no flag, but its replay shows drift"
    ]


def test_a_flag_too_many_is_named(replayer: Replayer) -> None:
    assert problems(replayer, made("0", "3", flags={2: "stale-success"})) == [
        "trajectory a-001, session 2: workspace user_task_3 is recorded with stale-success, "
        "but its replay shows no flag"
    ]


def test_the_right_flags_are_no_problem(replayer: Replayer) -> None:
    drifting = made("31", "26", flags={2: "drift"})
    stale = made("1", "0", domain="slack", flags={2: "stale-success"}, name="b")
    report = validate(collected(drifting, stale), replayer)
    assert (report.problems, report.flagged) == ((), 2)


def test_other_suites_are_a_problem(replayer: Replayer) -> None:
    report = validate(Collection("mine", (made("0"),), benchmark="v1"), replayer)
    assert [str(p) for p in report.problems] == [
        "the collection: was made for the suites 'v1', but this release uses 'v1.2.2'; rebuild it"
    ]


def test_a_report_counts(replayer: Replayer) -> None:
    report = validate(collected(made("0", "3", "26"), made("0", "3", name="b")), replayer)
    assert (report.name, report.trajectories, report.sessions, report.pairs, report.flagged) == ("mine", 2, 5, 3, 0)


@pytest.mark.parametrize("name", ["same-domain", "cross-domain"])
def test_the_shipped_composition_holds(name: str) -> None:
    assert composition_problems(load(name)) == []


@pytest.mark.parametrize("name", ["same-domain", "cross-domain"])
def test_a_missing_trajectory_is_a_composition_problem(name: str) -> None:
    assert composition_problems(load(name)[1:])[0] == Problem(
        "has 0 workspace trajectories of 3 sessions, but should have 1"
        if name == "same-domain"
        else "has 4 trajectories of 5 sessions, but should have 5"
    )


def test_an_unused_template_is_a_composition_problem() -> None:
    whole = load("same-domain")
    kept = [t for t in whole if all((s.domain, s.task_id) != ("slack", "user_task_4") for s in t.sessions)]
    found = composition_problems(Collection("same-domain", tuple(kept)))
    assert Problem("never uses slack user_task_4") in found


def test_a_mixed_trajectory_is_a_same_domain_problem() -> None:
    mixed = load("cross-domain")[0]
    found = composition_problems(Collection("same-domain", (*load("same-domain"), mixed)))
    assert [p.trajectory for p in found] == [mixed.id]


def test_blocks_of_domains_are_a_cross_domain_problem() -> None:
    whole = load("cross-domain")
    last = whole[-1]
    blocks = sorted(last.sessions, key=lambda session: session.domain)
    changed = last.model_copy(update={"sessions": tuple(blocks)})
    found = composition_problems(Collection("cross-domain", (*whole[:-1], changed)))
    assert [(p.trajectory, p.sessions) for p in found] == [(last.id, (1, 7))]


def test_uneven_shares_are_a_cross_domain_problem() -> None:
    whole = load("cross-domain")
    first = whole[0]
    sessions = tuple(Session(domain="slack", task_id=s.task_id) for s in first.sessions)
    changed = first.model_copy(update={"sessions": sessions})
    found = composition_problems(Collection("cross-domain", (changed, *whole[1:])))
    assert [p.trajectory for p in found] == [first.id]


def test_no_other_collection_has_a_composition() -> None:
    with pytest.raises(UnknownNameError, match="unknown shipped collection 'slack'"):
        composition_problems(load("slack"))
