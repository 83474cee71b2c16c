"""Histories for tests: short ones, whose secrets are words that occur nowhere else."""

from datetime import UTC, datetime, timedelta
from typing import Any

from memorydojo.history import HeldOutQuestion, History, HistoryPrefix, HistorySession, Turn
from memorydojo.trajectory import Session, Trajectory

START = datetime(2023, 5, 1, 9, 30, tzinfo=UTC)
QUESTION = "What is the name of the quokkaquestion boat?"
REFERENCE = "zephyranswer"
EVIDENCE = "evidencemark_1"


def history(n: int = 3, *, id: str = "h-1", type: str = "single-session-user", **fields: Any) -> History:
    told = [
        HistorySession(
            id=EVIDENCE if number == 1 else f"filler_{number}",
            time=START + timedelta(days=number - 1),
            turns=(
                Turn(role="user", text=f"I always keep my boat number {number} in harbour {number}, remember it."),
                Turn(role="assistant", text=f"Noted: you always keep boat {number} there."),
            ),
        )
        for number in range(1, n + 1)
    ]
    question = HeldOutQuestion(
        id=id, type=type, text=QUESTION, reference=REFERENCE, asked=START + timedelta(days=n + 1)
    )
    settings: dict[str, Any] = {"id": id, "question": question, "sessions": tuple(told), "evidence": (EVIDENCE,)}
    return History(**{**settings, **fields})


def prefixed(*tasks: int, domain: str = "banking", told: History | None = None) -> Trajectory:
    sessions = tuple(Session(domain=domain, task_id=f"user_task_{n}") for n in tasks)
    prefix = HistoryPrefix.of(history() if told is None else told)
    return Trajectory(id="short", collection="test", sessions=sessions, history=prefix)


def instance(**fields: Any) -> dict[str, Any]:
    """An instance in LongMemEval's form."""
    said = [{"role": "user", "content": "I live in Oslo.", "has_answer": True}, {"role": "assistant", "content": "Ah."}]
    settings: dict[str, Any] = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Where do I live?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "Oslo",
        "answer_session_ids": ["a_1"],
        "haystack_session_ids": ["a_1", "b_2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [said, [{"role": "user", "content": "Hello", "has_answer": False}]],
    }
    return {**settings, **fields}
