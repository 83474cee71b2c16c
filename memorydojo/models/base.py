"""What a memory system may ask of models, whichever model answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class MemoryModels(Protocol):
    """The models on the memory's side of a run: one chat model and one embedding model.

    Attributes:
        chat_model: Name of the chat model, as saved with the run.
        embedding_model: Name of the embedding model, as saved with the run.
        simulated: Whether the chat model is the offline simulator.
    """

    chat_model: str
    embedding_model: str
    simulated: bool

    @property
    def embedding_dimensions(self) -> int:
        """Length of the embedding model's vectors."""
        ...

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers one request in the form of OpenAI's chat completions.

        Args:
            request: ``messages`` and optionally ``temperature``, ``max_tokens``, ``response_format``, ``tools``.

        Returns:
            The response object: ``choices[0].message`` and ``usage``.

        Raises:
            ModelError: The model could not be called or refused.
        """
        ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embeds texts as unit vectors, in order.

        Raises:
            ModelError: The model could not be called.
        """
        ...
