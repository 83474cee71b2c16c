"""Trajectories: sequences of task sessions that one agent works through with one memory."""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_serializer, model_serializer

from memorydojo._base import Frozen
from memorydojo._display import counted, plain
from memorydojo.history import HistoryPrefix
from memorydojo.view import Column, View, Viewed, cut

Domain = Literal["workspace", "travel", "banking", "slack"]
Flag = Literal["drift", "stale-success"]

FLAGS: dict[Flag, str] = {
    "drift": "the ground-truth observations differ from those on fresh state, so an honest agent can fail the task",
    "stale-success": "the task counts as solved on the carried state without any action",
}
"""What the flags of sessions mean, for people."""

DOMAINS: tuple[Domain, ...] = ("workspace", "travel", "banking", "slack")


_MOST_SESSIONS = 100


def suite_name(domain: str) -> str:
    """A domain without its variant.

    >>> suite_name("auxiliary-banking:17"), suite_name("travel")
    ('auxiliary-banking', 'travel')
    """
    return domain.partition(":")[0]


class Session(Frozen):
    """One planned task session: an occurrence of a task template in a trajectory.

    Attributes:
        domain: The AgentDojo suite that the task belongs to; or an installed suite (``docs/auxiliary.md``), which may
            have a variant after a colon, as in ``"auxiliary-banking:17"``.
        task_id: The task template, for example ``"user_task_13"``.
        flags: What the validator found about this session at its place in the trajectory. ``"drift"``: the
            ground-truth observations differ from those on fresh state although the text answer is checked, so an
            honest agent can fail a task that ground truth passes. ``"stale-success"``: the utility check passes on
            the carried state without any action.
    """

    domain: str
    task_id: str
    flags: frozenset[Flag] = frozenset()

    @property
    def suite(self) -> str:
        """The domain without its variant: what objectives, tables and metrics mean by a domain."""
        return suite_name(self.domain)

    @field_serializer("flags")
    def _sorted_flags(self, flags: frozenset[Flag]) -> list[Flag]:
        return sorted(flags)


class Trajectory(Viewed, Frozen):
    """A planned sequence of task sessions (paper, section 4.1).

    Environment state is carried from session to session within each domain; memory is shared by all sessions.

    Attributes:
        id: Unique within its collection.
        collection: ``"same-domain"``, ``"cross-domain"``, ``"history-prefixed"`` or the name of a user's own
            collection.
        sessions: The task sessions in order. Session numbers elsewhere are 1-based positions in this tuple.
        history: Recorded conversations that memory holds before the first task session, and a question that is asked
            after the last; None for memory that starts empty.
    """

    id: str
    collection: str
    sessions: tuple[Session, ...] = Field(min_length=1)
    history: HistoryPrefix | None = None

    @model_serializer(mode="wrap")
    def _without_absent_history(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # A plan without history is what it was before there were any: the ids of saved runs hang on it.
        data: dict[str, Any] = handler(self)
        if self.history is None:
            data.pop("history", None)
        return data

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that occur, in order of first occurrence."""
        return tuple(dict.fromkeys(session.domain for session in self.sessions))

    def __len__(self) -> int:
        """The number of planned task sessions, T in the paper."""
        return len(self.sessions)

    def view(self) -> View:
        """Its sessions, and what memory holds before them."""
        flagged = {flag for session in self.sessions for flag in session.flags}
        notes = [f"{flag}: {meaning}." for flag, meaning in FLAGS.items() if flag in flagged]
        history = self.history
        if history is not None:
            told = f"{counted(history.n_sessions, 'session')}, {counted(history.n_messages, 'message')}"
            notes = [
                f"Before them: the history {history.id}, {told}.",
                f"After them the question: {history.question.text}",
                *notes,
            ]
        sessions, more = cut(self.sessions, "session", limit=_MOST_SESSIONS)
        return View(
            f"Trajectory {self.id} ({self.collection}, {counted(len(self), 'session')})",
            (Column("session", number=True), "domain", "task", "flags"),
            [(number, s.domain, s.task_id, ", ".join(sorted(s.flags))) for number, s in enumerate(sessions, start=1)],
            more=more,
            notes=notes,
        )

    def __repr__(self) -> str:
        return f"<Trajectory {plain(self.id)!r}: {counted(len(self), 'session')}>"
