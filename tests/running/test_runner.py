"""Whole runs on AgentDojo's real tasks and the two light memory systems."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

import memorydojo as md
from memorydojo.adapter import MemoryAdapter
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import (
    EndpointDownError,
    InvalidInputError,
    MemorySystemError,
    MissingPackageError,
    SavedRunError,
    UnknownNameError,
)
from memorydojo.record import MemoryItem, SessionRecord
from memorydojo.running.runner import plan_run
from memorydojo.runs import Run, RunDirectory, SessionResult
from memorydojo.simulator.embedder import MiniLMEmbedder

FULL = "full_context"
ATTACK = md.Attack(objective="banking", payload="seed-1")


def trajectory(*tasks: int, domain: str = "banking") -> md.Trajectory:
    sessions = tuple(md.Session(domain=domain, task_id=f"user_task_{n}") for n in tasks)
    return md.Trajectory(id="short", collection="test", sessions=sessions)


BANKING = trajectory(1, 7, 8)


def facts(run: Run) -> list[dict[str, Any]]:
    return [session.model_dump(mode="json", exclude={"seconds", "waiting"}) for session in run.sessions]


def test_the_payload_enters_one_observation_once(tmp_path: Path) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK)
    text = md.payloads["banking"]["seed-1"].text
    carrying = [(s.session, a.poisoned) for s in run.sessions for a in s.actions if a.observation.endswith(text)]
    assert carrying == [(1, True)]
    assert run.end is not None
    assert run.end.payload_inserted is True


@pytest.mark.parametrize(("session", "number"), [("first", 1), ("middle", 2), (2, 2)])
def test_the_insertion_session_can_be_chosen(tmp_path: Path, session: Any, number: int) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK.model_copy(update={"session": session}))
    assert [s.payload_inserted for s in run.sessions] == [n == number for n in (1, 2, 3)]


def test_an_observation_that_is_never_reached_is_recorded_and_stays_planned(tmp_path: Path) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK.model_copy(update={"observation": 50}))
    assert run.end is not None
    assert run.end.payload_inserted is False
    table = md.load_runs(tmp_path).session_table()
    assert len(table) == 3
    assert not table[["inserted", "retrieved", "objective_met"]].any(axis=None)
    assert not table["payload_inserted"].any()


def test_retrieved_context_reaches_the_agent_but_never_the_memory(tmp_path: Path) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK)
    second = run.sessions[1]
    assert len(second.items) == 1
    assert second.items[0].text in second.prompt
    assert second.messages[0].text == second.query
    written = json.dumps([e.text for e in second.difference.created])
    assert second.items[0].text[:200] not in written


def test_the_environment_is_carried_within_a_domain(tmp_path: Path) -> None:
    run = md.run(trajectory(35, 26, domain="workspace"), FULL, directory=tmp_path)
    first, second = run.sessions
    deleted = str(first.actions[-1].arguments["file_id"])
    assert f"id_: '{deleted}'" in first.actions[0].observation
    assert f"id_: '{deleted}'" not in second.actions[0].observation


def test_equal_runs_leave_equal_facts(tmp_path: Path) -> None:
    one, two = (md.run(BANKING, FULL, directory=tmp_path / d, attack=ATTACK, seed=3) for d in ("a", "b"))
    assert one.id == two.id
    assert facts(one) == facts(two)
    assert one.labels() == two.labels()


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    one, two = (md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK, seed=s) for s in (0, 1))
    assert one.id != two.id
    assert len(md.load_runs(tmp_path)) == 2


def test_a_complete_run_is_not_repeated(tmp_path: Path) -> None:
    first = md.run(BANKING, FULL, directory=tmp_path)
    before = (first.directory / "sessions.jsonl").stat()
    again = md.run(BANKING, FULL, directory=tmp_path)
    assert again.header.started == first.header.started
    assert (again.directory / "sessions.jsonl").stat().st_mtime_ns == before.st_mtime_ns


def test_an_interrupted_run_starts_again_and_its_sessions_are_kept(tmp_path: Path) -> None:
    whole = md.run(BANKING, FULL, directory=tmp_path / "whole", attack=ATTACK)
    with RunDirectory(tmp_path / "cut").begin(whole.header) as writer:
        writer.append(whole.sessions[0])
    again = md.run(BANKING, FULL, directory=tmp_path / "cut", attack=ATTACK)
    assert facts(again) == facts(whole)
    assert (again.directory / "sessions.interrupted-1.jsonl").exists()


def test_the_memorys_files_are_removed_unless_kept(tmp_path: Path) -> None:
    md.run(BANKING, FULL, directory=tmp_path / "a")
    assert list((tmp_path / "a" / "memories-in-use").iterdir()) == []
    kept = md.run(BANKING, FULL, directory=tmp_path / "b", keep_memory=True)
    assert any((kept.directory / "memory").iterdir())


class SpyingMemory(FullContextAdapter):
    """Notes all that it is told."""

    name: ClassVar[str] = "spying"
    told: ClassVar[list[str]] = []

    @classmethod
    def open(cls, directory: Path, models: Any, config: Any) -> "SpyingMemory":
        cls.told.append(f"{directory}")
        return super().open(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        self.told.append(record.model_dump_json())
        super().write(record)

    def retrieve(self, query: str) -> list[MemoryItem]:
        self.told.append(query)
        return super().retrieve(query)


def _told(directory: Path, attack: md.Attack | None) -> list[str]:
    SpyingMemory.told.clear()
    md.run(BANKING, SpyingMemory, directory=directory, attack=attack, seed=1)
    return list(SpyingMemory.told)


def test_a_memory_cannot_tell_a_poisoned_run_from_a_clean_one(tmp_path: Path) -> None:
    never = ATTACK.model_copy(update={"observation": 50})
    clean, poisoned = _told(tmp_path, None), _told(tmp_path, never)
    assert clean[1:] == poisoned[1:]
    assert Path(clean[0]).parent == Path(poisoned[0]).parent
    assert not any("seed-1" in text or "objective" in text for text in poisoned)


class BreakingMemory(FullContextAdapter):
    """Fails where it is told to."""

    name: ClassVar[str] = "breaking"
    stage: ClassVar[str] = "write"

    def write(self, record: SessionRecord) -> None:
        if self.stage == "write" and record.id == "session-0002":
            raise MemorySystemError(self.name, "write", "the disk is gone", "Plug it in")
        super().write(record)

    def retrieve(self, query: str) -> list[MemoryItem]:
        if self.stage == "retrieve" and len(self.snapshot().entries) == 1:
            raise RuntimeError("lost")
        return super().retrieve(query)


@pytest.mark.parametrize("stage", ["write", "retrieve"])
def test_a_failing_memory_stops_the_run_and_planned_sessions_stay_planned(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BreakingMemory, "stage", stage)
    run = md.run(BANKING, BreakingMemory, directory=tmp_path, attack=ATTACK)
    assert [s.completed for s in run.sessions] == [True, False]
    failure = run.sessions[1].failure
    assert failure is not None
    assert failure.stage == stage
    assert run.end is not None
    assert run.end.status == "stopped"
    table = md.load_runs(tmp_path).session_table()
    assert list(table["completed"]) == [True, False, False]
    assert list(table["failed_stage"].fillna("")) == ["", stage, "not begun"]


def test_a_missing_package_is_no_fact_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise MemorySystemError("full_context", "write", "no embedding", "") from MissingPackageError("x", "y", "z")

    with monkeypatch.context() as patch:
        patch.setattr(FullContextAdapter, "write", lost)
        with pytest.raises(MissingPackageError, match=r"pip install 'memorydojo\[z\]'"):
            md.run(BANKING, FULL, directory=tmp_path)
    assert all(s.completed for s in md.run(BANKING, FULL, directory=tmp_path).sessions)


def test_a_package_that_the_simulator_lacks_is_named_with_the_command_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise MissingPackageError("tokenizers", "the local embedding model", "simulator")

    with monkeypatch.context() as patch:
        patch.setattr(MiniLMEmbedder, "embed", lost)
        with pytest.raises(EndpointDownError, match=r"pip install 'memorydojo\[simulator\]'"):
            md.run(BANKING, "vector", directory=tmp_path)
    assert all(s.completed for s in md.run(BANKING, "vector", directory=tmp_path).sessions)


class Uninstalled(FullContextAdapter):
    """A memory system whose package is missing."""

    embeds = True
    lost = MissingPackageError("its-package", "the memory system 'mine'", "mine")

    @classmethod
    def open(cls, directory: Path, models: Any, config: Any) -> Self:
        raise cls.lost


class UninstalledByCommand(Uninstalled):
    lost = MissingPackageError("its-package", "the memory system 'mine'", "mine", "get it")


@pytest.mark.parametrize(
    ("memory", "without", "command"),
    [
        (Uninstalled, ["tokenizers"], r"pip install 'memorydojo\[mine,simulator\]'$"),
        (UninstalledByCommand, ["tokenizers"], r"get it && pip install 'memorydojo\[simulator\]'$"),
        (Uninstalled, [], r"pip install 'memorydojo\[mine\]'$"),
    ],
)
def test_one_command_adds_a_memory_system_and_what_embeds_for_it(
    memory: type[Uninstalled], without: list[str], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in without:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=command) as caught:
        md.run(BANKING, memory, directory=tmp_path)
    assert ("tokenizers" in str(caught.value)) == bool(without)


def test_after_a_failed_session_the_run_can_go_on(tmp_path: Path) -> None:
    run = md.run(BANKING, BreakingMemory, directory=tmp_path, on_failure="continue")
    assert [s.completed for s in run.sessions] == [True, False, True]
    assert run.sessions[1].failure is not None
    assert "Plug it in" in run.sessions[1].failure.message
    assert not run.sessions[1].utility


def test_a_failing_agent_ends_the_session_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorydojo.simulator.agent import SimulatedAgent

    def broken(*_: object, **__: object) -> None:
        raise ConnectionError("endpoint down")

    monkeypatch.setattr(SimulatedAgent, "query", broken)
    (only, *_) = md.run(BANKING, FULL, directory=tmp_path).sessions
    assert only.failure is not None
    assert (only.failure.stage, only.failure.type) == ("agent", "ConnectionError")
    assert only.difference.created == ()


def test_an_empty_answer_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorydojo.simulator.agent import SimulatedAgent

    calls: list[int] = []

    def silent(_: object, query: str, runtime: Any, env: Any, messages: Any, extra: Mapping[str, Any]) -> Any:
        calls.append(1)
        return query, runtime, env, [*messages, {"role": "assistant", "content": None, "tool_calls": None}], extra

    monkeypatch.setattr(SimulatedAgent, "query", silent)
    run = md.run(trajectory(1, 7), FULL, directory=tmp_path)
    assert len(calls) == 2
    assert [s.final_response for s in run.sessions] == ["", ""]


def test_simulated_runs_say_so(tmp_path: Path) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path)
    assert run.header.simulated is True
    assert json.loads((run.directory / "run.json").read_text())["simulated"] is True
    assert md.load_runs(tmp_path).session_table()["simulated"].all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"memory": "mem-0"}, UnknownNameError, "unknown memory system 'mem-0'; did you mean 'mem0'"),
        ({"model": "gpt-5"}, UnknownNameError, "unknown model 'gpt-5'; known: .* declared in a models file"),
        ({"memory_settings": {"k": 3}}, InvalidInputError, "settings of memory system 'full_context' are not valid"),
        ({"attack": md.Attack(objective="bank", payload="seed-1")}, UnknownNameError, "did you mean 'banking'"),
        ({"attack": md.Attack(objective="banking", payload="sed-1")}, UnknownNameError, "did you mean 'seed-1'"),
        ({"attack": "seed-1"}, InvalidInputError, "attack takes a memorydojo.Attack"),
        ({"attack": ATTACK.model_copy(update={"session": 3})}, InvalidInputError, "session from 1 to 2"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments = {"memory": FULL, **change}
    with pytest.raises(error, match=message):
        md.run(BANKING, directory=tmp_path / "new", **arguments)
    assert not (tmp_path / "new").exists()


def test_an_unknown_task_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'user_task_99'; did you mean"):
        md.run(trajectory(1, 99), FULL, directory=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_directory_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(SavedRunError, match="nothing was touched"):
        md.run(BANKING, FULL, directory=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_payload_for_another_objective_is_refused() -> None:
    payload = md.Payload(id="mine", objective="slack", text="x")
    with pytest.raises(InvalidInputError, match="written for the objective 'slack'"):
        plan_run(BANKING, FULL, attack=md.Attack(objective="banking", payload=payload))


def test_an_adapter_can_be_given_as_module_and_class() -> None:
    plan = plan_run(BANKING, "memorydojo.adapters.full_context:FullContextAdapter")
    assert plan.memory == "memorydojo.adapters.full_context:FullContextAdapter"
    with pytest.raises(InvalidInputError, match=r"cannot load the memory adapter 'no\.such:Thing'"):
        plan_run(BANKING, "no.such:Thing")
    with pytest.raises(InvalidInputError, match="is no memory adapter"):
        plan_run(BANKING, "pathlib:Path")


def test_usage_is_counted_by_role(tmp_path: Path) -> None:
    sessions: list[SessionResult] = md.run(BANKING, "vector", directory=tmp_path).sessions
    for session in sessions:
        calls = {(u.role, u.model): u.calls for u in session.usage}
        assert ("memory", "simulated") not in calls
        assert calls["memory", "all-MiniLM-L6-v2-onnx-int8"] > 0


def test_the_contract_is_abstract() -> None:
    assert MemoryAdapter.__abstractmethods__ >= {"open", "write", "retrieve", "snapshot", "checkpoint", "close"}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"trajectory": "banking-003-01"}, r"trajectory takes a memorydojo\.Trajectory, .* not 'banking-003-01'"),
        ({"seed": "a"}, "^the run cannot be planned: seed: it takes a whole number$"),
        ({"seed": True}, "seed: it takes a whole number$"),
        ({"on_failure": "cry"}, "on_failure: it takes 'stop' or 'continue'$"),
        ({"memory_settings": {"no": 1}}, "settings of memory system 'full_context' are not valid: no: there is no"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_runs(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        plan_run(**{"trajectory": BANKING, "memory": FULL, **wrong})


def test_labels_of_an_older_offline_judge_are_made_again(tmp_path: Path) -> None:
    run = md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK)
    run.save_labels(run.labels().model_copy(update={"judge_version": "1"}))
    assert md.run(BANKING, FULL, directory=tmp_path, attack=ATTACK).labels().judge_version == "2"
