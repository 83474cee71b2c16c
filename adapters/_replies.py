"""What every adapter checks of a model's answer before its memory system sees it."""

from collections.abc import Mapping, Sequence
from typing import Any

from memorydojo.errors import MemorySystemError, ModelError
from memorydojo.models.base import MemoryModels


def reply_text(response: Mapping[str, Any]) -> str:
    """The text of a chat completion.

    Raises:
        ModelError: It is empty, refused or cut off. Memory systems tend to store nothing then, and to say nothing.
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


def embedded(system: str, models: MemoryModels, texts: Sequence[str]) -> list[list[float]]:
    """The vectors of texts, in order.

    Raises:
        ModelError: The model could not be asked.
        MemorySystemError: Number or length of the vectors is wrong.
    """
    vectors = models.embed(texts) if texts else []
    if [len(vector) for vector in vectors] != [models.embedding_dimensions] * len(texts):
        raise MemorySystemError(
            system,
            "embed",
            f"the embedding model gave {len(vectors)} vectors of lengths {sorted({len(v) for v in vectors})} "
            f"for {len(texts)} texts, not of {models.embedding_dimensions}",
            "Check that the embedding model and its dimensions belong together.",
        )
    return vectors
