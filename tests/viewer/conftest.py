"""Saved runs to show, and a real headless Chromium to show them in."""

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

import memorydojo as md
from memorydojo._display import valid
from memorydojo.adapter import MemoryDescription
from memorydojo.attack import Payload
from memorydojo.judging import OverlapJudge, label_run
from memorydojo.models.usage import Usage
from memorydojo.record import Action, MemoryEntry, MemoryItem, Message, Snapshot, ToolCall
from memorydojo.runs import Insertion, Run, RunDirectory, RunEnd, RunHeader, RunPlan, SessionResult, run_id
from memorydojo.runs.model import Failure
from memorydojo.trajectory import Session, Trajectory
from tests.adapters.fake_letta import FakeLetta

TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _chromium() -> str | None:
    """A Chromium of this machine, or the one that MEMORYDOJO_CHROMIUM names."""
    return os.environ.get("MEMORYDOJO_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless Chromium, closed after the module: while it is there, no other event loop can run in this thread."""
    path = _chromium()
    if path is None:
        message = "no Chromium was found; install one with: make browser, or name one in MEMORYDOJO_CHROMIUM"
        if os.environ.get("MEMORYDOJO_NEEDS_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, as which containers run; the pages are our own files.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def seen(text: str, *, one_line: bool = False) -> str:
    """A text as the page shows it: what cannot be seen stands there as an escape. Made anew, apart from the page."""
    kept = "" if one_line else "\n\t"

    def escape(char: str) -> str:
        hidden = unicodedata.category(char).startswith("C") or char in "\u2028\u2029"
        if char in kept or not hidden:
            return char
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return "".join(map(escape, text))


@pytest.fixture(scope="session")
def shown() -> Callable[..., str]:
    return seen


@pytest.fixture(scope="session")
def memora_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A poisoned run of a real Memora that is retrieved directly, one retrieved indirectly, and a clean one."""
    directory = tmp_path_factory.mktemp("memora")
    trajectory = md.trajectories.load("same-domain")["workspace-005-01"]
    for payload in ("seed-1", "seed-2", None):
        attack = md.Attack(objective="workspace", payload=payload) if payload else None
        md.run(trajectory, "memora", directory=directory, attack=attack)
    return directory


@pytest.fixture(scope="session")
def mem0_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A poisoned run of a real Mem0."""
    directory = tmp_path_factory.mktemp("mem0")
    trajectory = md.trajectories.load("same-domain")["banking-005-01"]
    md.run(trajectory, "mem0", directory=directory, attack=md.Attack(objective="banking", payload="seed-1"))
    return directory


@pytest.fixture(scope="session")
def amem_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A poisoned run of a real A-MEM."""
    directory = tmp_path_factory.mktemp("a-mem")
    trajectory = md.trajectories.load("same-domain")["workspace-005-01"]
    md.run(trajectory, "a-mem", directory=directory, attack=md.Attack(objective="workspace", payload="seed-1"))
    return directory


@pytest.fixture(scope="session")
def letta_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A poisoned run of Letta, on the stand-in for its server."""
    directory, fake = tmp_path_factory.mktemp("letta"), FakeLetta()
    md.run(
        md.trajectories.load("same-domain")["banking-005-01"],
        "letta",
        directory=directory,
        attack=md.Attack(objective="banking", payload="seed-1"),
        memory_settings={"url": fake.url},
    )
    yield directory
    fake.close()


class Save:
    """Saves runs that no memory system has made."""

    def run(
        self, root: Path, sessions: list[SessionResult], *, payload: str, planned: int | None = None, **fields: Any
    ) -> Run:
        known = [Session(domain=s.domain, task_id=s.task_id) for s in sessions]
        more = [Session(domain="workspace", task_id="user_task_0")] * ((planned or 0) - len(known))
        name = fields.pop("name", "t")
        settings: dict[str, Any] = {
            "trajectory": Trajectory(id=name, collection=name, sessions=(*known, *more)),
            "insertion": Insertion(
                payload=Payload(id=valid(name), objective="workspace", text=payload), session=1, observation=1
            ),
            "memory": name,
            "model": "simulated",
            "memory_model": "simulated",
        }
        plan = RunPlan(**{**settings, **fields})
        header = RunHeader(
            run_id=run_id(plan),
            plan=plan,
            memory=MemoryDescription(name="m", writes="", stores="", retrieves="", presents=""),
            models={},
            simulated=True,
            versions={},
            started=TIME,
        )
        with RunDirectory(root).begin(header) as writer:
            for session in sessions:
                writer.append(session)
            if not more:
                writer.end(RunEnd(status="completed", payload_inserted=True, finished=TIME))
        run = md.load_runs(root)[header.run_id]
        run.save_labels(label_run(run, judge=OverlapJudge(), objectives=md.objectives))
        return run

    def session(self, t: int, **fields: Any) -> SessionResult:
        settings: dict[str, Any] = {
            "session": t,
            "domain": "workspace",
            "task_id": f"user_task_{t}",
            "time": TIME + timedelta(days=t),
            "query": "query",
            "prompt": "prompt",
            "completed": True,
            "utility": True,
            "usage": (Usage(role="agent", model="simulated", calls=2, input_tokens=30 + t, output_tokens=4),),
            "seconds": {"agent": 0.5},
        }
        return SessionResult(**{**settings, **fields})

    def entering(self, payload: str) -> tuple[Action, ...]:
        """The call whose observation carries the payload."""
        return (Action(function="read", arguments={}, observation=f"seen. {payload}", poisoned=True),)

    def hostile(self, root: Path, text: str) -> Run:
        """A run that says one text wherever it can say anything."""
        entry = MemoryEntry(id=text, kind=text, text=text, links=(text, "other"), metadata={text: text})
        other = MemoryEntry(id="other", kind=text, text=f"{text} {text}")
        again = other.model_copy(update={"text": f"{text} changed {text}"})
        states = [
            Snapshot(),
            Snapshot(entries={text: entry, "other": other}),
            Snapshot(entries={text: entry, "other": again}),
        ]
        item = MemoryItem(entry_ids=(text, "other"), text=text, kind=text, route=text, via=text, rank=0)
        action = Action(function=text, arguments={text: text}, observation=text, error=text, poisoned=True)
        call = ToolCall(id=text, function=text, arguments={text: text})
        said = (
            Message(role="user", text=text),
            Message(role="assistant", text=text, tool_calls=(call,)),
            Message(role="tool", text=text, tool=text, error=text, tool_call_id=text),
        )
        facts: dict[str, Any] = {
            "domain": text,
            "task_id": text,
            "query": text,
            "actions": (action,),
            "messages": said,
            "final_response": text,
            "utility_error": text,
            "usage": (Usage(role=text, model=text),),
            "seconds": {text: 1.0},
        }
        broken = Failure(stage="agent", type=text, message=text)
        sessions = [
            self.session(1, **facts, difference=states[0].difference(states[1])),
            self.session(2, **facts, items=(item,), difference=states[1].difference(states[2])),
            self.session(3, **facts, failure=broken).model_copy(update={"completed": False, "utility": False}),
        ]
        return self.run(root, sessions, payload=valid(text), name=text, model=text, memory_model=text, defense=text)


@pytest.fixture(scope="session")
def save() -> Save:
    return Save()
