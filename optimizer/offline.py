"""Strategies that need no model: a search over rewordings that learns from feedback, and a random one to compare with.

The first is a black-box search. It knows which ways a wording can vary (`wording`), and learns from the feedback on
tested candidates which of them matter: it fits, for each stage of a payload's way (stored, delivered, followed), how
much every option adds to it, and proposes what such a fit, drawn at random from those that the record allows, finds
best among the wordings near the best one.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from memorydojo.optimizer.candidate import Evidence, Proposal, Trial
from memorydojo.optimizer.selection import strength
from memorydojo.optimizer.strategy import Turn
from memorydojo.optimizer.wording import DIMENSIONS, Choices, drawn, render, told

#: Where a payload can be lost, stage by stage.
STAGES = ("it is not stored", "it is stored but not delivered", "it is delivered but not followed")

#: In how many ways a proposal differs from the best wording at most.
MOST_CHANGES = 3

Array = npt.NDArray[np.float64]

_COLUMNS = {pair: i for i, pair in enumerate((n, option) for n, options in DIMENSIONS.items() for option in options)}
_RIDGE = 3.0
_LEAST = 0.01
_SPREAD = 0.3
"""How far a drawn fit may lie from the best one, in the unit of the rates: the scatter that single tests have."""


@dataclass(frozen=True)
class FeedbackStrategy:
    """Changes the best wording where most is lost, by what the options have shown so far. Deterministic."""

    name: str = "offline-1"
    model: None = None

    def write_seed(self, turn: Turn) -> Sequence[Proposal]:
        """A wording by what the memory system says of itself: see `_by_memory`."""
        choices = _by_memory(turn.brief.memory)
        why = "chosen by the description of the memory system alone"
        return [_proposal(turn, choices, changes=why, bottleneck="nothing is known yet", improvement="none is claimed")]

    def propose(self, turn: Turn) -> Sequence[Proposal]:
        """Wordings near the best one, each the choice of another fit; what the record speaks for most comes first."""
        tested = list(_own(turn.history))
        base = max(tested, key=lambda one: strength(one[1].feedback.counts), default=None)
        if base is None:
            chance = random.Random(f"{turn.seed}-{turn.round}")
            return [_blind(turn, drawn(chance)) for _ in range(turn.number)]
        before, parent = base
        model = _Model([(choices, one.feedback.evidence) for choices, one in tested])
        known = [dict(choices) for choices, _ in tested]
        options = [choices for choices in _near(before) if choices not in known]
        rows = np.array([_vector(choices) for choices in options])
        drawing = np.random.default_rng([turn.seed % 2**32, turn.round])
        expected = model.expected(rows)
        found: list[int] = []
        for _ in range(turn.number):
            ranked = np.argsort(-model.drawn(rows, drawing), kind="stable")
            fitting = (i for i in map(int, ranked) if i not in found and _fits(turn, options[i]))
            found += [next(fitting)] if len(found) < len(options) else []
        return [
            _proposal(
                turn,
                options[i],
                parent=parent.candidate.id,
                changes=told(before, options[i]),
                bottleneck=_bottleneck(parent.feedback.evidence),
                improvement=f"a BRT of {expected[i]:.2f}, by what its options have shown",
                expected=float(expected[i]),
            )
            for i in sorted(found, key=lambda i: -expected[i])
        ]


@dataclass(frozen=True)
class RandomStrategy:
    """Random rewordings from the same space, blind to feedback: what a strategy has to beat."""

    name: str = "random-1"
    model: None = None

    def write_seed(self, turn: Turn) -> Sequence[Proposal]:
        """A random wording."""
        return self.propose(turn)

    def propose(self, turn: Turn) -> Sequence[Proposal]:
        """Random wordings."""
        chance = random.Random(f"{turn.seed}-{turn.round}")
        return [_blind(turn, drawn(chance)) for _ in range(turn.number)]


def _blind(turn: Turn, choices: Choices) -> Proposal:
    return _proposal(turn, choices, changes="a random wording", bottleneck="none is looked for", improvement="none")


def _rendered(turn: Turn, choices: Choices) -> str:
    return render(choices, objective=turn.brief.objective, ontology=turn.brief.ontology)


def _proposal(
    turn: Turn,
    choices: Choices,
    *,
    changes: str,
    bottleneck: str,
    improvement: str,
    parent: str | None = None,
    expected: float = 0.0,
) -> Proposal:
    return Proposal(
        payload=_rendered(turn, choices),
        changes=changes,
        bottleneck=bottleneck,
        improvement=improvement,
        expected_brt=min(max(expected, 0.0), 1.0),
        parent=parent,
        notes=dict(choices),
    )


def _own(history: Iterable[Trial]) -> Iterator[tuple[Choices, Trial]]:
    """The tested candidates whose choices are known."""
    for one in history:
        notes = one.candidate.proposal.notes if one.candidate.proposal is not None else {}
        if all(notes.get(dimension) in options for dimension, options in DIMENSIONS.items()):
            yield notes, one


def _by_memory(memory: str) -> dict[str, str]:
    """A system that extracts facts is given one self-contained standing sentence; others get it laid out and twice."""
    text = memory.lower()
    extracts = "extract" in text or "fact" in text
    similar = "embedding" in text or "similar" in text or "vector" in text
    return {
        "standing": "from now on",
        "attribution": "the user" if extracts else "none",
        "voice": "order",
        "topics": "first" if similar else "none",
        "topics place": "inside",
        "repetition": "once" if extracts else "twice",
        "layout": "line" if extracts else "paragraphs",
    }


def _rates(found: Evidence) -> tuple[float | None, ...]:
    """The share that each stage lets through; None where nothing came to it."""
    stored = found.held / found.later if found.later else None
    delivered = found.shown / found.held if found.held else None
    followed = found.followed / found.shown if found.shown else None
    return stored, delivered, followed


def _bottleneck(found: Evidence) -> str:
    """The stage that loses most of the later sessions."""
    passed = [found.later, found.held, found.shown, found.followed]
    lost = [before - after for before, after in pairwise(passed)]
    return STAGES[lost.index(max(lost))]


def _near(base: Choices) -> Iterator[dict[str, str]]:
    """All wordings that differ from one in few ways."""
    for options in product(*DIMENSIONS.values()):
        choices = dict(zip(DIMENSIONS, options, strict=True))
        if 1 <= sum(base[name] != option for name, option in choices.items()) <= MOST_CHANGES:
            yield choices


def _fits(turn: Turn, choices: Choices) -> bool:
    return len(_rendered(turn, choices)) <= turn.brief.max_length


class _Model:
    """How much every option adds to each stage, by ridge regression on what was tested.

    Args:
        tested: Choices with the evidence on them.
    """

    def __init__(self, tested: Sequence[tuple[Choices, Evidence]]) -> None:
        self._stages = []
        rates = [_rates(evidence) for _, evidence in tested]
        for stage in range(len(STAGES)):
            seen = [(_vector(c), r[stage]) for (c, _), r in zip(tested, rates, strict=True) if r[stage] is not None]
            self._stages.append(_Ridge([x for x, _ in seen], [float(y or 0.0) for _, y in seen]))

    def expected(self, rows: Array) -> Array:
        """The BRT of wordings that the record speaks for: the product of the stages."""
        return _product([stage.mean(rows) for stage in self._stages], 1.0)

    def drawn(self, rows: Array, drawing: np.random.Generator) -> Array:
        """Their BRT by a fit that is drawn from those that the record allows."""
        # Without an upper bound: what a fit finds best must stay apart from what it finds good.
        return _product([stage.drawn(rows, drawing) for stage in self._stages], np.inf)


def _product(stages: Sequence[Array], most: float) -> Array:
    result: Array = np.prod([np.clip(rates, _LEAST, most) for rates in stages], axis=0)
    return result


class _Ridge:
    """Ridge regression around the mean of what was seen."""

    def __init__(self, rows: Sequence[Array], values: Sequence[float]) -> None:
        size = len(_COLUMNS)
        self._level = float(np.mean(values)) if len(values) else 0.5
        system = np.eye(size) * _RIDGE + sum((np.outer(x, x) for x in rows), np.zeros((size, size)))
        self._covariance = np.linalg.inv(system)
        moved = sum((x * (y - self._level) for x, y in zip(rows, values, strict=True)), np.zeros(size))
        self._weights: Array = self._covariance @ moved

    def mean(self, rows: Array) -> Array:
        """What is expected."""
        result: Array = self._level + rows @ self._weights
        return result

    def drawn(self, rows: Array, drawing: np.random.Generator) -> Array:
        """What a fit near the best one expects."""
        weights = drawing.multivariate_normal(self._weights, self._covariance * _SPREAD**2, method="cholesky")
        result: Array = self._level + rows @ weights
        return result


def _vector(choices: Choices) -> Array:
    found = np.zeros(len(_COLUMNS))
    for name in DIMENSIONS:
        found[_COLUMNS[name, choices[name]]] = 1.0
    return found
