"""Re-checks collections against AgentDojo: that every trajectory can be worked through, and says what it should."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from memorydojo.errors import UnknownNameError
from memorydojo.running import environment
from memorydojo.trajectories.collections import SHIPPED, Collection, load
from memorydojo.trajectories.compose import CROSS_DOMAIN, SAME_DOMAIN, Lengths
from memorydojo.trajectories.replay import Replayer
from memorydojo.trajectory import DOMAINS, Session, Trajectory


@dataclass(frozen=True)
class Problem:
    """Something that does not hold.

    Attributes:
        why: What does not hold, and why.
        trajectory: The trajectory's id, or None for the collection as a whole.
        sessions: The sessions that it is about, 1-based; two for a pair.
    """

    why: str
    trajectory: str | None = None
    sessions: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Place and reason in one line."""
        place = f"trajectory {self.trajectory}" if self.trajectory is not None else "the collection"
        if self.sessions:
            place += f", session{'s' * (len(self.sessions) > 1)} {' and '.join(map(str, self.sessions))}"
        return f"{place}: {self.why}"


@dataclass(frozen=True)
class Report:
    """What validating a collection found.

    Attributes:
        name: The collection's name.
        trajectories: How many trajectories were checked.
        sessions: How many sessions they have.
        pairs: How many ordered pairs of tasks of one domain occur in them, each counted once.
        flagged: How many sessions are recorded with a flag.
        problems: What does not hold, in the order of the collection.
    """

    name: str
    trajectories: int
    sessions: int
    pairs: int
    flagged: int
    problems: tuple[Problem, ...]


def validate(collection: Collection, replayer: Replayer | None = None) -> Report:
    """Re-checks a collection.

    Every task exists in AgentDojo; none repeats within a trajectory; of every two tasks of one domain, the later one
    passes on the state that the earlier one leaves; every whole trajectory passes its replay; and the sessions are
    recorded with exactly the flags that this replay shows.

    Args:
        collection: What to check.
        replayer: What keeps the replays of pairs, to share them between collections.
    """
    replayer = replayer or Replayer()
    problems: list[Problem] = []
    if collection.benchmark != environment.BENCHMARK_VERSION:
        problems.append(
            Problem(
                f"was made for the suites {collection.benchmark!r}, but this release uses "
                f"{environment.BENCHMARK_VERSION!r}; rebuild it"
            )
        )
    pairs: set[tuple[str, str, str]] = set()
    for trajectory in collection:
        problems.extend(_trajectory_problems(trajectory, replayer))
        pairs.update((a.domain, a.task_id, b.task_id) for _, a, _, b in _pairs(trajectory))
    return Report(
        name=collection.name,
        trajectories=len(collection),
        sessions=collection.n_sessions,
        pairs=len(pairs),
        flagged=sum(bool(session.flags) for trajectory in collection for session in trajectory.sessions),
        problems=tuple(problems),
    )


def validate_shipped() -> list[Report]:
    """Re-checks the collections that ship, and that they have the composition that the paper gives."""
    replayer = Replayer()
    reports = []
    for name in SHIPPED:
        collection = load(name)
        report = validate(collection, replayer)
        reports.append(replace(report, problems=(*composition_problems(collection), *report.problems)))
    return reports


def composition_problems(collection: Collection) -> list[Problem]:
    """Where a collection departs from the composition of the shipped one with its name.

    Raises:
        UnknownNameError: No shipped collection has this name.
    """
    if collection.name == "same-domain":
        return [p for d in DOMAINS for p in _part_problems(collection, d)] + _mixed(collection)
    if collection.name == "cross-domain":
        expected = _counts(CROSS_DOMAIN)
        return [
            *_length_problems("trajectories", Counter(map(len, collection)), expected),
            *(p for domain in DOMAINS for p in _unused(collection, domain)),
            *(p for trajectory in collection for p in _uneven(trajectory)),
        ]
    raise UnknownNameError("shipped collection", collection.name, SHIPPED)


