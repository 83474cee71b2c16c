"""Whole runs on A-MEM: through the gateway to a scripted endpoint, and offline from the command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.adapters.amem import AMemAdapter
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.runs import Run

pytestmark = pytest.mark.slow
KEY = "sk-very-secret-0123456789abcdef"
ATTACK = md.Attack(objective="banking", payload="seed-1")


def answer(body: dict[str, Any]) -> dict[str, Any]:
    return AMemAdapter.simulate(body) if "tools" not in body else {"role": "assistant", "content": "All is done."}


@pytest.fixture
def models(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setenv("TEST_KEY", KEY)
    upstream.chat = answer
    limits = Limits(retries=0, first_backoff_seconds=0.001, timeout_seconds=5.0)
    return Models(
        backends={"b": Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=limits)},
        models={"agent": Model(backend="b"), "memory": Model(backend="b"), "vectors": Model(backend="b")},
    )


def start(models: Models | None, directory: Path, **more: Any) -> Run:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in range(4))
    trajectory = md.Trajectory(id="t4", collection="test", sessions=sessions)
    names = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"} if models else {}
    return md.run(trajectory, "a-mem", directory=directory, models=models, **{**names, **more})


def facts(run: Run) -> list[dict[str, Any]]:
    return [s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions]


def test_every_request_of_amem_goes_through_the_gateway_and_is_counted(
    models: Models, upstream: Any, tmp_path: Path
) -> None:
    run = start(models, tmp_path)
    assert [s.completed for s in run.sessions] == [True] * 4
    asked = [r for r in upstream.requests if "tools" not in r["body"] and r["endpoint"].startswith("chat")]
    embedded = [r for r in upstream.requests if r["endpoint"].startswith("embeddings")]
    used = [u for s in run.sessions for u in s.usage]
    assert sum(u.calls for u in used if u.model == "memory") == len(asked) == 1 + 2 + 2 + 2
    assert sum(u.calls for u in used if u.model == "vectors") <= len(embedded)
    assert {r["body"]["model"] for r in asked} == {"memory"}
    assert {r["body"]["temperature"] for r in asked} == {0.1}
    assert {r["body"]["response_format"]["type"] for r in asked} == {"json_schema"}
    assert {r["headers"]["Authorization"] for r in upstream.requests} == {f"Bearer {KEY}"}


def test_a_recorded_run_is_replayed_with_the_endpoint_off(models: Models, upstream: Any, tmp_path: Path) -> None:
    first = start(models, tmp_path / "a", attack=ATTACK)
    asked = len(upstream.requests)
    again = start(models, tmp_path / "b", attack=ATTACK, replay="only", answers=tmp_path / "a" / "answers.sqlite")
    assert len(upstream.requests) == asked
    assert facts(again) == facts(first)
    assert again.labels() == first.labels()


def test_a_useless_answer_is_a_recorded_failure_of_the_write(models: Models, upstream: Any, tmp_path: Path) -> None:
    upstream.chat = lambda body: {"role": "assistant", "content": "All is done." if "tools" in body else "Sorry."}
    run = start(models, tmp_path)
    failure = run.sessions[-1].failure
    assert failure is not None
    assert "memory system 'a-mem' failed in write" in failure.message
    assert len(run.sessions) == 1


def test_equal_simulated_runs_save_equal_facts(tmp_path: Path) -> None:
    first, second = (start(None, tmp_path / name, attack=ATTACK) for name in "ab")
    assert first.header.simulated
    assert facts(first) == facts(second)
    assert first.labels().model_dump() == second.labels().model_dump()
    assert first.labels().insertion_label == "exact"


def test_the_command_line_runs_amem_and_prints_metrics(tmp_path: Path) -> None:
    cli = [sys.executable, "-m", "memorydojo.cli.main"]
    options = ["--memory", "a-mem", "--objective", "banking", "--directory", str(tmp_path / "runs")]
    done = subprocess.run([*cli, "run", "banking-003-01", *options], capture_output=True, text=True, check=True)
    assert "stored: exact" in done.stdout
    shown = subprocess.run([*cli, "metrics", str(tmp_path / "runs")], capture_output=True, text=True, check=True)
    assert "simulated" in shown.stdout
    assert "RSR" in shown.stdout
