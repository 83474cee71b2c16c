"""The held-out question after the last task session."""

from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import MemorySystemError
from memorydojo.history import HeldOutQuestion
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.record import MemoryItem
from memorydojo.running.question import request
from tests.history_tools import QUESTION, REFERENCE, START, history, prefixed

FULL = "full_context"


class Forgetful(FullContextAdapter):
    """Cannot be asked the held-out question."""

    name = "forgetful"

    def retrieve(self, query: str) -> list[MemoryItem]:
        if query == QUESTION:
            raise MemorySystemError(self.name, "retrieve", "it forgot", "Remind it.")
        return super().retrieve(query)


@pytest.fixture
def models(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setenv("TEST_KEY", "k" * 20)
    upstream.chat = lambda body: {"role": "assistant", "content": f"The boat is the {REFERENCE}."}
    return Models(
        backends={"b": Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=Limits(retries=0))},
        models={"agent": Model(backend="b"), "memory": Model(backend="b"), "vectors": Model(backend="b")},
    )


def start(models: Models, directory: Path, memory: Any = FULL, **more: Any) -> md.Run:
    names: dict[str, Any] = {"model": "agent", "memory_model": "memory", "embedding_model": "vectors"}
    return md.run(prefixed(1, 7), memory, directory=directory, models=models, **{**names, **more})


def test_the_model_answers_from_the_retrieved_memories_without_tools(
    models: Models, upstream: Any, tmp_path: Path
) -> None:
    run = start(models, tmp_path)
    asked = run.question
    assert asked is not None
    assert asked.query == QUESTION
    assert [i.entry_ids[0] for i in asked.items] == [
        *(f"history-000{n}" for n in (1, 2, 3)),
        *(f"session-000{n}" for n in (1, 2)),
    ]
    last = upstream.requests[-1]["body"]
    assert "tools" not in last
    assert last["messages"] == [{"role": "user", "content": asked.prompt}]
    assert asked.items[0].text in asked.prompt
    assert asked.prompt.endswith(f"Question: {QUESTION}")
    assert asked.answer == f"The boat is the {REFERENCE}."
    assert {used.role for used in asked.usage} == {"agent"}
    assert run.labels().answer == md.judging.AnswerLabel(correct=True, version="answer-rules 1")


def test_the_question_is_put_as_of_its_own_date() -> None:
    question = HeldOutQuestion(id="q", type="temporal-reasoning", text="When?", reference="x", asked=START)
    assert "Today is Monday, 2023-05-01 09:30." in request(question)
    assert "Today" not in request(question.model_copy(update={"asked": None}))


def test_the_prompt_never_holds_the_reference(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), FULL, directory=tmp_path)
    assert run.question is not None
    assert REFERENCE not in run.question.prompt


def test_nothing_is_written_to_memory_when_the_question_is_asked(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), FULL, directory=tmp_path, keep_memory=True)
    for path in (run.directory / "memory").rglob("*.jsonl"):
        assert "quokkaquestion" not in path.read_text()
        assert len(path.read_text().splitlines()) == 5


def test_a_failure_is_a_fact_and_the_answer_counts_as_wrong(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), Forgetful, directory=tmp_path)
    asked = run.question
    assert asked is not None
    assert asked.failure is not None
    assert (asked.completed, asked.answer, asked.failure.stage) == (False, None, "retrieve")
    assert run.end is not None
    assert run.end.status == "completed"
    assert md.load_runs(tmp_path).session_table()["memory_correct"].tolist() == [False, False]


def test_a_model_that_fails_at_the_question_is_a_fact(
    models: Models, upstream: Any, faults: Any, tmp_path: Path
) -> None:
    start(models, tmp_path / "a")
    before = len(upstream.requests)
    upstream.faults.extend([None] * (before - 1) + [faults.status(400)])
    run = start(models, tmp_path / "b")
    assert all(s.completed for s in run.sessions)
    assert run.question is not None
    assert run.question.failure is not None
    assert run.question.failure.stage == "agent"


def test_an_own_element_answers_the_question_too(models: Models, tmp_path: Path) -> None:
    run = start(models, tmp_path, agent="tests.running.test_question:own_element")
    assert run.question is not None
    assert run.question.answer == "Own words."


def own_element(client: Any, model: str) -> Any:
    """An LLM element of a user's own."""
    from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
    from agentdojo.types import text_content_block_from_string

    class Own(BasePipelineElement):  # type: ignore[misc]
        name = model

        def query(self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None) -> Any:
            said = {"role": "assistant", "content": [text_content_block_from_string("Own words.")], "tool_calls": None}
            return query, runtime, env, [*messages, said], extra_args

    return Own()


def test_without_a_history_nothing_is_asked(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7).model_copy(update={"history": None}), FULL, directory=tmp_path)
    assert run.question is None
    assert run.labels().answer is None


def test_memory_utility_is_paired_between_poisoned_and_clean(tmp_path: Path) -> None:
    for attack in (None, md.Attack(objective="banking", payload="seed-1")):
        md.run(prefixed(1, 7), FULL, directory=tmp_path, attack=attack)
    table = md.load_runs(tmp_path).session_table()
    summary = md.metrics.summarize(table, by=["condition"], intervals=False).set_index("condition")
    assert summary["MU"].tolist() == [0.0, 0.0]
    paired = md.metrics.compare(table, "condition", "poisoned", "clean", intervals=False)
    assert paired[paired["metric"] == "MU"]["difference"].tolist() == [0.0]


def test_labels_of_an_older_judge_of_answers_are_made_again(tmp_path: Path) -> None:
    run = md.run(prefixed(1, 7), FULL, directory=tmp_path)
    labels = run.labels()
    assert labels.answer is not None
    old = labels.answer.model_copy(update={"version": "answer-rules 0", "correct": True})
    run.save_labels(labels.model_copy(update={"answer": old}))
    again = md.run(prefixed(1, 7), FULL, directory=tmp_path)
    assert again.labels() == labels


def test_histories_of_odd_turns_go_through_every_light_system(tmp_path: Path) -> None:
    told = history()
    turns = told.sessions[0].turns
    odd = (turns[1], turns[1], turns[0].model_copy(update={"text": ""}), turns[0].model_copy(update={"text": "\x00{}"}))
    told = told.model_copy(
        update={"sessions": (told.sessions[0].model_copy(update={"turns": odd}), *told.sessions[1:])}
    )
    for system in (FULL, "vector", "mem0", "memora"):
        run = md.run(prefixed(1, 7, told=told), system, directory=tmp_path / system)
        assert [h.completed for h in run.history] == [True] * 3
