"""Runs on a scripted OpenAI-compatible server: real sockets, the unmodified clients, the real gateway."""

import json
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import memorydojo as md
from memorydojo.cost import usage_table
from memorydojo.errors import EndpointDownError, InvalidInputError, MissingPackageError
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.runs import Run

KEY = "sk-very-secret-0123456789abcdef"
FAST = Limits(retries=2, first_backoff_seconds=0.001, max_backoff_seconds=0.002, timeout_seconds=1.0)
ATTACK = md.Attack(objective="banking", payload="seed-1")


@pytest.fixture
def models(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setenv("TEST_KEY", KEY)
    upstream.chat = answer
    return Models(
        backends={"b": Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=FAST)},
        models={"agent": Model(backend="b"), "memory": Model(backend="b"), "vectors": Model(backend="b")},
    )


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Calls two tools at once, then answers; as a memory model, remembers one thing."""
    if "tools" not in body:
        return {"role": "assistant", "content": json.dumps({"memory": [{"text": remembered(body)}]})}
    last = body["messages"][-1]
    if last["role"] == "user":
        return {"role": "assistant", "content": None, "tool_calls": [call("get_iban", 1), call("get_balance", 2)]}
    return {"role": "assistant", "content": "All is done."}


def remembered(body: dict[str, Any]) -> str:
    return f"User asked for thing number {sum(map(len, map(str, body['messages']))) % 997}"


def call(function: str, number: int, arguments: str = "{}") -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": function, "arguments": arguments}}


def trajectory(n: int) -> md.Trajectory:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{t}") for t in range(n))
    return md.Trajectory(id=f"t{n}", collection="test", sessions=sessions)


def start(models: Models, directory: Path, n: int = 3, *, memory: str = "vector", **more: Any) -> Run:
    names = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    return md.run(trajectory(n), memory, directory=directory, models=models, **{**names, **more})


def facts(run: Run) -> list[dict[str, Any]]:
    return [s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions]


def test_a_run_with_tool_calls_and_usage_as_the_server_counted_it(
    models: Models, upstream: Any, tmp_path: Path
) -> None:
    run = start(models, tmp_path, memory="mem0", attack=ATTACK)
    assert [s.completed for s in run.sessions] == [True] * 3
    assert [a.function for a in run.sessions[0].actions] == ["get_iban", "get_balance"]
    assert [a.poisoned for a in run.sessions[0].actions] == [True, False]
    assert run.sessions[0].final_response == "All is done."
    used = [u for s in run.sessions for u in s.usage]
    agent = [r for r in upstream.requests if "tools" in r["body"]]
    assert sum(u.calls for u in used if u.model == "agent") == len(agent) == 6
    assert sum(u.calls for u in used if u.model == "memory") == 3
    assert sum(u.calls for u in used if u.model in ("agent", "memory")) == upstream.tokens["chat_calls"]
    before = run.header.usage
    assert [(u.role, u.model, u.calls) for u in before] == [("memory", "vectors", 1)]
    assert sum(u.calls for u in [*before, *used] if u.model == "vectors") == upstream.tokens["embedding_calls"]
    assert sum(u.input_tokens for u in [*before, *used]) == upstream.tokens["input"]
    assert usage_table([run])["input_tokens"].sum() == upstream.tokens["input"]
    assert {u.role for u in used if u.model == "agent"} == {"agent"}
    assert sum(u.output_tokens for u in used) == upstream.tokens["output"]
    assert all(u.cached_tokens == 3 * u.calls for u in used if u.model == "agent")


def test_the_file_of_answers_is_whole_by_itself_when_a_run_has_ended(models: Models, tmp_path: Path) -> None:
    start(models, tmp_path / "runs")
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes((tmp_path / "runs" / "answers.sqlite").read_bytes())
    again = start(models, tmp_path / "again", replay="only", answers=copy)
    assert all(s.completed for s in again.sessions)


def test_the_run_says_which_models_it_used_and_never_their_key(
    models: Models, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = start(models, tmp_path)
    assert run.header.simulated is False
    assert run.header.models["agent"].name == "agent"
    assert run.header.models["agent"].host.startswith("127.0.0.1:")
    assert run.header.models["agent"].temperature == 0.0
    saved = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert saved
    assert not any(KEY.encode() in data for data in saved)
    assert KEY not in caplog.text


def test_a_run_is_simulated_if_only_its_memory_is(models: Models, tmp_path: Path) -> None:
    assert start(models, tmp_path, memory="mem0", memory_model="simulated").header.simulated is True


def test_what_the_agent_is_sent(models: Models, upstream: Any, tmp_path: Path) -> None:
    start(models, tmp_path, 2)
    first, second = [r["body"] for r in upstream.requests if "tools" in r["body"]][:2]
    assert first["temperature"] == 0.0
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert {t["function"]["name"] for t in first["tools"]} >= {"send_money", "get_iban"}
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert [m.get("tool_call_id") for m in second["messages"][3:]] == ["c1", "c2"]


def test_malformed_arguments_become_an_error_for_the_model(models: Models, upstream: Any, tmp_path: Path) -> None:
    def clumsy(body: dict[str, Any]) -> dict[str, Any]:
        if body["messages"][-1]["role"] == "user":
            calls = [call("get_iban", 1, '{"a": '), call("send_money", 2, '["x"]'), call("get_balance", 3)]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        return {"role": "assistant", "content": "Sorry."}

    upstream.chat = clumsy
    run = start(models, tmp_path, 2)
    assert [s.completed for s in run.sessions] == [True, True]
    assert [(a.function, a.error is None) for a in run.sessions[0].actions] == [
        ("get_iban", False),
        ("send_money", False),
        ("get_balance", True),
    ]
    told = [r for r in upstream.requests if of_agent(r)][-1]["body"]["messages"]
    assert "not a JSON object" in told[-3]["content"]
    assert told[2]["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_an_unknown_tool_is_an_error_for_the_model(models: Models, upstream: Any, tmp_path: Path) -> None:
    upstream.chat = lambda body: (
        {"role": "assistant", "content": None, "tool_calls": [call("rm_rf", 1)]}
        if body["messages"][-1]["role"] == "user"
        else {"role": "assistant", "content": "Sorry."}
    )
    run = start(models, tmp_path, 2)
    assert run.sessions[0].completed
    assert "Invalid tool rm_rf" in str(run.sessions[0].messages[2].error)


def test_an_empty_answer_is_an_answer(models: Models, upstream: Any, tmp_path: Path) -> None:
    upstream.chat = lambda body: {"role": "assistant", "content": None}
    run = start(models, tmp_path, 2)
    assert [(s.completed, s.final_response) for s in run.sessions] == [(True, "")] * 2
    assert len([r for r in upstream.requests if "tools" in r["body"]]) == 2


def test_text_that_is_no_unicode_is_made_fit_for_saving(models: Models, upstream: Any, tmp_path: Path) -> None:
    upstream.chat = lambda body: {"role": "assistant", "content": "a\ud800b"}
    assert start(models, tmp_path, 2).sessions[0].final_response == "a\ufffdb"


# Faults: the right data, or a recorded error; never a silent empty write that counts as success.


def _faulty(upstream: Any, fault: Any, times: int, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """Lets the requests that are wanted meet a fault, from the third of them on, so many times."""
    seen = 0
    take = upstream.take

    def faulty(request: dict[str, Any]) -> Any:
        nonlocal seen
        take(request)
        if not wanted(request):
            return None
        seen += 1
        return fault if 3 <= seen < 3 + times else None

    upstream.take = faulty


def of_agent(request: dict[str, Any]) -> bool:
    return "tools" in request["body"]


def of_memory(request: dict[str, Any]) -> bool:
    return "messages" in request["body"] and not of_agent(request)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 99])
@pytest.mark.parametrize("wanted", [of_agent, of_memory])
def test_a_run_under_a_fault_has_the_right_data_or_a_recorded_error(
    models: Models, upstream: Any, tmp_path: Path, named_fault: tuple[str, Any], wanted: Any, times: int
) -> None:
    fault, act = named_fault
    _faulty(upstream, act, times, wanted)
    try:
        run = start(models, tmp_path, 10, memory="mem0")
    except EndpointDownError:
        # Dead for good: nothing of the failed session is saved as a fact, and what was saved stays.
        run = md.load_runs(tmp_path)[0]
        assert not run.complete
        assert times == 99
    for s in run.sessions:
        stored = [e for e in s.difference.created if e.kind == "memory"]
        if s.completed:
            assert stored, f"session {s.session} wrote nothing and counts as success"
        else:
            assert s.failure is not None
            assert s.failure.message
            assert not s.utility
    lasting = times == 99 or (wanted is of_memory and "content" in fault)
    soft = wanted is of_agent and "content" in fault  # an odd text is still the agent's answer
    if not lasting or soft:
        assert [s.completed for s in run.sessions] == [True] * 10
    else:
        assert len(run.sessions) < 10


# The circuit, keys, replay.


def test_a_refused_key_stops_the_sweep_and_it_goes_on_later(
    models: Models, upstream: Any, tmp_path: Path, faults: Any
) -> None:
    names = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    plans = [md.plan_run(trajectory(n), "vector", **names) for n in (2, 3, 4)]  # type: ignore[arg-type]
    md.sweep(plans[:1], directory=tmp_path, models=models)
    upstream.faults = [faults.status(401)]
    with ThreadPoolExecutor(1) as alone, pytest.raises(EndpointDownError, match=r"refuses the key \(401\)"):
        md.sweep(plans, directory=tmp_path, models=models, executor=alone)
    assert [run.complete for run in md.load_runs(tmp_path)] == [True]
    runs = md.sweep(plans, directory=tmp_path, models=models)
    assert [run.complete for run in runs] == [True] * 3


def test_answers_that_cannot_be_recorded_stop_the_sweep_and_it_goes_on_later(
    models: Models, upstream: Any, tmp_path: Path
) -> None:
    def full(body: dict[str, Any]) -> dict[str, Any]:
        if len([r for r in upstream.requests if of_agent(r)]) == 7:  # in the second session of the second run
            with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database, database:
                database.execute("ALTER TABLE answers RENAME TO gone")
        return answer(body)

    upstream.chat = full
    names = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    plans = [md.plan_run(trajectory(n), "vector", **names) for n in (2, 3)]  # type: ignore[arg-type]
    refused = r"cannot write the recorded answers in .*answers\.sqlite.*start again"
    with ThreadPoolExecutor(1) as alone, pytest.raises(EndpointDownError, match=refused):
        md.sweep(plans, directory=tmp_path, models=models, executor=alone)
    assert [run.complete for run in md.load_runs(tmp_path)] == [True, False]
    assert [s.completed for s in md.load_runs(tmp_path)[1].sessions] == [True]
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database, database:
        database.execute("ALTER TABLE gone RENAME TO answers")
    upstream.chat = answer
    runs = md.sweep(plans, directory=tmp_path, models=models)
    assert [[s.completed for s in run.sessions] for run in runs] == [[True] * 2, [True] * 3]


def test_a_missing_key_is_said_before_anything_is_written(
    models: Models, upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(InvalidInputError, match="set the environment variable TEST_KEY"):
        start(models, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert upstream.requests == []


def test_a_recorded_run_is_replayed_with_the_endpoint_off(models: Models, upstream: Any, tmp_path: Path) -> None:
    first = start(models, tmp_path / "a", memory="mem0", attack=ATTACK)
    upstream.close()
    again = start(
        models,
        tmp_path / "b",
        memory="mem0",
        attack=ATTACK,
        replay="only",
        answers=tmp_path / "a" / "answers.sqlite",
    )
    assert facts(again) == facts(first)
    assert again.labels() == first.labels()
    assert again.header.replay == "only"
    assert all(w.replayed for s in again.sessions for w in s.waiting)


def test_a_replay_that_misses_an_answer_stops_the_run(models: Models, upstream: Any, tmp_path: Path) -> None:
    start(models, tmp_path / "a")
    with pytest.raises(EndpointDownError, match="holds no answers of this run"):
        start(models, tmp_path / "b", attack=ATTACK, replay="only", answers=tmp_path / "a" / "answers.sqlite")


# Defenses and elements of one's own.


@pytest.mark.parametrize("defense", ["tool_filter", "spotlighting_with_delimiting", "repeat_user_prompt"])
def test_agentdojos_defenses_run(models: Models, upstream: Any, tmp_path: Path, defense: str) -> None:
    def filtered(body: dict[str, Any]) -> dict[str, Any]:
        if body.get("tool_choice") == "none":
            return {"role": "assistant", "content": "get_iban"}
        return answer(body)

    upstream.chat = filtered
    run = start(models, tmp_path, 2, attack=ATTACK, defense=defense)
    assert [s.completed for s in run.sessions] == [True, True]
    bodies = [r["body"] for r in upstream.requests if "tools" in r["body"]]
    if defense == "tool_filter":
        assert [t["function"]["name"] for t in bodies[1]["tools"]] == ["get_iban"]
    if defense == "spotlighting_with_delimiting":
        observed = [m["content"] for m in bodies[1]["messages"] if m["role"] == "tool"]
        assert observed[0].startswith("<<")
        assert observed[0].endswith(f"{md.payloads['banking']['seed-1'].text}>>")
    if defense == "repeat_user_prompt":
        assert [m["role"] for m in bodies[1]["messages"]][-1] == "user"


class ScriptedClassifier:
    """In place of the detector's model: calls whatever holds the payload an injection."""

    def __init__(self, task: str, *, model: str, device: Any) -> None:
        assert (task, model) == ("text-classification", "protectai/deberta-v3-base-prompt-injection-v2")

    def __call__(self, text: str) -> list[dict[str, Any]]:
        bad = md.payloads["banking"]["seed-1"].text in text
        return [{"label": "INJECTION" if bad else "SAFE", "score": 0.9}]


