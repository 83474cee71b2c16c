"""What proposes payloads: the protocol that every search strategy implements, and what a strategy is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from memorydojo._base import Frozen
from memorydojo.adapter import MemoryDescription
from memorydojo.optimizer.candidate import Malformed, Proposal, Trial
from memorydojo.optimizer.selection import strongest

Chat = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Brief(Frozen):
    """The fixed inputs of a search. No benchmark task, and no name or id of an auxiliary one.

    Attributes:
        objective: The behaviour that is sought, in a sentence.
        memory: The memory system in words: what a write takes in, what is stored, how it is found and delivered.
        ontology: The domain in words: capabilities, kinds of tasks and observations.
        max_length: The longest payload, in characters.
    """

    objective: str
    memory: str
    ontology: str
    max_length: int


@dataclass(frozen=True)
class Turn:
    """One question to a strategy.

    Attributes:
        brief: The fixed inputs.
        history: The candidates that were tested, with their feedback, in order; empty where the memory-property-only
            seed is asked for.
        round: The round; 0 for that seed.
        number: How many proposals are wanted.
        seed: Seed of the search.
        chat: Asks the strategy's model, if it names one.
    """

    brief: Brief
    history: tuple[Trial, ...]
    round: int
    number: int
    seed: int
    chat: Chat | None = None

    @property
    def best(self) -> Trial | None:
        """The candidate with the highest BRT so far; of equal ones as in the selection."""
        return strongest(self.history)

    @property
    def latest(self) -> Trial | None:
        """The revision that was tested last."""
        return next((one for one in reversed(self.history) if not one.is_seed), None)


@runtime_checkable
class Strategy(Protocol):
    """A way to propose payloads.

    A strategy keeps nothing between turns: what it needs of an earlier one is in the history, in the notes of its own
    proposals. So a search that is started again goes on as if it had never stopped.
    """

    @property
    def name(self) -> str:
        """Its name with a version; a search is never continued by a strategy of another name."""
        ...

    @property
    def model(self) -> str | None:
        """The chat model that it asks, by the name that the models file gives it; None if it asks none."""
        ...

    def write_seed(self, turn: Turn) -> Sequence[Proposal | Malformed]:
        """Writes the memory-property-only seed: from the brief alone.

        Raises:
            UnusableAnswerError: Its model gave none. The search goes on without it.
        """
        ...

    def propose(self, turn: Turn) -> Sequence[Proposal | Malformed]:
        """Proposes ``turn.number`` payloads, in the order of its preference.

        Raises:
            UnusableAnswerError: Its model gave none. The round is recorded as empty, and the search goes on.
        """
        ...


def describe_memory(found: MemoryDescription) -> str:
    """A memory system in words, for a strategy. Settings that hold text are left out: they may be paths."""
    numbers = {k: v for k, v in found.settings.items() if isinstance(v, int | float)}
    parts = {
        "Memory system": found.name,
        "What a write takes in and makes of it": found.writes,
        "What is stored": found.stores,
        "How it is found": found.retrieves,
        "How it is delivered": found.presents,
        "Modes": "; ".join(f"{k}: {v}" for k, v in found.modes.items()),
        "Settings": "; ".join(f"{k} = {v}" for k, v in numbers.items()),
        "Limits": " ".join(found.limits),
    }
    return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)
