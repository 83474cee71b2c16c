import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest

import memorydojo as md
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import MemorySystemError, RunInUseError
from memorydojo.history import HeldOutQuestion, History, HistoryPrefix, HistorySession, Turn
from memorydojo.models.access import Access
from memorydojo.record import SessionRecord
from memorydojo.running.checkpoint import Checkpoint
from memorydojo.running.execution import execute_prefix
from memorydojo.running.prefix import Prefix
from memorydojo.runs import RunDirectory, RunPlan, run_id

SHARED_FIELDS = {"started", "shared", "waiting"}
PREFIXES, ATTEMPTS = "prefixes", "memories-in-use"


def trajectory(*tasks: int) -> md.Trajectory:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
    return md.Trajectory(id="t", collection="test", sessions=sessions)


def plans(
    memory: Any = "full_context", *, insertion: int = 3, history: History | None = None, **more: Any
) -> list[RunPlan]:
    attacks = [md.Attack(objective="banking", payload=p, session=insertion) for p in ("seed-1", "seed-2")]
    chosen = trajectory(1, 7, 8, 0, 3)
    if history is not None:
        chosen = chosen.model_copy(update={"history": HistoryPrefix.of(history)})
    return [md.plan_run(chosen, memory, attack=attack, **more) for attack in (None, *attacks)]


def history() -> History:
    """Four conversations, and a question about the second."""
    start = datetime(2024, 1, 5, 9, 30, tzinfo=UTC)
    said = ("I like tea.", "My cello teacher is called Ludmila.", "I moved to Bergen.", "My cello is from 1911.")
    told = [
        HistorySession(
            id=f"h{n}",
            time=start + timedelta(days=n),
            turns=(Turn(role="user", text=text), Turn(role="assistant", text="I will remember that.")),
        )
        for n, text in enumerate(said)
    ]
    question = HeldOutQuestion(
        id="q",
        type="single-session-user",
        text="What is the name of my cello teacher?",
        reference="Ludmila",
        asked=None,
    )
    return History(id="h", question=question, sessions=tuple(told))


def prefix(memory: Any = "full_context", sessions: int = 2, **more: Any) -> Prefix:
    return Prefix(plans(memory, **more)[0], sessions)


def facts(runs: md.Runs) -> list[Any]:
    """Everything that is saved of runs but for times and for what says that they shared sessions."""
    return [
        (
            run.header.model_dump(mode="json", exclude=SHARED_FIELDS),
            [s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions],
            [told.model_dump(mode="json", exclude={"seconds", "waiting"}) for told in run.history],
            run.question.model_dump(mode="json", exclude={"seconds", "waiting"}) if run.question else None,
            run.labels().model_dump(mode="json"),
            run.complete,
        )
        for run in runs
    ]


class Counting(FullContextAdapter):
    """Notes what it is asked to do, by the directory of the runs; some writes fail."""

    name = "counting"
    seen: list[tuple[str, str]] = []
    failing: tuple[str, ...] = ()

    @classmethod
    def open(cls, directory: Path, models: Any, config: Any) -> Self:
        cls.seen.append(("open", str(directory)))
        return super().open(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        self.seen.append(("write", record.id))
        if record.id in self.failing:
            raise MemorySystemError(self.name, "write", "no", "Never mind.")
        super().write(record)


class Forgetting(FullContextAdapter):
    """Its copies are empty."""

    name = "forgetting"

    def checkpoint(self, target: Path) -> None:
        target.mkdir()


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "seen", [])


def writes() -> list[str]:
    return [what for call, what in Counting.seen if call == "write"]


def test_shared_sessions_that_failed_are_run_anew_when_failed_runs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute_prefix_of_a_failure(tmp_path, monkeypatch)
    assert [run.ran_whole for run in md.sweep(plans(Counting)[:2], directory=tmp_path, share=True)] == [False] * 2
    execute_prefix_of_a_failure(tmp_path, monkeypatch)
    repeated = md.sweep(plans(Counting)[:2], directory=tmp_path, share=True, repeat_failed=True)
    assert [run.ran_whole for run in repeated] == [True] * 2
    assert list((tmp_path / PREFIXES).iterdir()) == []


