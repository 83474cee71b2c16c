"""Histories in front of trajectories: the ones that ship, the paper's selection, and the pairing.

The selection (paper, section 4.1 and appendix A.1): six multi-session histories and five of each other type, of 38 to
62 sessions each. The paper does not say which; here they are those whose hash with the seed is least, so that the
choice depends on neither the order of the file nor the machine. Questions without an answer (``_abs``) are left out: a
memory that has lost everything would be right about them.
"""

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files

from memorydojo.errors import InvalidInputError
from memorydojo.history import QUESTION_TYPES, History, HistoryPrefix, check_distinct
from memorydojo.trajectories.collections import HISTORY_PREFIXED, Collection, load
from memorydojo.trajectories.longmemeval import HistoryFile
from memorydojo.trajectory import Trajectory

WANTED = {type_: 6 if type_ == "multi-session" else 5 for type_ in QUESTION_TYPES}
"""How many histories of each type the paper selects."""

FEWEST_SESSIONS, MOST_SESSIONS = 38, 62

PAPER_SESSIONS, PAPER_MESSAGES = 1493, 15362
"""What the paper's 31 histories add up to."""


@lru_cache(maxsize=1)
def shipped() -> tuple[History, ...]:
    """The histories that ship: written for this project, at least one of each type, in the form of LongMemEval."""
    with as_file(files("memorydojo.trajectories.data") / "histories.json") as path:
        return tuple(HistoryFile(path))


@dataclass(frozen=True)
class _Candidate:
    """A history in the draw; of two, the one with the greater hash comes first out of a heap."""

    rank: str
    history: History

    def __lt__(self, other: "_Candidate") -> bool:
        return self.rank > other.rank


def select(histories: Iterable[History], *, seed: int = 0) -> list[History]:
    """The paper's selection; see the head of this module. Holds no more histories at once than it selects, and one.

    Args:
        histories: All histories, in any order.
        seed: Another seed gives another selection.

    Returns:
        The selected histories by type, in the order of `QUESTION_TYPES`, within a type in the order of their hashes.

    Raises:
        InvalidInputError: There are too few of a type.
    """
    drawn: dict[str, list[_Candidate]] = {type_: [] for type_ in WANTED}
    for history in histories:
        if history.question.abstention or not FEWEST_SESSIONS <= len(history.sessions) <= MOST_SESSIONS:
            continue
        heap = drawn[history.question.type]
        candidate = _Candidate(hashlib.sha256(f"{seed} {history.id}".encode()).hexdigest(), history)
        if len(heap) < WANTED[history.question.type]:
            heapq.heappush(heap, candidate)
        else:
            heapq.heappushpop(heap, candidate)
    short = [f"{len(heap)} of {WANTED[type_]} {type_}" for type_, heap in drawn.items() if len(heap) < WANTED[type_]]
    if short:
        raise InvalidInputError(
            f"there are too few histories of {FEWEST_SESSIONS} to {MOST_SESSIONS} sessions with an answer: "
            f"{', '.join(short)}. The paper selects from the S file of LongMemEval; to take every history of this "
            "file as it is, use --all (or memorydojo.trajectories.pair)"
        )
    return [found.history for heap in drawn.values() for found in sorted(heap, key=lambda c: c.rank)]


def pair(histories: Sequence[History], trajectories: Sequence[Trajectory] | None = None) -> Collection:
    """Puts each history in front of a trajectory of its own.

    Histories are taken in turn from each type, so that no type gets the short trajectories only: the cross-domain
    collection is in order of length.

    Args:
        histories: The histories; their ids are unique.
        trajectories: The trajectories, taken from the first on; the cross-domain collection if they are not given.

    Raises:
        InvalidInputError: There are more histories than trajectories, or two of one id.
    """
    tasks = load("cross-domain") if trajectories is None else trajectories
    check_distinct(histories)
    if len(histories) > len(tasks):
        raise InvalidInputError(
            f"there are {len(histories)} histories for {len(tasks)} trajectories, and each needs one of its own; "
            "take fewer histories"
        )
    by_type = [[h for h in histories if h.question.type == type_] for type_ in QUESTION_TYPES]
    in_turn = [h for row in itertools.zip_longest(*by_type) for h in row if h is not None]
    return Collection(
        name=HISTORY_PREFIXED,
        trajectories=tuple(
            task.model_copy(
                update={
                    "id": f"{task.id}+{history.id}",
                    "collection": HISTORY_PREFIXED,
                    "history": HistoryPrefix.of(history),
                }
            )
            for history, task in zip(in_turn, tasks, strict=False)
        ),
        seed=tasks.seed if isinstance(tasks, Collection) else None,
    )


def history_prefixed() -> Collection:
    """The shipped histories, each in front of a cross-domain trajectory."""
    return pair(shipped())