def _part_problems(collection: Collection, domain: str) -> list[Problem]:
    part = [t for t in collection if t.domains == (domain,)]
    lengths = _length_problems(f"{domain} trajectories", Counter(map(len, part)), _counts(SAME_DOMAIN[domain]))
    return [*lengths, *_unused(collection, domain)]


def _mixed(collection: Collection) -> list[Problem]:
    return [
        Problem(f"holds {', '.join(t.domains)}, but should keep to one domain", t.id)
        for t in collection
        if len(t.domains) != 1 or t.domains[0] not in DOMAINS
    ]


def _counts(lengths: Lengths) -> Counter[int]:
    return Counter(dict(lengths))


def _length_problems(what: str, found: Counter[int], expected: Counter[int]) -> list[Problem]:
    return [
        Problem(f"has {found[length]} {what} of {length} sessions, but should have {expected[length]}")
        for length in sorted(found.keys() | expected.keys())
        if found[length] != expected[length]
    ]


def _unused(collection: Collection, domain: str) -> list[Problem]:
    used = {s.task_id for t in collection for s in t.sessions if s.domain == domain}
    return [Problem(f"never uses {domain} {i}") for i in environment.task_ids(domain) if i not in used]


def _uneven(trajectory: Trajectory) -> list[Problem]:
    """Interleaved: every domain has the same share, give or take one, and occurs in any seven sessions in a row.

    Rounds in which each domain comes once, in any order, have both properties.
    """
    order = [session.domain for session in trajectory.sessions]
    counts = Counter(order)
    problems = []
    if max(counts[d] for d in DOMAINS) - min(counts[d] for d in DOMAINS) > 1:
        problems.append(Problem(f"does not share its sessions evenly among the domains: {dict(counts)}", trajectory.id))
    width = 2 * len(DOMAINS) - 1
    for start in range(len(order) - width + 1):
        missing = set(DOMAINS) - set(order[start : start + width])
        if missing:
            place = (start + 1, start + width)
            problems.append(Problem(f"has no {min(missing)} task from one to the other", trajectory.id, place))
            break
    return problems


def _trajectory_problems(trajectory: Trajectory, replayer: Replayer) -> Iterator[Problem]:
    unknown = list(_unknown_tasks(trajectory))
    if unknown:
        yield from unknown
        return
    for i, first, j, second in _pairs(trajectory):
        if first.task_id == second.task_id:
            yield Problem(f"{first.domain} {first.task_id} repeats", trajectory.id, (i, j))
            continue
        outcome = replayer.pair(first.domain, first.task_id, second.task_id)
        if not outcome.passed:
            why = f"{first.domain} {second.task_id} does not pass after {first.task_id}: {outcome.problem}"
            yield Problem(why, trajectory.id, (i, j))
    yield from _replay_problems(trajectory, replayer)


def _unknown_tasks(trajectory: Trajectory) -> Iterator[Problem]:
    for n, session in enumerate(trajectory.sessions, start=1):
        try:
            environment.user_task(session.domain, session.task_id)
        except UnknownNameError as error:
            yield Problem(str(error), trajectory.id, (n,))


def _replay_problems(trajectory: Trajectory, replayer: Replayer) -> Iterator[Problem]:
    outcomes = replayer.sequence((session.domain, session.task_id) for session in trajectory.sessions)
    for n, (session, outcome) in enumerate(zip(trajectory.sessions, outcomes, strict=False), start=1):
        task = f"{session.domain} {session.task_id}"
        if not outcome.passed:
            yield Problem(f"{task} does not pass at its place: {outcome.problem}", trajectory.id, (n,))
        elif outcome.flags != session.flags:
            found, recorded = (", ".join(sorted(flags)) or "no flag" for flags in (outcome.flags, session.flags))
            yield Problem(f"{task} is recorded with {recorded}, but its replay shows {found}", trajectory.id, (n,))


def _pairs(trajectory: Trajectory) -> Iterator[tuple[int, Session, int, Session]]:
    """Every two sessions of one domain in their order, with their 1-based numbers."""
    for (i, first), (j, second) in combinations(enumerate(trajectory.sessions, start=1), 2):
        if first.domain == second.domain:
            yield i, first, j, second
