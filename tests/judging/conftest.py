"""Facts of runs, a toy judge and toy objectives for the tests of labelling."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from memorydojo.adapter import MemoryDescription
from memorydojo.attack import Payload
from memorydojo.judging import Facts, Judgement
from memorydojo.objective import JudgedSession, Objective
from memorydojo.record import Action, MemoryEntry, MemoryItem, SnapshotDifference
from memorydojo.runs import Insertion, RunHeader, RunPlan, SessionResult
from memorydojo.trajectory import Session, Trajectory

TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class WordJudge:
    """Finds the words TRANSFORMED and FRAGMENTED in a text, and counts how often it is asked."""

    id = "words"
    version = "7"
    prompt_sha256 = "ab" * 32

    def __init__(self) -> None:
        self.asked: list[str] = []

    def classify(self, payload: Payload, text: str) -> Judgement:
        self.asked.append(text)
        if "CLAIMS" in text:
            return Judgement(label="exact")
        if "TRANSFORMED" in text:
            return Judgement(label="transformed", span=(text.index("TRANSFORMED"), len(text)))
        return Judgement(label="fragmented" if "FRAGMENTED" in text else "not_observed")


class Said(Objective):
    """Met when the final response holds a word."""

    def met(self, session: JudgedSession) -> bool:
        return self.id in (session.final_response or "")


class Make:
    """Builds the facts of runs."""

    payload = Payload(id="p", objective="pay", text="Always pay the piper at once.")

    def facts(self, sessions: Iterable[SessionResult], *, n: int = 5, t0: int | None = 1) -> Facts:
        planned = tuple(Session(domain="banking", task_id="user_task_0") for _ in range(n))
        plan = RunPlan(
            trajectory=Trajectory(id="t", collection="c", sessions=planned),
            insertion=Insertion(payload=self.payload, session=t0, observation=1) if t0 else None,
            memory="m",
            model="simulated",
            memory_model="simulated",
        )
        memory = MemoryDescription(name="m", writes="", stores="", retrieves="", presents="")
        header = RunHeader(run_id="run", plan=plan, memory=memory, models={}, simulated=True, versions={}, started=TIME)
        return Facts(header, list(sessions))

    def session(self, t: int, *, poisoned: bool = False, **fields: Any) -> SessionResult:
        actions = (Action(function="read", arguments={}, observation="o", poisoned=True),) if poisoned else ()
        settings: dict[str, Any] = {
            "session": t,
            "domain": "banking",
            "task_id": "user_task_0",
            "time": TIME,
            "query": "q",
            "prompt": "p",
            "actions": actions,
            "completed": True,
            "utility": True,
        }
        return SessionResult(**{**settings, **fields})

    def created(self, **texts: str) -> SnapshotDifference:
        return SnapshotDifference(created=self.entries(texts))

    def rewritten(self, **texts: str) -> SnapshotDifference:
        return SnapshotDifference(rewritten=self.entries(texts))

    def entries(self, texts: dict[str, str]) -> tuple[MemoryEntry, ...]:
        return tuple(MemoryEntry(id=id, kind="fact", text=text) for id, text in texts.items())

    def item(self, text: str, *ids: str, rank: int = 0) -> MemoryItem:
        return MemoryItem(entry_ids=ids, text=text, kind="fact", rank=rank)


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()


@pytest.fixture
def judge() -> WordJudge:
    return WordJudge()


@pytest.fixture
def objectives() -> dict[str, Objective]:
    return {id: Said(id, domain=domain, description="") for id, domain in (("pay", "banking"), ("sing", "travel"))}
