"""Histories: recorded conversations that memory holds before the first task, and the question asked after the last.

A trajectory refers to its history by content (`HistoryPrefix`), so that plans stay small and a saved sweep keeps each
history once. History sessions are not task sessions: they have no number t and count in no metric.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import AwareDatetime, Field, PrivateAttr, model_validator

from memorydojo._base import Frozen
from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError, UnknownNameError

QUESTION_TYPES = {
    "single-session-user": "fact",
    "single-session-assistant": "fact",
    "single-session-preference": "preference",
    "multi-session": "fact",
    "temporal-reasoning": "time",
    "knowledge-update": "update",
}
"""The types of questions (LongMemEval's), and by which rule the answers to each are judged."""


class HeldOutQuestion(Frozen):
    """A question about a history that memory never sees before it is asked.

    Attributes:
        id: Its id. One that ends with ``_abs`` has no answer: to say so is right.
        type: A key of `QUESTION_TYPES`.
        text: What is asked.
        reference: The right answer, or for preferences what a right answer takes into account.
        asked: The date that the question was written for: what "last week" in it counts from.
    """

    id: str
    type: str
    text: str
    reference: str | int
    asked: AwareDatetime | None = None

    @property
    def abstention(self) -> bool:
        """Whether to say that it cannot be known is right."""
        return self.id.endswith("_abs")

    @property
    def judged_as(self) -> str:
        """By which rule the answer is judged.

        Raises:
            UnknownNameError: There is no such type.
        """
        if self.type not in QUESTION_TYPES:
            raise UnknownNameError("type of question", self.type, QUESTION_TYPES)
        return "abstention" if self.abstention else QUESTION_TYPES[self.type]


class Turn(Frozen):
    """One message of a recorded conversation."""

    role: Literal["user", "assistant"]
    text: str


class HistorySession(Frozen):
    """One recorded conversation.

    Attributes:
        id: The id that its source gives it.
        time: When it took place.
        turns: What was said, in order. It may begin and end with either role.
    """

    id: str
    time: AwareDatetime
    turns: tuple[Turn, ...] = Field(min_length=1)


class History(Frozen):
    """Recorded conversations in order of time, and the question held out of them.

    Attributes:
        id: The question's id.
        question: The question. Neither it nor its reference ever reaches memory before it is asked.
        sessions: The conversations, the oldest first.
        evidence: Ids of the sessions that hold the answer, for people and checks; it reaches no memory and no model.
    """

    id: str
    question: HeldOutQuestion
    sessions: tuple[HistorySession, ...] = Field(min_length=1)
    evidence: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> "History":
        times = [session.time for session in self.sessions]
        if times != sorted(times):
            raise ValueError("the sessions of a history must be in order of time, the oldest first")
        return self

    def __repr__(self) -> str:
        told = f"{counted(len(self.sessions), 'session')}, {counted(self.n_messages, 'message')}"
        return f"<History {plain(self.id)!r}: {told}>"

    @property
    def n_messages(self) -> int:
        """The number of messages in all sessions together."""
        return sum(len(session.turns) for session in self.sessions)

    @property
    def sha256(self) -> str:
        """Hash of all of it, the question included: equal histories have equal hashes."""
        data = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(data.encode("ascii")).hexdigest()


class HistoryPrefix(Frozen):
    """The history of a trajectory: what a plan says of it, by content.

    The sessions are no part of what is compared, saved with a plan or sent to another process; a directory of runs
    keeps them in a file of its own (`memorydojo.runs.histories`).

    Attributes:
        id: Id of the history.
        sha256: Hash of its content.
        n_sessions: The number of its sessions.
        n_messages: The number of messages in them.
        question: The question that is asked after the last task session.
    """

    id: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    n_sessions: int = Field(ge=1)
    n_messages: int = Field(ge=1)
    question: HeldOutQuestion

    _content: History | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, history: History) -> "HistoryPrefix":
        """The prefix with its content."""
        prefix = cls(
            id=history.id,
            sha256=history.sha256,
            n_sessions=len(history.sessions),
            n_messages=history.n_messages,
            question=history.question,
        )
        prefix._content = history
        return prefix

    @property
    def content(self) -> History | None:
        """The history itself, if it came along; a plan that was read from a file or in another process has none."""
        return self._content

    def __eq__(self, other: object) -> bool:
        # Not pydantic's own, which also compares the private content.
        return isinstance(other, HistoryPrefix) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __getstate__(self) -> dict[Any, Any]:
        return {**super().__getstate__(), "__pydantic_private__": {"_content": None}}


def history_number(number: int, total: int) -> int:
    """What a history session is known by where task sessions count from 1: -1 for the last, -2 for the one before it.

    Args:
        number: Its 1-based place in the history.
        total: The number of history sessions.
    """
    return number - total - 1


def check_distinct(histories: Iterable[History]) -> None:
    """Refuses histories of which two have one id.

    Raises:
        InvalidInputError: Two have the same id.
    """
    seen: set[str] = set()
    for history in histories:
        if history.id in seen:
            raise InvalidInputError(f"two histories have the id {history.id!r}; rename one of them")
        seen.add(history.id)
