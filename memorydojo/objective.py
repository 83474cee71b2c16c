"""Attack objectives: predicates on one session's own actions and final response (psi in the paper, section 3)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Protocol

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.record import Action


class JudgedSession(Protocol):
    """What an objective sees of a session."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """The executed tool calls, nested ones included."""
        ...

    @property
    def final_response(self) -> str | None:
        """The agent's last answer, or None."""
        ...


class Objective(ABC):
    """The behaviour that an attack seeks, independent of how a payload words it.

    Derive from it, or use `CallObjective` or `RecommendationObjective`.

    Attributes:
        id: Unique name.
        domain: The domain whose tools or answers it concerns; decides within-domain and cross-domain parts.
        description: The behaviour in one sentence, for people and for the optimizer.
    """

    def __init__(self, id: str, *, domain: str, description: str) -> None:
        self.id = id
        self.domain = domain
        self.description = description

    @abstractmethod
    def met(self, session: JudgedSession) -> bool:
        """Whether this session's own successful calls and final response execute the objective."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, domain={self.domain!r})"


class Objectives(Mapping[str, Objective]):
    """Objectives by id. An unknown id names the nearest ones; a second objective with the same id is an error."""

    def __init__(self, *objectives: Objective) -> None:
        self._known: dict[str, Objective] = {}
        for objective in objectives:
            self.add(objective)

    def add(self, objective: Objective) -> None:
        """Registers an objective of your own.

        Raises:
            InvalidInputError: Another objective has this id.
        """
        if objective.id in self._known:
            raise InvalidInputError(f"an objective with the id {objective.id!r} exists already; choose another id")
        self._known[objective.id] = objective

    def __getitem__(self, id: str) -> Objective:
        if id not in self._known:
            raise UnknownNameError("objective", id, self._known)
        return self._known[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
