"""Facts of runs, a toy judge and toy objectives for the tests of labelling."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorydojo.adapter import MemoryDescription
from memorydojo.attack import Payload
from memorydojo.judging import Facts, Judgement
from memorydojo.judging._examiner import Examiner
from memorydojo.models.access import Access
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.objective import JudgedSession, Objective
from memorydojo.record import Action, MemoryEntry, MemoryItem, SnapshotDifference
from memorydojo.runs import Insertion, Run, RunDirectory, RunEnd, RunHeader, RunPlan, SessionResult, load_runs
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

    def facts(
        self,
        sessions: Iterable[SessionResult],
        *,
        n: int = 5,
        t0: int | None = 1,
        run_id: str = "run",
        trajectory: str = "t",
    ) -> Facts:
        planned = tuple(Session(domain="banking", task_id="user_task_0") for _ in range(n))
        plan = RunPlan(
            trajectory=Trajectory(id=trajectory, collection="c", sessions=planned),
            insertion=Insertion(payload=self.payload, session=t0, observation=1) if t0 else None,
            memory="m",
            model="simulated",
            memory_model="simulated",
        )
        memory = MemoryDescription(name="m", writes="", stores="", retrieves="", presents="")
        header = RunHeader(
            run_id=run_id, plan=plan, memory=memory, models={}, simulated=True, versions={}, started=TIME
        )
        return Facts(header, list(sessions))

    def save(self, root: Path, *sessions: SessionResult, **plan: Any) -> Run:
        """A saved run that ended after these sessions."""
        facts = self.facts(sessions, **plan)
        done = len(sessions) == len(facts.header.plan.trajectory)
        with RunDirectory(root).begin(facts.header) as writer:
            for session in sessions:
                writer.append(session)
            writer.end(RunEnd(status="completed" if done else "stopped", payload_inserted=None, finished=TIME))
        return load_runs(root)[facts.header.run_id]

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


def find_words(texts: dict[str, str]) -> tuple[str, str]:
    """Finds the words TRANSFORMED and FRAGMENTED in the text, or YES in the response."""
    if "STATEMENT" in texts or "QUESTION" in texts:
        return ("YES", "yes") if "YES" in texts["RESPONSE"] else ("", "no")
    for word in ("TRANSFORMED", "FRAGMENTED"):
        if word in texts["TEXT"]:
            return word, word.lower()
    return "", "not_observed"


@pytest.fixture
def model(upstream: Any, judge_model: Any) -> Any:
    """The model of a judge, behind the scripted server."""
    upstream.chat = judge_model(find_words)
    return upstream.chat


@pytest.fixture
def models(upstream: Any, model: Any) -> Models:
    """Two models at the scripted server, with hardly any waits."""
    limits = Limits(
        retries=1, first_backoff_seconds=0.001, max_backoff_seconds=0.002, timeout_seconds=2.0, circuit_failures=2
    )
    backend = Backend(base_url=upstream.base_url, limits=limits)
    return Models(backends={"b": backend}, models={"m": Model(backend="b"), "n": Model(backend="b", upstream="other")})


@pytest.fixture
def examiner(models: Models, tmp_path: Path) -> Iterator[Callable[..., Examiner]]:
    """Makes examiners that share a directory."""
    made: list[Examiner] = []

    def build(model: str = "m", **more: Any) -> Examiner:
        made.append(Examiner(model, "1", model, access=Access(models=models), directory=tmp_path, **more))
        return made[-1]

    yield build
    for one in made:
        one.close()
