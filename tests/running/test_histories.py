"""Runs whose memory begins with a history."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

import memorydojo as md
from memorydojo.adapter import MemoryAdapter, load_adapter
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import MemorySystemError
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.record import SessionRecord
from memorydojo.running.clock import FIRST_SESSION, first_session
from memorydojo.running.histories import first_task_session, history_record
from memorydojo.running.runner import plan_run
from memorydojo.runs import Run
from tests.history_tools import EVIDENCE, QUESTION, REFERENCE, START, history, prefixed

FULL = "full_context"
SYSTEMS = ("full_context", "vector", "mem0", "a-mem", "memora")
ATTACK = md.Attack(objective="banking", payload="seed-1")


class Noting(FullContextAdapter):
    """Notes what it is given."""

    name = "noting"
    written: ClassVar[list[SessionRecord]] = []

    def write(self, record: SessionRecord) -> None:
        self.written.append(record)
        super().write(record)


class Failing(FullContextAdapter):
    """Fails to take in the second history session."""

    name = "failing"

    def write(self, record: SessionRecord) -> None:
        if record.id == "history-0002":
            raise MemorySystemError(self.name, "write", "it is full", "Empty it.")
        super().write(record)


def facts(run: Run) -> list[dict[str, Any]]:
    happened = [*run.history, *run.sessions, *([run.question] if run.question else [])]
    return [found.model_dump(mode="json", exclude={"seconds", "waiting"}) for found in happened]


def test_each_conversation_is_written_with_its_roles_and_date_before_the_first_task(tmp_path: Path) -> None:
    Noting.written.clear()
    md.run(prefixed(1, 7), Noting, directory=tmp_path)
    assert [r.id for r in Noting.written] == [*(f"history-000{n}" for n in (1, 2, 3)), "session-0001", "session-0002"]
    first = Noting.written[0]
    assert (first.kind, first.time) == ("history", START)
    assert [(m.role, m.text) for m in first.messages] == [(t.role, t.text) for t in history().sessions[0].turns]
    assert [r.kind for r in Noting.written[3:]] == ["task", "task"]


def test_record_times_ascend_into_the_tasks(tmp_path: Path) -> None:
    Noting.written.clear()
    late = history().model_copy(
        update={
            "question": history().question.model_copy(update={"asked": datetime(2031, 5, 4, 22, 0, tzinfo=UTC)}),
        }
    )
    md.run(prefixed(1, 7, told=late), Noting, directory=tmp_path)
    times = [r.time for r in Noting.written]
    assert times == sorted(times)
    assert times[3] == datetime(2031, 5, 5, 9, 0, tzinfo=UTC)
    assert times[4] - times[3] == timedelta(days=1)


def test_tasks_begin_after_history_and_question_but_never_before_the_data_of_the_tasks() -> None:
    assert first_task_session(None) == FIRST_SESSION
    assert first_task_session(history()) == FIRST_SESSION
    assert first_session(datetime(2025, 1, 1, 23, 59, tzinfo=UTC)) == datetime(2025, 1, 2, 9, 0, tzinfo=UTC)


def test_the_sources_own_ids_stay_out_of_the_record() -> None:
    assert EVIDENCE not in history_record(1, history().sessions[0]).model_dump_json()


def test_what_each_write_did_is_saved(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), "mem0", directory=tmp_path)
    assert [(h.number, h.completed, h.time) for h in run.history] == [
        (n, True, START + timedelta(days=n - 1)) for n in (1, 2, 3)
    ]
    for told in run.history:
        assert told.difference.created
        assert {used.role for used in told.usage} == {"memory"}
        assert {"write", "snapshot"} <= told.seconds.keys()


def test_history_sessions_count_in_no_metric(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), FULL, directory=tmp_path, attack=ATTACK)
    assert run.plan.insertion is not None
    assert run.plan.insertion.session == 1
    table = md.load_runs(tmp_path).session_table()
    assert table["session"].tolist() == [1, 2]
    assert table["n_sessions"].unique().tolist() == [2]


def test_usage_of_history_sessions_is_apart_from_that_of_tasks(tmp_path: Path) -> None:
    with_history = md.run(prefixed(1, 7), "mem0", directory=tmp_path / "a")
    used = [told.usage for told in with_history.history] + [s.usage for s in with_history.sessions]
    calls = [sum(u.calls for u in usage) for usage in used]
    assert all(calls)
    assert with_history.question is not None
    assert {used.role for used in with_history.question.usage} == {"memory"}


@pytest.mark.parametrize(
    "system", [pytest.param(s, marks=pytest.mark.slow) if s in ("mem0", "a-mem") else s for s in SYSTEMS]
)
def test_equal_runs_with_a_history_leave_equal_facts(system: str, tmp_path: Path) -> None:
    one, two = (md.run(prefixed(1, 7), system, directory=tmp_path / d, attack=ATTACK) for d in ("a", "b"))
    assert facts(one) == facts(two)
    assert one.labels() == two.labels()


def test_a_failed_write_of_the_history_stops_the_run(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), Failing, directory=tmp_path)
    assert [h.completed for h in run.history] == [True, False]
    failure = run.history[1].failure
    assert failure is not None
    assert (failure.stage, failure.type) == ("write", "MemorySystemError")
    assert run.sessions == []
    assert run.question is None
    assert run.end is not None
    assert run.end.status == "stopped"
    table = md.load_runs(tmp_path).session_table()
    assert table["failed_stage"].tolist() == ["not begun"] * 2
    assert table["memory_correct"].tolist() == [False] * 2
    assert table["history_failed"].tolist() == [2] * 2


def test_after_a_failed_write_of_the_history_the_run_goes_on_if_asked_to(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), Failing, directory=tmp_path, on_failure="continue")
    assert [h.completed for h in run.history] == [True, False, True]
    assert len(run.sessions) == 2
    assert run.question is not None
    assert md.load_runs(tmp_path).session_table()["history_failed"].tolist() == [1] * 2


def test_a_sweep_keeps_each_history_once(tmp_path: Path) -> None:
    plans = [plan_run(prefixed(1, 7), FULL, attack=attack) for attack in (None, ATTACK)]
    runs = md.sweep(plans, directory=tmp_path)
    assert len(list((tmp_path / "histories").iterdir())) == 1
    assert runs[0].history == [h.model_copy(update={"seconds": runs[0].history[i].seconds, "waiting": h.waiting})
                               for i, h in enumerate(runs[1].history)]  # fmt: skip


def test_the_payload_is_found_in_entries_of_the_history_only_if_the_insertion_changed_them(tmp_path: Path) -> None:
    text = md.payloads["banking"]["seed-1"].text
    told = history()
    turn = told.sessions[0].turns[0].model_copy(update={"text": text})
    poisoned = told.sessions[0].model_copy(update={"turns": (turn,)})
    told = told.model_copy(update={"sessions": (poisoned, *told.sessions[1:])})
    run = md.run(prefixed(1, 7, 8, told=told), FULL, directory=tmp_path, attack=ATTACK)
    labels = run.labels()
    assert {e.entry_id for e in labels.entries if e.original} == {"session-0001"}
    for session in labels.sessions[1:]:
        bearing = {i for item in session.items if item.label == "exact" for i in item.entry_ids}
        assert "history-0001" not in bearing


def test_provenance_shows_what_the_history_wrote(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), FULL, directory=tmp_path, attack=ATTACK)
    graph = md.judging.provenance_graph(run, run.labels())
    versions = graph.provenance.versions
    assert [versions[f"history-000{n}"][0].session for n in (1, 2, 3)] == [-3, -2, -1]
    assert [v.entry_id for v in graph.provenance.written_by(-1)] == ["history-0003"]
    node = md.judging.SessionNode(-1)
    assert not graph.graph.nodes[node]["bears"]


@pytest.fixture
def models(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[type[MemoryAdapter]], Models]:
    """Models behind a server on loopback that notes everything that it is sent."""

    def made(adapter: type[MemoryAdapter]) -> Models:
        def chat(body: dict[str, Any]) -> dict[str, Any]:
            if body["model"] == "memory":
                return adapter.simulate(body)
            return {"role": "assistant", "content": "I do not know."}

        upstream.chat = chat
        monkeypatch.setenv("TEST_KEY", "k" * 20)
        return Models(
            backends={"b": Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=Limits(retries=0))},
            models={"agent": Model(backend="b"), "memory": Model(backend="b"), "vectors": Model(backend="b")},
        )

    return made


@pytest.mark.parametrize("system", SYSTEMS)
def test_question_answer_and_evidence_marks_reach_neither_memory_nor_its_models(
    system: str, models: Callable[[type[MemoryAdapter]], Models], upstream: Any, tmp_path: Path
) -> None:
    """The secrets are words that occur nowhere else, so one look at everything that was sent and stored is enough."""
    names: dict[str, Any] = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    run = md.run(
        prefixed(1, 7), system, directory=tmp_path, models=models(load_adapter(system)), keep_memory=True, **names
    )
    assert all([*(told.completed for told in run.history), *(s.completed for s in run.sessions)])
    assert run.question is not None
    assert run.question.completed
    secrets = ("quokkaquestion", REFERENCE, EVIDENCE, "filler_2", "has_answer")
    stored = [run.memory_after_history(), *run.snapshots()]
    for snapshot in stored:
        for secret in secrets:
            assert secret not in snapshot.model_dump_json()
    assert "harbour" in stored[0].model_dump_json()
    if system != "full_context":
        sent = [json.dumps(request["body"]) for request in upstream.requests]
        asking = [text for text in sent if "quokkaquestion" in text]
        memory_side = [text for text in sent if '"model": "agent"' not in text]
        assert any("harbour" in text for text in memory_side)
        for secret in secrets[1:]:
            assert not any(secret in text for text in sent)
        # The question is asked at the very end: as a query to memory, and then of the agent's model.
        assert sent[-len(asking) :] == asking
    # Nor is it in the memory's own files afterwards.
    for path in (run.directory / "memory").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret.encode() in content for secret in secrets), path.name


@pytest.mark.parametrize("system", ["vector", "mem0", "a-mem", "memora"])
def test_roles_and_dates_reach_memory(
    system: str, models: Callable[[type[MemoryAdapter]], Models], upstream: Any, tmp_path: Path
) -> None:
    names: dict[str, Any] = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    md.run(prefixed(1, 7), system, directory=tmp_path, models=models(load_adapter(system)), **names)
    kind = "embeddings" if system == "vector" else "chat/completions"
    sent = [json.dumps(r["body"]) for r in upstream.requests if r["endpoint"].startswith(kind)]
    first = next(text for text in sent if "harbour 1" in text)
    assert "2023-05-01" in first
    assert "user" in first.lower()
    assert "assistant" in first.lower()
    assert QUESTION not in first
