"""Builds the collections that ship (paper, section 4.1) from a seed.

A trajectory is drawn so that every two of its tasks in one domain pass in their order, and then replayed as a whole.
Which tasks: those used least so far come first, with some chance mixed in, so that a collection uses every template.
In which order: at random, but a task that would make a later one drift or succeed without an action comes after it
where this is possible. Of several draws the one with the fewest flags is kept.

The result depends on the seed alone. Only ``Random.random`` is used, whose sequence Python guarantees.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from memorydojo.errors import MemoryDojoError
from memorydojo.running import environment
from memorydojo.trajectories.collections import Collection
from memorydojo.trajectories.replay import Outcome, Replayer
from memorydojo.trajectory import DOMAINS, Session, Trajectory

SEED = 20260
"""The seed of the collections that ship."""

Lengths = tuple[tuple[int, int], ...]
"""How many trajectories (second) of which number of sessions (first)."""

SAME_DOMAIN: dict[str, Lengths] = {
    "workspace": ((3, 1), (5, 10), (10, 10), (15, 1), (20, 1), (25, 1), (30, 1), (35, 1)),
    "travel": ((3, 1), (5, 10), (10, 10), (15, 1), (20, 1)),
    "banking": ((3, 1), (5, 10), (10, 10), (15, 1)),
    "slack": ((3, 1), (5, 10), (10, 10), (15, 1)),
}
"""Composition of the same-domain collection (paper, section 4.1 and its appendix)."""

CROSS_DOMAIN: Lengths = ((5, 5), (10, 5), (15, 5), (20, 5), (30, 5), (40, 3), (50, 2), (60, 1))
"""Composition of the cross-domain collection."""

_DRAWS = 12
"""Draws of which the one with the fewest flags is kept; one without flags is kept at once."""

_LIMIT = 500
"""Draws after which composing gives up."""

_CHANCE = 2.0
"""How much earlier a task may come by chance than one that was used less, in uses."""

_FLAG = 1
"""Cost of a pair whose second task is flagged."""

_FAIL = 1000
"""Cost of a pair that fails: more than all flags of a trajectory."""

T = TypeVar("T")
Task = tuple[str, str]
"""Domain and task id."""


@dataclass(frozen=True)
class _Draw:
    tasks: tuple[Task, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def flagged(self) -> int:
        return sum(bool(outcome.flags) for outcome in self.outcomes)


def build(seed: int = SEED) -> dict[str, Collection]:
    """Builds both collections; the same seed gives the same collections, byte for byte.

    Raises:
        MemoryDojoError: No trajectory of a length could be found; AgentDojo is not the version that is pinned.
    """
    replayer = Replayer()
    same = [t for domain in DOMAINS for t in _same_domain(domain, seed, replayer)]
    return {
        "same-domain": _collection("same-domain", seed, same),
        "cross-domain": _collection("cross-domain", seed, _cross_domain(seed, replayer)),
    }


def _collection(name: str, seed: int, trajectories: Iterable[Trajectory]) -> Collection:
    return Collection(
        name=name,
        trajectories=tuple(trajectories),
        seed=seed,
        agentdojo=environment.installed_version(),
        benchmark=environment.BENCHMARK_VERSION,
    )


def _same_domain(domain: str, seed: int, replayer: Replayer) -> list[Trajectory]:
    lengths = [length for length, count in SAME_DOMAIN[domain] for _ in range(count)]
    return compose(domain, lengths, collection="same-domain", seed=seed, replayer=replayer)


def compose(
    domain: str, lengths: Iterable[int], *, collection: str, seed: int, replayer: Replayer | None = None
) -> list[Trajectory]:
    """Draws trajectories of one domain, one after another; the same arguments give the same trajectories.

    Args:
        domain: A domain of AgentDojo's, or an installed suite.
        lengths: The number of sessions of each trajectory.
        collection: The name of the collection that they belong to.
        seed: Seed of the draws.
        replayer: What keeps the replays of pairs, to share them.

    Raises:
        UnknownNameError: There is no such domain.
        MemoryDojoError: No trajectory of a length could be found.
    """
    composer = _Composer(Random(f"memorydojo/{domain}/{seed}"), replayer or Replayer())
    numbers: Counter[int] = Counter()
    made = []
    for length in lengths:
        numbers[length] += 1
        trajectory_id = f"{domain}-{length:03}-{numbers[length]:02}"
        made.append(_trajectory(trajectory_id, collection, composer.compose({domain: length})))
    return made


def _cross_domain(seed: int, replayer: Replayer) -> list[Trajectory]:
    rng = Random(f"memorydojo/cross-domain/{seed}")
    composer = _Composer(rng, replayer)
    return [
        _trajectory(f"cross-{length:03}-{number:02}", "cross-domain", composer.compose(shares(length, rng)))
        for length, number in _each(CROSS_DOMAIN)
    ]


def _each(lengths: Lengths) -> list[tuple[int, int]]:
    return [(length, number) for length, count in lengths for number in range(1, count + 1)]


def _trajectory(trajectory_id: str, collection: str, draw: _Draw) -> Trajectory:
    sessions = tuple(
        Session(domain=domain, task_id=task_id, flags=outcome.flags)
        for (domain, task_id), outcome in zip(draw.tasks, draw.outcomes, strict=True)
    )
    return Trajectory(id=trajectory_id, collection=collection, sessions=sessions)


def shares(length: int, rng: Random) -> dict[str, int]:
    """Splits ``length`` sessions over the domains as evenly as possible; chance says which get one more."""
    even, rest = divmod(length, len(DOMAINS))
    more = shuffled(DOMAINS, rng)[:rest]
    return {domain: even + (domain in more) for domain in DOMAINS}


def interleaved(parts: dict[str, Sequence[T]], rng: Random) -> list[T]:
    """Mixes sequences, each keeping its order: in every round, each that has items left gives one, in random order."""
    rounds = max(map(len, parts.values()), default=0)
    mixed: list[T] = []
    for n in range(rounds):
        mixed.extend(parts[name][n] for name in shuffled(parts, rng) if n < len(parts[name]))
    return mixed


def shuffled(items: Iterable[T], rng: Random) -> list[T]:
    """The items in random order."""
    keyed = [(rng.random(), n, item) for n, item in enumerate(items)]
    return [item for _, _, item in sorted(keyed, key=lambda key: key[:2])]


class _Composer:
    """Draws the trajectories of one collection (or of its part of one domain) one after another."""

    def __init__(self, rng: Random, replayer: Replayer) -> None:
        self._rng = rng
        self._replayer = replayer
        self._uses: Counter[Task] = Counter()
        self._drawn: set[tuple[Task, ...]] = set()

    def compose(self, counts: dict[str, int]) -> _Draw:
        """A trajectory with so many sessions of each domain, unlike those before it."""
        best: _Draw | None = None
        for attempt in range(_LIMIT):
            draw = self._draw(counts)
            if draw is not None and (best is None or draw.flagged < best.flagged):
                best = draw
            if best is not None and (best.flagged == 0 or attempt + 1 >= _DRAWS):
                self._uses.update(best.tasks)
                self._drawn.add(best.tasks)
                return best
        raise MemoryDojoError(
            f"no trajectory with {counts} sessions passes its replay in {_LIMIT} draws; "
            f"check that the installed agentdojo ({environment.installed_version()}) is the pinned version"
        )

    def _draw(self, counts: dict[str, int]) -> _Draw | None:
        """One draw, or None if it has not enough tasks, is known already or fails its replay."""
        parts: dict[str, Sequence[Task]] = {}
        for domain, count in counts.items():
            ordered = self._order(domain, self._choose(domain, count))
            if ordered is None or len(ordered) < count:
                return None
            parts[domain] = [(domain, task_id) for task_id in ordered]
        tasks = tuple(interleaved(parts, self._rng))
        if tasks in self._drawn:
            return None
        outcomes = self._replayer.sequence(tasks)
        return _Draw(tasks, tuple(outcomes)) if all(outcome.passed for outcome in outcomes) else None

    def _choose(self, domain: str, count: int) -> list[str]:
        """Tasks that can stand together in some order, those used least first; rather such that no flag is needed."""
        ids = environment.task_ids(domain)
        keys = {task_id: self._uses[domain, task_id] + _CHANCE * self._rng.random() for task_id in ids}
        candidates = sorted(ids, key=lambda task_id: keys[task_id])
        chosen: list[str] = []
        for worst in (_FLAG, _FAIL):
            for task_id in candidates:
                if len(chosen) < count and task_id not in chosen:
                    costs = (min(self._cost(domain, task_id, c), self._cost(domain, c, task_id)) for c in chosen)
                    if max(costs, default=0) < worst:
                        chosen.append(task_id)
        return chosen

    def _order(self, domain: str, chosen: Sequence[str]) -> list[str] | None:
        """A random order in which all pairs pass, with few flags; None if it was not found.

        Next comes always, at random, one of the tasks that harm the remaining ones least.
        """
        remaining, ordered = list(chosen), list[str]()
        while remaining:
            harm = {a: sum(self._cost(domain, a, b) for b in remaining if a != b) for a in remaining}
            least = min(harm.values())
            if least >= _FAIL:
                return None
            ordered.append(shuffled((a for a in remaining if harm[a] == least), self._rng)[0])
            remaining.remove(ordered[-1])
        return ordered

    def _cost(self, domain: str, first: str, second: str) -> int:
        """What it costs to have ``second`` somewhere after ``first``."""
        outcome = self._replayer.pair(domain, first, second)
        return (_FLAG if outcome.flags else 0) if outcome.passed else _FAIL
