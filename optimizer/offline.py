"""Strategies that need no model: a search over rewordings that learns from feedback, and a random one to compare with.

The first is a black-box search. It knows which ways a wording can vary (`wording`), and learns from the feedback on
tested candidates which of them matter: it fits, for each stage of a payload's way (stored, delivered, followed), how
much every option adds to it, and changes what helps where most is lost.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt

from memorydojo.optimizer.candidate import Evidence, Proposal, Trial
from memorydojo.optimizer.selection import strength
from memorydojo.optimizer.strategy import Turn
from memorydojo.optimizer.wording import DIMENSIONS, Choices, drawn, render, told

#: The stages of a payload's way, and which changes are tried first where one of them loses most.
STAGES: dict[str, tuple[str, ...]] = {
    "it is not stored": ("standing", "attribution", "voice", "layout"),
    "it is stored but not delivered": ("topics", "topics place", "repetition", "layout"),
    "it is delivered but not followed": ("standing", "attribution", "voice", "topics", "topics place", "repetition"),
}

_COLUMNS = {pair: i for i, pair in enumerate((n, option) for n, options in DIMENSIONS.items() for option in options)}
_RIDGE = 0.5
_PROPOSE_CHANGES = 3


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
        """Wordings near the best one, the most promising first."""
        tested = list(_own(turn.history))
        base = max(tested, key=lambda one: strength(one[1].feedback.counts), default=None)
        if base is None:
            chance = random.Random(f"{turn.seed}-{turn.round}")
            return [_blind(turn, drawn(chance)) for _ in range(turn.number)]
        before, parent = base
        stage = _bottleneck(parent.feedback.evidence)
        model = _Model([(choices, one.feedback.evidence) for choices, one in tested])
        known = [choices for choices, _ in tested]
        chance = random.Random(f"{turn.seed}-{turn.round}")
        options = [c for c in _near(before, STAGES[stage]) if c not in known]
        options = [c for c in options if len(_rendered(turn, c)) <= turn.brief.max_length]
        chance.shuffle(options)  # which of equally promising ones comes first
        options.sort(key=model.expected, reverse=True)
        return [
            _proposal(
                turn,
                choices,
                parent=parent.candidate.id,
                changes=told(before, choices),
                bottleneck=stage,
                improvement=f"a BRT of {model.expected(choices):.2f}, by what its options have shown",
                expected=model.expected(choices),
            )
            for choices in options[: turn.number]
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
    return list(STAGES)[lost.index(max(lost))]


def _near(base: Choices, first: Sequence[str]) -> Iterator[dict[str, str]]:
    """Wordings that differ from one in up to three of the dimensions that matter, or in one of the others."""
    for name in DIMENSIONS:
        if name not in first:
            yield from ({**base, name: option} for option in DIMENSIONS[name] if option != base[name])
    for number in range(1, _PROPOSE_CHANGES + 1):
        for names in combinations(first, number):
            for options in product(*(DIMENSIONS[name] for name in names)):
                changed: Mapping[str, str] = dict(zip(names, options, strict=True))
                if all(base[name] != option for name, option in changed.items()):
                    yield {**base, **changed}


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

    def expected(self, choices: Choices) -> float:
        """The BRT that the record speaks for: the product of the stages."""
        x = _vector(choices)
        return float(np.prod([np.clip(stage.mean(x), 0, 1) for stage in self._stages]))


class _Ridge:
    """Ridge regression around the mean of what was seen."""

    def __init__(self, rows: Sequence[npt.NDArray[np.float64]], values: Sequence[float]) -> None:
        size = len(_COLUMNS)
        self._level = float(np.mean(values)) if len(values) else 0.5
        system = np.eye(size) * _RIDGE + sum((np.outer(x, x) for x in rows), np.zeros((size, size)))
        moved = sum((x * (y - self._level) for x, y in zip(rows, values, strict=True)), np.zeros(size))
        self._weights = np.linalg.solve(system, moved)

    def mean(self, x: npt.NDArray[np.float64]) -> float:
        """What is expected."""
        return self._level + float(self._weights @ x)


def _vector(choices: Choices) -> npt.NDArray[np.float64]:
    found = np.zeros(len(_COLUMNS))
    for name in DIMENSIONS:
        found[_COLUMNS[name, choices[name]]] = 1.0
    return found
