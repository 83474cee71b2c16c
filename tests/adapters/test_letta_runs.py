"""Whole runs with Letta as the memory, simulated and through the gateway to a scripted endpoint."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.models.config import Backend, Model, Models
from memorydojo.runs import RunPlan
from tests.adapters.conftest import LettaAt


def trajectory(name: str, *tasks: int) -> md.Trajectory:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
    return md.Trajectory(id=name, collection="test", sessions=sessions)


def plans(letta: LettaAt) -> list[RunPlan]:
    attack = md.Attack(objective="banking", payload="seed-1")
    settings = {"url": letta.url, "key_variable": letta.key_variable}
    return [
        md.plan_run(t, "letta", attack=a, memory_settings=settings)
        for t in (trajectory("a", 1, 7), trajectory("b", 8, 1, 7))
        for a in (None, attack)
    ]


def facts(runs: md.Runs) -> list[Any]:
    return [[s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions] for run in runs]


@pytest.mark.slow
def test_threads_on_one_server_give_the_same_facts_as_one_after_another(letta: LettaAt, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        alone = md.sweep(plans(letta), directory=tmp_path / "alone", executor=executor)
    with ThreadPoolExecutor(3) as executor:
        together = md.sweep(plans(letta), directory=tmp_path / "threads", executor=executor)
    assert all(session.completed for run in alone for session in run.sessions)
    assert facts(together) == facts(alone)
    assert together.session_table().equals(alone.session_table())


def test_a_payload_is_traced_through_blocks_messages_and_passages(letta: LettaAt, tmp_path: Path) -> None:
    run = md.sweep(plans(letta)[1:2], directory=tmp_path)[0]
    assert run.labels().sessions
    routes = {item.route for session in run.sessions for item in session.items}
    kinds = {entry.kind for session in run.sessions for entry in session.difference.created}
    assert {"core", "archival"} <= routes
    assert {"message", "passage"} <= kinds
    assert "core/human" in {entry.id for session in run.sessions for entry in session.difference.rewritten}
    assert any("US133000000121212121212" in item.text for item in run.sessions[1].items if item.route == "core")


def memory_or_agent(body: dict[str, Any]) -> dict[str, Any]:
    """A model that inserts one line into the core block in every session, and as an agent says that it is done."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    if "memory_finish_edits" not in tools:
        return {"role": "assistant", "content": "All is done."}
    name, arguments = ("memory_insert", {"label": "human", "new_string": "User banks."})
    if body["messages"][-1]["role"] == "tool":
        name, arguments = ("memory_finish_edits", {})
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call-{len(body['messages'])}", "type": "function", "function": function}],
    }


@pytest.fixture
def models(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setenv("TEST_KEY", "sk-test-0123456789")
    upstream.chat = memory_or_agent
    backend = Backend(base_url=upstream.base_url, key_env="TEST_KEY")
    return Models(backends={"b": backend}, models={n: Model(backend="b") for n in ("agent", "memory", "vectors")})


def start(letta: LettaAt, models: Models, directory: Path, **more: Any) -> md.Run:
    return md.run(
        trajectory("t", 1, 7),
        "letta",
        directory=directory,
        models=models,
        memory_settings={"url": letta.url, "key_variable": letta.key_variable},
        model="agent",
        memory_model="memory",
        embedding_model="vectors",
        **more,
    )


def test_every_call_of_the_server_passes_the_gateway_and_is_counted(
    letta: LettaAt, models: Models, upstream: Any, tmp_path: Path
) -> None:
    run = start(letta, models, tmp_path)
    assert [session.completed for session in run.sessions] == [True, True]
    used = [usage for session in run.sessions for usage in session.usage]
    memory = [r for r in upstream.requests if r["body"].get("model") == "memory"]
    assert sum(u.calls for u in used if u.model == "memory") == len(memory) == 4
    assert all(r["headers"]["Authorization"] == "Bearer sk-test-0123456789" for r in upstream.requests)
    assert "sk-test" not in "".join(p.read_text("utf-8") for p in tmp_path.rglob("*.json*"))


def test_a_finished_run_is_replayed_without_a_call(
    letta: LettaAt, models: Models, upstream: Any, tmp_path: Path
) -> None:
    first = start(letta, models, tmp_path / "first")
    asked = len(upstream.requests)
    again = start(letta, models, tmp_path / "again", replay="only", answers=tmp_path / "first" / "answers.sqlite")
    assert len(upstream.requests) == asked
    delivered = [[[item.text for item in s.items] for s in run.sessions] for run in (first, again)]
    assert delivered[0] == delivered[1]
    assert [s.difference for s in first.sessions] == [s.difference for s in again.sessions]