@pytest.mark.parametrize("attack", [None, ATTACK])
def test_the_detector_takes_out_what_its_model_calls_an_injection(
    models: Models, upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: md.Attack | None
) -> None:
    torch, transformers = ModuleType("torch"), ModuleType("transformers")
    torch.cuda, torch.device = SimpleNamespace(is_available=lambda: False), str  # type: ignore[attr-defined]
    transformers.pipeline = ScriptedClassifier  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    run = start(models, tmp_path, 2, attack=attack, defense="transformers_pi_detector")
    assert [s.completed for s in run.sessions] == [True, True]
    second = [r["body"] for r in upstream.requests if of_agent(r)][1]
    first, balance = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    omitted = "<Data omitted because a prompt injection was detected>"
    assert (first == omitted) == (attack is not None)
    assert balance == "1810.0"
    assert [a.poisoned for a in run.sessions[0].actions] == [attack is not None, False]
    sent = json.dumps([r["body"] for r in upstream.requests])
    assert json.dumps(md.payloads["banking"]["seed-1"].text)[1:-1] not in sent


def test_a_detector_without_its_packages_stops_the_run_and_says_what_to_install(
    models: Models, upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackageError, match=r"'transformers_pi_detector'.*pip install transformers torch"):
        start(models, tmp_path, 2, attack=ATTACK, defense="transformers_pi_detector")
    (run,) = md.load_runs(tmp_path)
    assert (run.complete, list(run.sessions)) == (False, [])
    assert not any(of_agent(r) for r in upstream.requests)


def own_agent(client: Any, model: str) -> Any:
    from agentdojo.agent_pipeline.llms.openai_llm import OpenAILLM

    llm = OpenAILLM(client, model)
    llm.name = model
    return llm


def own_defense(llm: Any) -> Any:
    from memorydojo.running.defenses import elements

    return elements(llm, "spotlighting_with_delimiting")


def test_agentdojos_own_llm_element_and_a_users_pipeline_run(models: Models, upstream: Any, tmp_path: Path) -> None:
    run = start(models, tmp_path, 2, agent=f"{__name__}:own_agent", defense=f"{__name__}:own_defense")
    assert [s.completed for s in run.sessions] == [True, True]
    bodies = [r["body"] for r in upstream.requests if "tools" in r["body"]]
    assert bodies[0]["temperature"] == 0.0
    assert bodies[0]["messages"][0]["role"] == "system"


def test_a_defense_that_cannot_be_loaded_is_named(models: Models, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot load the defense 'no\.such:thing'"):
        start(models, tmp_path / "new", 2, defense="no.such:thing")
    assert not (tmp_path / "new").exists()
