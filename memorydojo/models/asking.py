"""Answers of a chat model in a stated form: asked for again if they have another, and never made up instead."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memorydojo._base import reason
from memorydojo._display import plain
from memorydojo.errors import UnusableAnswerError

_Form = TypeVar("_Form", bound=BaseModel)

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


def reply_text(response: Mapping[str, Any]) -> str:
    """The text of a chat completion.

    Raises:
        UnusableAnswerError: It is empty, refused or cut off.
    """
    try:
        choice = response["choices"][0]
        message = choice["message"]
        text, ended, refusal = message.get("content"), choice.get("finish_reason"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise UnusableAnswerError("the answer has no message") from error
    if ended not in (None, "stop"):
        raise UnusableAnswerError(f"the answer is incomplete: it finished with {plain(str(ended), 40)!r}")
    if refusal or not isinstance(text, str) or not text.strip():
        raise UnusableAnswerError("the answer has no text")
    return text


def ask(
    chat: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    form: type[_Form],
    *,
    request: Mapping[str, Any],
    attempts: int,
    check: Callable[[_Form], None] = lambda answer: None,
    repeat: bool = False,
) -> _Form:
    """Asks a chat model for an answer in a form.

    After an answer in another form the model is asked again and told what was wrong. Failures of the endpoint are not
    repeated here; the gateway has.

    Args:
        chat: Sends one request.
        form: The form of the answer. Its JSON schema goes with the request.
        request: The request without ``response_format``.
        attempts: How often to ask at most.
        check: What else must hold; raises ``ValueError``, in words of its own, if it does not.
        repeat: Whether the model is shown the answer that could not be used. Not where texts are judged: the answer may
            hold what somebody else made it say.

    Raises:
        ModelError: The model could not be asked.
        UnusableAnswerError: No answer had the form; the message says what was wrong with the last one.
    """
    schema = {"name": form.__name__, "strict": True, "schema": form.model_json_schema()}
    asked = {**request, "response_format": {"type": "json_schema", "json_schema": schema}}
    problem = ""
    for _ in range(attempts):
        response = chat(asked)
        text = ""
        try:
            text = reply_text(response)
            found = form.model_validate_json(_FENCE.sub(r"\1", text))
            check(found)
            return found
        except ValidationError as error:
            problem = reason(error)
        except (UnusableAnswerError, ValueError) as error:
            problem = plain(str(error), 300)
        again = f"Your last answer cannot be used: {problem}. Give the whole answer again, as one JSON object."
        said = [{"role": "assistant", "content": text}] if repeat and text else []
        asked = {**asked, "messages": [*request["messages"], *said, {"role": "user", "content": again}]}
    raise UnusableAnswerError(f"no usable answer in {attempts} attempts; the last: {problem}")
