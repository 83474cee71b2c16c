"""Answers to held-out questions of saved runs, marked again by a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.errors import SavedRunError
from memorydojo.judging import judge_runs
from memorydojo.models.config import Models
from tests.history_tools import QUESTION, REFERENCE, prefixed

FULL = "full_context"


@pytest.fixture
def run(tmp_path: Path) -> md.Run:
    return md.run(prefixed(1, 7), FULL, directory=tmp_path)


@pytest.fixture
def says(upstream: Any, judge_model: Any) -> Callable[[str], Any]:
    """A model as judge that gives one answer to everything."""

    def made(answer: str) -> Any:
        upstream.chat = judge_model(lambda texts: ("", answer))
        return upstream.chat

    return made


def test_the_verdict_is_saved_with_the_labels_of_the_model(
    run: md.Run, says: Callable[[str], Any], models: Models, tmp_path: Path
) -> None:
    model = says("no")
    report = judge_runs(tmp_path, "m", models=models)
    assert report.runs == 1
    assert run.question is not None
    assert model.asked[0] == {"QUESTION": QUESTION, "REFERENCE": REFERENCE, "RESPONSE": run.question.answer}
    answer = run.labels("m").answer
    assert answer is not None
    assert (answer.correct, answer.unjudged) == (False, False)
    assert answer.version.startswith("m 1-")
    judging = run.labels("m").judging
    assert judging is not None
    assert (judging.mentions, judging.texts, judging.asked) == (1, 1, 1)


def test_no_usable_verdict_counts_as_wrong_and_is_marked(
    run: md.Run, says: Callable[[str], Any], models: Models, tmp_path: Path
) -> None:
    says("perhaps")
    judge_runs(tmp_path, "m", models=models)
    answer = run.labels("m").answer
    assert answer is not None
    assert (answer.correct, answer.unjudged) == (False, True)
    table = md.load_runs(tmp_path).session_table("m")
    assert table["memory_unjudged"].tolist() == [True, True]
    assert table["memory_correct"].tolist() == [False, False]


def test_the_table_of_each_judge_has_its_own_verdict(
    run: md.Run, models: Models, upstream: Any, judge_model: Any, tmp_path: Path
) -> None:
    assert run.question is not None
    evidence = (run.question.answer or "").split(".")[0]
    upstream.chat = judge_model(lambda texts: (evidence, "yes"))
    judge_runs(tmp_path, "m", models=models)
    assert md.load_runs(tmp_path).session_table("m")["memory_correct"].tolist() == [True, True]
    assert md.load_runs(tmp_path).session_table()["memory_correct"].tolist() == [False, False]


def test_a_second_judging_asks_nothing(run: md.Run, says: Callable[[str], Any], models: Models, tmp_path: Path) -> None:
    model = says("no")
    judge_runs(tmp_path, "m", models=models)
    asked = len(model.asked)
    assert judge_runs(tmp_path, "m", models=models).kept == 1
    assert judge_runs(tmp_path, "m", models=models, again=True).kept == 0
    assert len(model.asked) == asked
    assert run.judges() == ["m", "overlap"]


def test_verdicts_of_several_versions_are_not_mixed(run: md.Run, tmp_path: Path) -> None:
    md.run(prefixed(1, 8), FULL, directory=tmp_path)
    labels = run.labels()
    assert labels.answer is not None
    old = labels.answer.model_copy(update={"version": "answer-rules 0"})
    run.save_labels(labels.model_copy(update={"answer": old}))
    with pytest.raises(SavedRunError, match=r"answers marked by answer-rules 0.*answers marked by answer-rules 1"):
        md.load_runs(tmp_path).session_table()
