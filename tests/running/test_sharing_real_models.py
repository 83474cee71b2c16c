"""Shared sessions on a scripted OpenAI-compatible server: counts, costs, recorded answers and failures."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest

import memorydojo as md
from memorydojo.adapter import AdapterConfig
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.cost import summarize_cost, usage_table
from memorydojo.errors import EndpointDownError, InvalidInputError
from memorydojo.history import HistoryPrefix
from memorydojo.models.base import MemoryModels
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.record import MemoryItem
from memorydojo.runs import RunPlan, Runs
from tests.running.test_sharing import facts, history

FAST = Limits(retries=0, first_backoff_seconds=0.001, max_backoff_seconds=0.002, timeout_seconds=5.0)


class Forgetful(FullContextAdapter):
    """Delivers nothing, so that a task that comes again is asked in the same words; asks for the embedding's length."""

    name = "forgetful"
    Config = AdapterConfig

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        assert models.embedding_dimensions > 0
        return super().open(directory, models, config)

    def retrieve(self, query: str) -> list[MemoryItem]:
        return []


@pytest.fixture
def models(upstream: Any) -> Models:
    numbers = itertools.count()

    def sample(body: dict[str, Any]) -> dict[str, Any]:
        """Never the same answer twice."""
        if "tools" in body and body["messages"][-1]["role"] == "user":
            function = {"name": "get_iban", "arguments": "{}"}
            calls = [{"id": f"c{next(numbers)}", "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        return {"role": "assistant", "content": f"Answer number {next(numbers)}."}

    upstream.chat = sample
    return Models(
        backends={"b": Backend(base_url=upstream.base_url, key_env="", limits=FAST)},
        models={"m": Model(backend="b"), "vectors": Model(backend="b")},
    )


def plans() -> list[RunPlan]:
    tasks = (1, 7, 1, 7, 1)
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    attacks = [
        md.Attack(objective="banking", payload=payload, session=session)
        for payload, session in (("seed-1", 2), ("seed-1", 4), ("seed-2", 4))
    ]
    return [
        md.plan_run(trajectory, Forgetful, attack=attack, model="m", embedding_model="vectors")
        for attack in (None, *attacks)
    ]


def start(models: Models, directory: Path, **more: Any) -> Runs:
    return md.sweep(plans(), directory=directory, models=models, **more)


def test_runs_of_a_real_model_share_only_when_asked(models: Models, tmp_path: Path) -> None:
    assert [run.header.shared for run in start(models, tmp_path / "a")] == [None] * 4
    assert all(run.header.shared for run in start(models, tmp_path / "b", share=True))


def test_costs_count_shared_sessions_once(models: Models, upstream: Any, tmp_path: Path) -> None:
    runs = start(models, tmp_path, share=True)
    table = usage_table(runs)
    assert table["input_tokens"].sum() == upstream.tokens["input"]
    assert table["calls"].sum() == upstream.tokens["chat_calls"] + upstream.tokens["embedding_calls"]
    assert summarize_cost(table, by=["role"])["calls"].sum() == table["calls"].sum()
    saved = sum(used.calls for run in runs for session in run.sessions for used in session.usage)
    assert saved == 4 * 5 * 2


@pytest.mark.parametrize("share", [True, False])
def test_costs_count_histories_and_held_out_questions(
    models: Models, upstream: Any, tmp_path: Path, share: bool
) -> None:
    chosen = [
        plan.model_copy(update={"memory": "vector", "memory_settings": {"top_k": 2}, **changed})
        for plan in plans()
        for changed in [{"trajectory": plan.trajectory.model_copy(update={"history": HistoryPrefix.of(history())})}]
    ]
    table = usage_table(md.sweep(chosen, directory=tmp_path, models=models, share=share))
    assert table["input_tokens"].sum() == upstream.tokens["input"]
    assert table["calls"].sum() == upstream.tokens["chat_calls"] + upstream.tokens["embedding_calls"]


def test_the_counts_of_a_run_are_those_of_the_run_alone(models: Models, tmp_path: Path) -> None:
    alone, shared = start(models, tmp_path / "a", share=False), start(models, tmp_path / "b", share=True)

    def counts(runs: Runs) -> list[Any]:
        return [
            [
                [(u.role, u.model, u.calls, u.errors) for u in usage]
                for usage in (r.header.usage, *(s.usage for s in r.sessions))
            ]
            for r in runs
        ]

    assert counts(shared) == counts(alone)


@pytest.mark.parametrize("share", [True, False])
def test_a_shared_sweep_is_replayed_shared_or_not(models: Models, upstream: Any, tmp_path: Path, share: bool) -> None:
    recorded = start(models, tmp_path / "recorded", share=True)
    answers = {session.final_response for run in recorded for session in run.sessions}
    assert len(answers) == 1 + 4 + 2 + 3 * 2  # session 1, the early insertion, sessions 2 and 3, and three ends
    asked = len(upstream.requests)
    answers_file = tmp_path / "recorded" / "answers.sqlite"
    again = start(models, tmp_path / "again", share=share, replay="only", answers=answers_file)
    assert len(upstream.requests) == asked
    assert [[s.messages for s in run.sessions] for run in again] == [
        [s.messages for s in run.sessions] for run in recorded
    ]
    assert [f[1:] for f in facts(again)] == [f[1:] for f in facts(recorded)]


def test_an_unshared_sweep_is_replayed_unshared(models: Models, upstream: Any, tmp_path: Path) -> None:
    recorded = start(models, tmp_path / "recorded", share=False)
    asked = len(upstream.requests)
    file = tmp_path / "recorded" / "answers.sqlite"
    again = start(models, tmp_path / "again", share=False, replay="only", answers=file)
    assert len(upstream.requests) == asked
    assert [f[1:] for f in facts(again)] == [f[1:] for f in facts(recorded)]


def test_what_is_left_of_an_endpoint_that_died_in_a_shared_part_goes_on(
    models: Models, upstream: Any, tmp_path: Path, faults: Any
) -> None:
    upstream.faults = [None, None, None, faults.status(401)]
    with pytest.raises(EndpointDownError):
        start(models, tmp_path, share=True)
    assert len(md.load_runs(tmp_path)) == 0
    runs = start(models, tmp_path, share=True)
    assert all(run.complete for run in runs)
    assert list((tmp_path / "memories-in-use").iterdir()) == []
    assert list((tmp_path / "prefixes").iterdir()) == []


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_an_endpoint_that_died_in_a_run_leaves_the_shared_part_to_the_others(
    models: Models, upstream: Any, tmp_path: Path, faults: Any, lost: int
) -> None:
    before = 1 + 2
    upstream.faults = [*[None] * (before + 2 * lost), faults.status(401)]
    with pytest.raises(EndpointDownError):
        start(models, tmp_path, share=True)
    runs = start(models, tmp_path, share=True)
    tokens = {run.header.shared.segments[0].token for run in runs if run.header.shared}
    assert len(tokens) == 1
    file = tmp_path / "answers.sqlite"
    again = start(models, tmp_path.parent / f"{tmp_path.name}-again", share=False, replay="only", answers=file)
    assert [f[1:] for f in facts(again)] == [f[1:] for f in facts(runs)]


def test_a_worker_without_the_key_says_so(upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is played by a thread whose environment loses the key once the sweep has looked for it."""
    monkeypatch.setenv("TEST_KEY", "secret-key-0123456789")

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            monkeypatch.delenv("TEST_KEY", raising=False)
            return super().submit(fn, *args, **kwargs)

    backend = Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=FAST)
    models = Models(backends={"b": backend}, models={"m": Model(backend="b"), "vectors": Model(backend="b")})
    with Elsewhere(1) as executor, pytest.raises(InvalidInputError, match=r"TEST_KEY.*Workers on other machines"):
        start(models, tmp_path, executor=executor)
    assert upstream.requests == []
