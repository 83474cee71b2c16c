"""The collections that ship have the composition of the issue's table, written out here once more."""

from collections import Counter
from itertools import pairwise

import pytest

from memorydojo.running import environment
from memorydojo.trajectories import load
from memorydojo.trajectories.compose import SEED
from memorydojo.trajectory import DOMAINS

SHORT = {3: 1, 5: 10, 10: 10, 15: 1}
TABLE = {
    "workspace": (40, 26, 278, SHORT | {20: 1, 25: 1, 30: 1, 35: 1}),
    "travel": (20, 23, 188, SHORT | {20: 1}),
    "banking": (16, 22, 168, SHORT),
    "slack": (21, 22, 168, SHORT),
    "same-domain": (97, 93, 802, {3: 4, 5: 40, 10: 40, 15: 4, 20: 2, 25: 1, 30: 1, 35: 1}),
    "cross-domain": (97, 31, 680, {5: 5, 10: 5, 15: 5, 20: 5, 30: 5, 40: 3, 50: 2, 60: 1}),
}


@pytest.mark.parametrize("name", TABLE)
def test_composition(name: str) -> None:
    templates, trajectories, sessions, lengths = TABLE[name]
    collection = load(name)
    assert len(collection) == trajectories
    assert sum(len(t.sessions) for t in collection) == collection.n_sessions == sessions
    assert Counter(len(t) for t in collection) == lengths
    assert len({(s.domain, s.task_id) for t in collection for s in t.sessions}) == templates


@pytest.mark.parametrize("name", ["same-domain", "cross-domain"])
def test_no_template_repeats_within_a_trajectory(name: str) -> None:
    for trajectory in load(name):
        assert len({(s.domain, s.task_id) for s in trajectory.sessions}) == len(trajectory)


@pytest.mark.parametrize("name", ["same-domain", "cross-domain"])
def test_no_two_trajectories_are_the_same(name: str) -> None:
    collection = load(name)
    assert len({tuple((s.domain, s.task_id) for s in t.sessions) for t in collection}) == len(collection)


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_part_is_of_that_domain_and_the_parts_make_the_whole(domain: str) -> None:
    assert all(t.domains == (domain,) for t in load(domain))
    assert all(t.collection == "same-domain" for t in load(domain))
    assert [t for d in DOMAINS for t in load(d)] == list(load("same-domain"))


def test_cross_domain_trajectories_hold_all_domains_in_equal_shares() -> None:
    for trajectory in load("cross-domain"):
        shares = Counter(s.domain for s in trajectory.sessions)
        assert set(shares) == set(DOMAINS)
        assert max(shares.values()) - min(shares.values()) <= 1


def test_cross_domain_trajectories_are_mixed_rather_than_in_blocks() -> None:
    for trajectory in load("cross-domain"):
        domains = [s.domain for s in trajectory.sessions]
        assert not any(a == b == c for (a, b), c in zip(pairwise(domains), domains[2:], strict=False))
        for start in range(0, len(domains) - 3, 4):
            assert set(domains[start : start + 4]) == set(DOMAINS)


def test_ids_say_what_a_trajectory_is() -> None:
    for trajectory in load("same-domain"):
        domain, length, _ = trajectory.id.rsplit("-", 2)
        assert (domain, int(length)) == (trajectory.sessions[0].domain, len(trajectory))
    for trajectory in load("cross-domain"):
        assert trajectory.id.startswith(f"cross-{len(trajectory):03}-")


@pytest.mark.parametrize("name", ["same-domain", "cross-domain"])
def test_provenance_is_recorded(name: str) -> None:
    collection = load(name)
    assert collection.seed == SEED
    assert collection.agentdojo == environment.AGENTDOJO_VERSION
    assert collection.benchmark == environment.BENCHMARK_VERSION


def test_flags_remain_only_where_all_of_travels_templates_are_used() -> None:
    """Four of them change each other's observations, so three of them have to follow another."""
    sessions = [(t.id, s) for name in ("same-domain", "cross-domain") for t in load(name) for s in t.sessions]
    flagged = [(trajectory_id, sorted(s.flags)) for trajectory_id, s in sessions if s.flags]
    assert flagged == [("travel-020-01", ["drift"])] * 3
