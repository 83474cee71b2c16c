"""What adapters ask of a run's models: answers in a stated form, and vectors of the stated length.

A malformed answer is asked for again, with what was wrong with it; then it is an error. Nothing is made up instead.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memorydojo._display import plain
from memorydojo.errors import MemorySystemError, ModelError
from memorydojo.models.base import MemoryModels

_Answer = TypeVar("_Answer", bound=BaseModel)

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_MALFORMED = (
    "The chat model does not keep to the form that this memory system needs: use a model that can answer in JSON, "
    "raise max_tokens if its answers are cut off, and run the session again."
)


def reply_text(response: Mapping[str, Any]) -> str:
    """The text of a chat completion.

    Raises:
        ModelError: It is empty, refused or cut off. A memory system would store nothing and say nothing.
    """
    try:
        choice = response["choices"][0]
        message = choice["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise ModelError(f"the chat model's response has no message: {str(response)[:200]!r}") from error
    reason = choice.get("finish_reason")
    if reason not in (None, "stop"):
        raise ModelError(f"the chat model's answer is incomplete: it finished with {reason!r}")
    text = message.get("content")
    if message.get("refusal") or not isinstance(text, str) or not text.strip():
        raise ModelError(f"the chat model gave no text: {str(message)[:200]!r}")
    return text


def structured(
    models: MemoryModels,
    answer: type[_Answer],
    *,
    system: str,
    call: str,
    request: Mapping[str, Any],
    attempts: int,
    check: Callable[[_Answer], None] = lambda answer: None,
) -> _Answer:
    """Asks the chat model for an answer in the form of ``answer``.

    After a malformed answer the model is asked again, and told what was wrong; failures of the endpoint are not
    repeated here, since the gateway has repeated them already.

    Args:
        models: The run's models.
        answer: The form of the answer. Its JSON schema goes with the request.
        system: The memory system's name.
        call: What it is doing, for example ``"write"``.
        request: The request without ``response_format``.
        attempts: How often to ask at most.
        check: What else must hold; raises ``ValueError`` if it does not.

    Raises:
        ModelError: The model could not be asked.
        MemorySystemError: No answer had the right form.
    """
    schema = {"name": answer.__name__, "strict": True, "schema": answer.model_json_schema()}
    asked = {**request, "response_format": {"type": "json_schema", "json_schema": schema}}
    problem = ""
    for _ in range(attempts):
        response = models.chat(asked)
        text = ""
        try:
            text = reply_text(response)
            found = answer.model_validate_json(_FENCE.sub(r"\1", text))
            check(found)
            return found
        except (ModelError, ValueError) as error:
            problem = _described(error)
        again = f"This answer cannot be used: {problem}. Give the whole answer again, as one JSON object."
        said = [{"role": "assistant", "content": text}] if text else []
        asked = {**asked, "messages": [*request["messages"], *said, {"role": "user", "content": again}]}
    raise MemorySystemError(
        system, call, f"no usable {answer.__name__} from the chat model in {attempts} attempts: {problem}", _MALFORMED
    )


def _described(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return plain(f"{place}: {first['msg']}" if place else first["msg"], 300)
    return plain(str(error), 300)


def embedded(models: MemoryModels, texts: Sequence[str], *, system: str, call: str) -> list[list[float]]:
    """The vectors of texts, in order.

    Raises:
        MemorySystemError: The embedding model gave another number of vectors, or vectors of another length.
    """
    vectors = models.embed(texts) if texts else []
    if [len(vector) for vector in vectors] != [models.embedding_dimensions] * len(texts):
        raise MemorySystemError(
            system,
            call,
            f"the embedding model gave {len(vectors)} vectors of lengths {sorted({len(v) for v in vectors})} "
            f"for {len(texts)} texts, not of {models.embedding_dimensions}",
            "Check that the embedding model and its dimensions belong together.",
        )
    return vectors
