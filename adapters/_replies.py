"""What a chat model must answer before a memory system gets to see it."""

from collections.abc import Mapping
from typing import Any

from memorydojo.errors import ModelError


def reply_text(response: Mapping[str, Any]) -> str:
    """The text of a chat completion.

    Raises:
        ModelError: It is empty, refused or cut off. Memory systems store nothing then, and say nothing.
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