def execute_prefix_of_a_failure(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves a checkpoint of sessions that failed, as a sweep does that ends before its last run."""
    with monkeypatch.context() as broken:
        broken.setattr(Counting, "failing", ("session-0002",))
        execute_prefix(prefix(Counting), directory)


def test_a_shared_sweep_saves_what_an_unshared_one_saves(tmp_path: Path) -> None:
    alone = md.sweep(plans("vector"), directory=tmp_path / "alone", share=False)
    shared = md.sweep(plans("vector"), directory=tmp_path / "shared")
    assert facts(shared) == facts(alone)
    assert shared.session_table().equals(alone.session_table())
    assert [run.header.shared for run in alone] == [None, None, None]
    told = [run.header.shared for run in shared]
    assert told[0] is not None
    assert [(part.first, part.last) for part in told[0].segments] == [(0, 2)]
    assert all(other is not None and other.segments == told[0].segments for other in told)


def test_shared_sessions_are_written_once(tmp_path: Path) -> None:
    md.sweep(plans(Counting), directory=tmp_path)
    assert sorted(writes()) == ["session-0001", "session-0002", *sorted(3 * [f"session-000{n}" for n in (3, 4, 5)])]


def test_a_history_is_written_once_for_all_payloads_and_the_clean_run(tmp_path: Path) -> None:
    chosen = plans(Counting, insertion=1, history=history())
    shared = md.sweep(chosen, directory=tmp_path / "shared")
    once = [f"history-{number:04d}" for number in range(1, 5)]
    assert sorted(writes()) == sorted([*once, *3 * [f"session-{n:04d}" for n in range(1, 6)]])
    assert [run.header.shared.segments[0].last for run in shared if run.header.shared] == [0, 0, 0]
    alone = md.sweep(chosen, directory=tmp_path / "alone", share=False)
    assert facts(shared) == facts(alone)
    assert all(run.question is not None for run in shared)
    assert shared.session_table().equals(alone.session_table())


def test_insertions_at_the_first_and_at_a_later_session_share_the_history(tmp_path: Path) -> None:
    chosen = [*plans(Counting, insertion=1, history=history()), *plans(Counting, insertion=4, history=history())]
    shared = md.sweep(chosen, directory=tmp_path / "shared")
    assert writes().count("history-0001") == 1
    assert writes().count("session-0001") == 3
    assert facts(shared) == facts(md.sweep(chosen, directory=tmp_path / "alone", share=False))


def test_a_worker_finds_the_history_of_a_plan_that_came_without_it(tmp_path: Path) -> None:
    chosen = plans(Counting, insertion=1, history=history())
    RunDirectory(tmp_path).history_of(chosen[0])
    execute_prefix(pickle.loads(pickle.dumps(Prefix(chosen[0], 0))), tmp_path)
    assert writes() == [f"history-{number:04d}" for number in range(1, 5)]


def test_sharing_can_be_turned_off(tmp_path: Path) -> None:
    md.sweep(plans(Counting), directory=tmp_path, share=False)
    assert len(writes()) == 3 * 5
    assert not (tmp_path / PREFIXES).exists()


def test_one_worker_is_enough(tmp_path: Path) -> None:
    alone = md.sweep(plans(), directory=tmp_path / "alone", share=False)
    with ThreadPoolExecutor(1) as executor:
        shared = md.sweep(plans(), directory=tmp_path / "shared", executor=executor)
    assert facts(shared) == facts(alone)


def test_checkpoints_are_gone_when_nobody_needs_them(tmp_path: Path) -> None:
    md.sweep(plans(), directory=tmp_path)
    assert list((tmp_path / PREFIXES).iterdir()) == []
    assert list((tmp_path / ATTEMPTS).iterdir()) == []


def test_the_memory_of_a_forked_run_can_be_kept(tmp_path: Path) -> None:
    runs = md.sweep(plans(), directory=tmp_path, keep_memory=True)
    for run in runs:
        assert (tmp_path / "runs" / run.id / "memory" / "memory.json").exists()


@pytest.mark.parametrize("on_failure", ["stop", "continue"])
@pytest.mark.parametrize("failing", ["history-0002", "session-0001", "session-0002", "session-0004"])
def test_a_failed_session_has_the_same_outcome_for_every_run_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_failure: str, failing: str
) -> None:
    monkeypatch.setattr(Counting, "failing", (failing,))
    chosen = plans(Counting, on_failure=on_failure, history=history())
    alone = md.sweep(chosen, directory=tmp_path / "alone", share=False)
    shared = md.sweep(chosen, directory=tmp_path / "shared")
    assert facts(shared) == facts(alone)
    assert [run.end and run.end.status for run in shared] == [run.end and run.end.status for run in alone]
    failures = [told.failure for run in shared for told in run.history]
    failures += [session.failure for run in shared for session in run.sessions]
    assert any(failures)
    assert all(run.header.shared for run in shared)


def test_later_forks_go_on_from_earlier_ones_also_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "failing", ("session-0001",))
    chosen = [*plans(Counting), *plans(Counting, insertion=4)]
    alone = md.sweep(chosen, directory=tmp_path / "alone", share=False)
    shared = md.sweep(chosen, directory=tmp_path / "shared")
    assert facts(shared) == facts(alone)
    assert writes().count("session-0001") == 5 + 1


def test_a_checkpoint_that_holds_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MemorySystemError, match=r"share=False"):
        md.sweep(plans(Forgetting), directory=tmp_path)
    assert len(md.sweep(plans(Forgetting), directory=tmp_path, share=False)) == 3


def test_a_memory_cannot_tell_a_poisoned_run_from_a_clean_one(tmp_path: Path) -> None:
    md.sweep(plans(Counting), directory=tmp_path)
    opened = [Path(what) for call, what in Counting.seen if call == "open"]
    assert len(opened) == 4
    assert {path.parent for path in opened} == {tmp_path / ATTEMPTS}
    for path in opened:
        token, _, rest = path.name.partition("-")
        assert len(bytes.fromhex(token)) == 8
        assert len(rest) == 8


def whole(directory: Path) -> Path:
    """The only checkpoint of a directory, made by hand."""
    execute_prefix(prefix(Counting), RunDirectory(directory).path)
    return Path(next((directory / PREFIXES).glob("*/whole")))


def test_a_checkpoint_that_a_killed_sweep_left_is_used(tmp_path: Path) -> None:
    whole(tmp_path)
    runs = md.sweep(plans(Counting), directory=tmp_path)
    assert writes().count("session-0001") == 1
    assert facts(runs) == facts(md.sweep(plans(Counting), directory=tmp_path / "alone", share=False))


def test_a_checkpoint_is_used_for_the_last_run_that_needs_it(tmp_path: Path) -> None:
    md.sweep(plans(Counting)[1:], directory=tmp_path, share=False)
    whole(tmp_path)
    before = len(writes())
    md.sweep(plans(Counting), directory=tmp_path)
    assert sorted(writes()[before:]) == ["session-0003", "session-0004", "session-0005"]
    assert list((tmp_path / PREFIXES).iterdir()) == []


def test_a_checkpoint_that_was_left_when_all_runs_were_complete_is_removed(tmp_path: Path) -> None:
    md.sweep(plans(Counting), directory=tmp_path, share=False)
    whole(tmp_path)
    before = len(writes())
    md.sweep(plans(Counting), directory=tmp_path)
    assert list((tmp_path / PREFIXES).iterdir()) == []
    assert len(writes()) == before


def test_a_checkpoint_that_other_runs_may_need_is_left_alone(tmp_path: Path) -> None:
    left = whole(tmp_path)
    md.sweep(plans("full_context"), directory=tmp_path)
    assert left.exists()


@pytest.mark.parametrize("lost", ["memory/sessions.jsonl", "environments.pickle", "state.json", "memory"])
@pytest.mark.parametrize("how", ["changed", "missing"])
def test_a_damaged_checkpoint_is_never_used(tmp_path: Path, lost: str, how: str) -> None:
    path = whole(tmp_path) / lost
    if path.is_dir() or how == "missing":
        path.rename(tmp_path / "moved")
    else:
        path.write_bytes(path.read_bytes()[:-20])
    runs = md.sweep(plans(Counting), directory=tmp_path)
    assert facts(runs) == facts(md.sweep(plans(Counting), directory=tmp_path / "alone", share=False))


def test_what_is_left_of_a_checkpoint_half_written_is_removed_and_not_used(tmp_path: Path) -> None:
    made = whole(tmp_path)
    made.rename(made.with_name("partial-x"))
    execute_prefix(prefix(Counting), tmp_path)
    assert writes().count("session-0001") == 2
    assert [path.name for path in made.parent.iterdir()] == ["whole"]


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch evil",)


def test_a_saved_environment_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = whole(tmp_path / "runs")
    data = pickle.dumps({"banking": Evil()})
    (path / "environments.pickle").write_bytes(data)
    state = json.loads((path / "state.json").read_text())
    state["files"]["environments.pickle"] = hashlib.sha256(data).hexdigest()
    (path / "state.json").write_text(json.dumps(state))
    runs = md.sweep(plans(Counting), directory=tmp_path / "runs")
    assert all(run.complete for run in runs)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("name", ["memory/../../../evil", "memory//evil", "/evil"])
def test_a_checkpoint_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    path = whole(tmp_path / "runs")
    state = json.loads((path / "state.json").read_text())
    state["files"][name] = next(iter(state["files"].values()))
    (path / "state.json").write_text(json.dumps(state))
    target = tmp_path / "target"
    target.mkdir()
    checkpoint = Checkpoint(tmp_path / "runs", prefix(Counting).id)
    taken = checkpoint.take(target)
    assert taken is None or name == "/evil"
    assert list(tmp_path.rglob("evil")) == []


def test_a_checkpoint_of_other_versions_is_made_again(tmp_path: Path) -> None:
    path = whole(tmp_path)
    state = json.loads((path / "state.json").read_text())
    state["header"]["versions"]["agentdojo"] = "0.1.0"
    (path / "state.json").write_text(json.dumps(state))
    md.sweep(plans(Counting), directory=tmp_path)
    assert writes().count("session-0001") == 2


def test_shared_sessions_of_another_process_are_left_to_it(tmp_path: Path) -> None:
    other = md.plan_run(trajectory(0, 1), "full_context")
    RunDirectory(tmp_path)
    with Checkpoint(tmp_path, prefix().id).claimed():
        with pytest.raises(RunInUseError, match="3 of 4 runs"):
            md.sweep([*plans(), other], directory=tmp_path)
        assert RunDirectory(tmp_path).complete_ids() == {run_id(other)}
    assert len(md.sweep([*plans(), other], directory=tmp_path)) == 4


def test_a_run_whose_checkpoint_is_gone_starts_at_its_beginning(tmp_path: Path) -> None:
    from memorydojo.running.execution import execute

    plan = plans(Counting)[1]
    execute(plan, tmp_path, trunk=[prefix(Counting)])
    assert len(writes()) == 5
    assert md.load_runs(tmp_path)[run_id(plan)].header.shared is None


def test_shared_sessions_that_are_not_needed_any_more_are_not_run(tmp_path: Path) -> None:
    chosen = plans(Counting)

    class Overtaken(ThreadPoolExecutor):
        """While the first job is handed out, somebody else completes all runs."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            md.sweep(chosen, directory=tmp_path, share=False)
            return super().submit(fn, *args, **kwargs)

    other = md.plan_run(trajectory(0, 1), "full_context")
    with Overtaken(1) as executor:
        runs = md.sweep([other, *chosen], directory=tmp_path, executor=executor)
    assert len(runs) == 4
    assert len(writes()) == 3 * 5


def test_the_access_must_be_the_same(tmp_path: Path) -> None:
    from memorydojo.running.course import is_ready

    whole(tmp_path)
    assert is_ready(prefix(Counting), tmp_path, access=Access())
    assert not is_ready(prefix(Counting), tmp_path, access=Access(replay="prefer"))


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from test_sharing import plans
import memorydojo as md
from memorydojo.errors import RunInUseError
try:
    md.sweep(plans("vector", insertion=4), directory=sys.argv[1])
except RunInUseError:
    print("in use")
"""


def start(directory: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT, str(directory), str(Path(__file__).parent)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["memories-in-use/*/*", "prefixes/*/partial-*", "prefixes/*/whole", "runs/*/run.json"]
)
def test_a_sweep_killed_in_or_after_shared_sessions_ends_as_an_uninterrupted_one(tmp_path: Path, moment: str) -> None:
    process = start(tmp_path / "cut")
    deadline = time.monotonic() + 120
    while not list((tmp_path / "cut").glob(moment)) and time.monotonic() < deadline:
        time.sleep(0.0005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    chosen = plans("vector", insertion=4)
    again = md.sweep(chosen, directory=tmp_path / "cut")
    whole = md.sweep(chosen, directory=tmp_path / "whole", share=False)
    assert facts(again) == facts(whole)
    assert again.session_table().equals(whole.session_table())
    assert list((tmp_path / "cut" / PREFIXES).iterdir()) == []
    assert list((tmp_path / "cut" / ATTEMPTS).iterdir()) == []


@pytest.mark.slow
def test_two_processes_on_one_directory_never_corrupt_it(tmp_path: Path) -> None:
    both = [start(tmp_path / "shared") for _ in range(2)]
    said = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    chosen = plans("vector", insertion=4)
    shared = md.sweep(chosen, directory=tmp_path / "shared")
    assert facts(shared) == facts(md.sweep(chosen, directory=tmp_path / "alone", share=False))
