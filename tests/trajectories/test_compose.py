"""Composing: deterministic, and with the properties that the collections promise."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorydojo.errors import MemoryDojoError
from memorydojo.running import environment
from memorydojo.trajectories import compose
from memorydojo.trajectories.collections import SHIPPED, shipped_text
from memorydojo.trajectories.replay import Outcome, Replayer
from memorydojo.trajectories.validate import composition_problems
from memorydojo.trajectory import DOMAINS

seeds = st.integers(0, 2**32)


@given(st.lists(st.integers()), seeds)
def test_shuffling_keeps_all_items(items: list[int], seed: int) -> None:
    assert Counter(compose.shuffled(items, Random(seed))) == Counter(items)


@given(st.lists(st.integers()), seeds)
def test_shuffling_depends_on_the_seed_alone(items: list[int], seed: int) -> None:
    assert compose.shuffled(items, Random(seed)) == compose.shuffled(items, Random(seed))


@given(st.integers(0, 100), seeds)
def test_shares_are_even_and_make_up_the_length(length: int, seed: int) -> None:
    shares = compose.shares(length, Random(seed))
    assert sum(shares.values()) == length
    assert max(shares.values()) - min(shares.values()) <= 1


@given(st.integers(0, 100), seeds)
def test_interleaving_keeps_each_order_and_mixes_in_rounds(length: int, seed: int) -> None:
    shares = compose.shares(length, Random(seed))
    mixed = compose.interleaved({d: [(d, n) for n in range(count)] for d, count in shares.items()}, Random(seed))
    assert len(mixed) == length
    for domain in DOMAINS:
        assert [item for item in mixed if item[0] == domain] == [(domain, n) for n in range(shares[domain])]
    assert [n for _, n in mixed] == sorted(n for _, n in mixed)


@pytest.fixture(scope="module")
def banking() -> None:
    """Imports AgentDojo before a test that is timed."""
    environment.task_ids("banking")


class Rules(Replayer):
    """Replays by rules: what fails and what is flagged after what."""

    def __init__(self, fails: set[tuple[str, str]], flagged: set[tuple[str, str]]) -> None:
        super().__init__()
        self.fails, self.flagged = fails, flagged

    def pair(self, domain: str, first: str, second: str) -> Outcome:
        if (first, second) in self.fails:
            return Outcome("fails")
        return Outcome(None, frozenset(["drift"] if (first, second) in self.flagged else []))

    def sequence(self, tasks: object) -> list[Outcome]:
        ids = [task_id for _, task_id in tasks]  # type: ignore[attr-defined]
        return [self._worst([self.pair("", a, b) for a in ids[:n]]) for n, b in enumerate(ids)]

    @staticmethod
    def _worst(outcomes: list[Outcome]) -> Outcome:
        return max(outcomes, key=lambda o: (not o.passed, bool(o.flags)), default=Outcome(None))


banking_tasks = st.integers(0, 15).map(lambda n: f"user_task_{n}")
some_pairs = st.sets(st.tuples(banking_tasks, banking_tasks).filter(lambda pair: pair[0] != pair[1]), max_size=40)


@pytest.mark.usefixtures("banking")
@settings(deadline=None)
@given(some_pairs, some_pairs, st.integers(1, 8), seeds)
def test_a_draw_has_no_repeat_and_no_failing_pair(
    fails: set[tuple[str, str]], flagged: set[tuple[str, str]], count: int, seed: int
) -> None:
    composer = compose._Composer(Random(seed), Rules(fails, flagged))
    draw = composer._draw({"banking": count})
    if draw is not None:
        ids = [task_id for _, task_id in draw.tasks]
        assert len(set(ids)) == len(ids) == count
        assert not any((a, b) in fails for n, a in enumerate(ids) for b in ids[n + 1 :])


@pytest.mark.usefixtures("banking")
@settings(deadline=None)
@given(st.permutations(range(16)), st.integers(1, 16), seeds)
def test_flags_are_avoided_where_an_order_without_them_exists(order: list[int], count: int, seed: int) -> None:
    """Every pair against one hidden order is flagged, so that this order alone has no flag."""
    hidden = [f"user_task_{n}" for n in order]
    against = {(b, a) for n, a in enumerate(hidden) for b in hidden[n + 1 :]}
    draw = compose._Composer(Random(seed), Rules(set(), against)).compose({"banking": count})
    assert draw.flagged == 0
    assert [t for _, t in draw.tasks] == [t for t in hidden if ("banking", t) in draw.tasks]


@pytest.mark.usefixtures("banking")
@settings(deadline=None)
@given(seeds)
def test_tasks_that_cannot_stand_together_are_not_drawn_together(seed: int) -> None:
    draw = compose._Composer(
        Random(seed), Rules({("user_task_1", "user_task_2"), ("user_task_2", "user_task_1")}, set())
    ).compose({"banking": 15})
    assert not {("banking", "user_task_1"), ("banking", "user_task_2")} <= set(draw.tasks)


@pytest.mark.usefixtures("banking")
@settings(deadline=None)
@given(seeds)
def test_uses_stay_balanced(seed: int) -> None:
    composer = compose._Composer(Random(seed), Rules(set(), set()))
    uses = Counter(task for _ in range(20) for task in composer.compose({"banking": 4}).tasks)
    assert len(uses) == 16
    assert max(uses.values()) - min(uses.values()) <= 3


def test_what_cannot_be_composed_is_an_error() -> None:
    everything = {(f"user_task_{a}", f"user_task_{b}") for a in range(16) for b in range(16) if a != b}
    composer = compose._Composer(Random(0), Rules(everything, set()))
    with pytest.raises(MemoryDojoError, match=r"no trajectory with .*'banking': 2.* passes its replay in 500 draws"):
        composer.compose({"banking": 2})


@pytest.mark.slow
def test_building_under_another_hash_seed_reproduces_the_shipped_files_byte_for_byte(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from memorydojo.trajectories import compose\n"
        "for name, c in compose.build(compose.SEED).items():\n"
        "    c.save(pathlib.Path(sys.argv[1]) / f'{name}.json')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=os.environ | {"PYTHONHASHSEED": "4711"})
    for name in SHIPPED:
        assert (tmp_path / f"{name}.json").read_bytes() == shipped_text(name).encode()


@pytest.mark.slow
def test_another_seed_gives_other_collections_of_the_same_composition() -> None:
    for name, collection in compose.build(1).items():
        assert composition_problems(collection) == []
        assert collection.dumps() != shipped_text(name)
        assert collection.seed == 1
