"""Answers in a stated form."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from memorydojo.errors import ModelError, UnusableAnswerError
from memorydojo.models.asking import ask, reply_text


class Colour(BaseModel):
    colour: str


class Script:
    """A chat model that says one thing after the other."""

    def __init__(self, *said: Any) -> None:
        self.said, self.requests = list(said), list[Mapping[str, Any]]()

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, dict) else reply(said)


def reply(content: Any, reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": reason}]}


def asked(script: Script, **more: Any) -> Colour:
    request = {"messages": [{"role": "user", "content": "Which?"}], "temperature": 0}
    return ask(script, Colour, request=request, attempts=3, **more)


@pytest.mark.parametrize(
    "said", ['{"colour": "red"}', '```json\n{"colour": "red"}\n```', ' {"colour": "red", "x": 1} ']
)
def test_an_answer_in_the_form_is_taken(said: str) -> None:
    script = Script(said)
    assert asked(script).colour == "red"
    form = script.requests[0]["response_format"]["json_schema"]
    assert (form["name"], form["strict"]) == ("Colour", True)


def test_an_unusable_answer_is_asked_for_again_and_never_repeated_to_the_model() -> None:
    script = Script("red", reply('{"colour": "re', "length"), '{"colour": "red"}')
    assert asked(script).colour == "red"
    last = script.requests[2]["messages"]
    assert [m["role"] for m in last] == ["user", "user"]
    assert "finished with 'length'" in last[1]["content"]
    assert '"re' not in last[1]["content"]


def test_after_so_many_attempts_the_last_problem_is_told() -> None:
    with pytest.raises(UnusableAnswerError, match=r"no usable answer in 3 attempts; the last: colour: Field required"):
        asked(Script("x", "y", "{}"))


def test_what_else_must_hold_is_checked() -> None:
    def check(found: Colour) -> None:
        if found.colour != "red":
            raise ValueError("it is not red")

    script = Script('{"colour": "blue"}', '{"colour": "red"}')
    assert asked(script, check=check).colour == "red"
    assert "it is not red" in script.requests[1]["messages"][-1]["content"]


def test_a_failing_endpoint_is_not_asked_again_here() -> None:
    script = Script(ModelError("down", code="timeout"))
    with pytest.raises(ModelError, match="down"):
        asked(script)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [{"message": None}]},
        reply(None),
        reply("  "),
        reply("{}", "content_filter"),
        reply("{}", refusal="no"),
        reply(["{}"]),
    ],
)
def test_answers_without_a_whole_text_are_unusable(answer: dict[str, Any]) -> None:
    with pytest.raises(UnusableAnswerError):
        reply_text(answer)
