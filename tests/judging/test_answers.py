"""The judge of answers to held-out questions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import UnknownNameError
from memorydojo.history import QUESTION_TYPES
from memorydojo.judging import AnswerJudge, HeldOutQuestion
from memorydojo.judging._prompts import ANSWERS
from memorydojo.models.access import Access
from memorydojo.models.config import Models


@pytest.fixture
def marker(models: Models, tmp_path: Path) -> Iterator[AnswerJudge]:
    one = AnswerJudge("m", access=Access(models=models), directory=tmp_path)
    yield one
    one.close()


def question(type: str = "multi-session", id: str = "q", reference: str | int = "33") -> HeldOutQuestion:
    return HeldOutQuestion(id=id, type=type, text="How old?", reference=reference)


@pytest.mark.parametrize("type", QUESTION_TYPES)
@pytest.mark.parametrize("id", ["q", "q_abs"])
def test_every_type_has_its_rule_and_abstention_another(marker: Any, upstream: Any, type: str, id: str) -> None:
    assert marker.correct(question(type, id), "YES, 33") is True
    system = upstream.requests[0]["body"]["messages"][0]["content"]
    kind = "abstention" if id == "q_abs" else QUESTION_TYPES[type]
    assert system == ANSWERS[kind].system
    assert [system == prompt.system for prompt in ANSWERS.values()].count(True) == 1


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("fact", "A response with a part of it only is wrong"),
        ("time", "one off is right"),
        ("update", "mentions\nwhat held earlier does no harm"),
        ("preference", "recalls the user's\npersonal information and uses it rightly"),
        ("abstention", "that the information is missing"),
    ],
)
def test_the_rules_say_what_is_right(kind: str, says: str) -> None:
    assert says in ANSWERS[kind].system


def test_the_judge_sees_question_reference_and_response_only(marker: Any, model: Any) -> None:
    marker.correct(question(reference=33), "thirty-three", run="poisoned-run")
    assert model.asked == [{"QUESTION": "How old?", "REFERENCE": "33", "RESPONSE": "thirty-three"}]


def test_a_yes_within_a_word_is_no_yes(marker: Any, upstream: Any) -> None:
    upstream.chat = lambda body: {"role": "assistant", "content": "It was said yesterday, so no."}
    assert marker.correct(question(), "33") is None
    upstream.chat = lambda body: {"role": "assistant", "content": json.dumps({"evidence": "yes", "answer": "no"})}
    assert marker.correct(question(), "yes") is False


def test_an_empty_answer_is_wrong_without_a_call(marker: Any, upstream: Any) -> None:
    assert marker.correct(question(), " \n") is False
    assert upstream.requests == []


def test_equal_answers_are_judged_once_and_counted_for_the_run_that_asked(marker: Any, upstream: Any) -> None:
    for run in ("r1", "r2"):
        assert marker.correct(question(), "YES", run=run)
    assert len(upstream.requests) == 1
    assert marker.examiner.spent("r1")
    assert not marker.examiner.spent("r2")


def test_an_unknown_type_is_named(marker: Any) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'multi-session'"):
        marker.correct(question("multi-sessions"), "33")
