"""What is saved of a run, against its plan."""

from collections.abc import Sequence
from pathlib import Path

from memorydojo.errors import SavedRunError
from memorydojo.judging.labels import Labels
from memorydojo.runs._files import shown
from memorydojo.runs.model import HistoryResult, QuestionResult, RunHeader, RunPlan, SessionResult


def check_session(result: SessionResult, plan: RunPlan, number: int, *, where: str) -> None:
    """Refuses a session that is not the given one of the plan.

    Raises:
        SavedRunError: Number, domain or task differ.
    """
    planned = plan.trajectory.sessions
    if result.session != number or number > len(planned):
        raise SavedRunError(
            f"{where}: found session {result.session} where session {number} of {len(planned)} was due; "
            "sessions are saved in order, one by one"
        )
    due = planned[number - 1]
    if (result.domain, result.task_id) != (due.domain, due.task_id):
        raise SavedRunError(
            f"{where}: session {number} is {result.domain}/{result.task_id}, "
            f"but the plan has {due.domain}/{due.task_id} there"
        )


def check_history(result: HistoryResult, plan: RunPlan, number: int, *, where: str) -> None:
    """Refuses what is not the given conversation of the plan's history.

    Raises:
        SavedRunError: The plan has no history, or the number differs.
    """
    history = plan.trajectory.history
    planned = history.n_sessions if history is not None else 0
    if result.number != number or number > planned:
        raise SavedRunError(
            f"{where}: found history session {result.number} where number {number} of {planned} was due; "
            "history sessions are saved in order, one by one"
        )


def check_question(result: QuestionResult, plan: RunPlan, *, where: str) -> None:
    """Refuses the result of a question that is not the plan's.

    Raises:
        SavedRunError: The plan has another question, or none.
    """
    history = plan.trajectory.history
    if history is None or result.question != history.question:
        raise SavedRunError(f"{where}: the question {result.question.id!r} is not the held-out question of this run")


def check_labels(labels: Labels, header: RunHeader, begun: Sequence[int], path: Path) -> None:
    """Refuses labels that are not of a run with this header and these sessions.

    Raises:
        SavedRunError: Run, payload or sessions differ.
    """
    payload = header.plan.insertion.payload.sha256 if header.plan.insertion else None
    found = labels.run_id, labels.payload_sha256, [session.session for session in labels.sessions]
    if found != (header.run_id, payload, [*begun]):
        raise SavedRunError(
            f"the labels in {shown(path)} belong to another run or to other sessions of it; "
            "label the run again with memorydojo.judging.label_run"
        )
