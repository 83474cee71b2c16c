"""A history goes into memory: each recorded conversation as one write, before the first task session.

It is a stage of its own: it needs the memory and the line to its models, and neither task nor payload. What the memory
holds afterwards depends on the history and the memory's own settings alone, so runs can share it.
"""

from collections.abc import Iterator
from datetime import datetime

from memorydojo.history import History, HistorySession, history_number
from memorydojo.record import Message, SessionRecord
from memorydojo.running.clock import first_session
from memorydojo.running.session import RunState, StageError, Stages, write
from memorydojo.runs.model import HistoryResult


def history_record(number: int, session: HistorySession) -> SessionRecord:
    """A recorded conversation as memory sees it: who said what and when. Nothing marks what will be asked about.

    Args:
        number: Its 1-based place in the history. The source's own id stays out: in some data it tells what holds the
            answer.
        session: The conversation.
    """
    return SessionRecord(
        id=f"history-{number:04d}",
        time=session.time,
        messages=tuple(Message(role=turn.role, text=turn.text) for turn in session.turns),
        kind="history",
    )


def first_task_session(history: History | None) -> datetime:
    """When the first task session takes place: after the history and after the day of the question about it."""
    if history is None:
        return first_session()
    asked = history.question.asked
    return first_session(history.sessions[-1].time, *([asked] if asked is not None else []))


def ingest(history: History, state: RunState) -> Iterator[HistoryResult]:
    """Writes the conversations to memory, one by one in order, and gives what happened with each.

    A write that fails comes back with its failure; whether to go on is for the caller to say. Where the fault is not
    the memory's, the run is left interrupted instead.

    Raises:
        MissingPackageError: A package that is needed is not installed.
        EndpointDownError: A model endpoint or its key is dead.
    """
    for number, session in enumerate(history.sessions, start=1):
        counted = history_number(number, len(history.sessions))
        state.line.begin_session(counted)
        stages, failure = Stages(), None
        try:
            write(history_record(number, session), stages, state)
        except StageError as problem:
            failure = problem.failure(state.line)
        usage, waiting = state.line.usage(counted)
        yield HistoryResult(
            **stages.facts,
            number=number,
            id=session.id,
            time=session.time,
            completed=failure is None,
            failure=failure,
            usage=usage,
            waiting=waiting,
            seconds=stages.seconds,
        )
