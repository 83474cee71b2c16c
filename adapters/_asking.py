"""What adapters ask of a run's models: answers in a stated form, and vectors of the stated length.

A malformed answer is asked for again, with what was wrong with it; then it is an error. Nothing is made up instead.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from memorydojo.errors import MemorySystemError, UnusableAnswerError
from memorydojo.models.asking import ask, reply_text
from memorydojo.models.base import MemoryModels

__all__ = ["embedded", "reply_text", "structured"]

_Answer = TypeVar("_Answer", bound=BaseModel)

_MALFORMED = (
    "The chat model does not keep to the form that this memory system needs: use a model that can answer in JSON, "
    "raise max_tokens if its answers are cut off, and run the session again."
)


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
    """Asks the chat model for an answer in the form of ``answer``; see `memorydojo.models.asking.ask`.

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
    try:
        return ask(models.chat, answer, request=request, attempts=attempts, check=check, repeat=True)
    except UnusableAnswerError as error:
        raise MemorySystemError(system, call, f"{answer.__name__}: {error}", _MALFORMED) from error


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
