"""A memory system's models behind the gateway."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from memorydojo.errors import ModelError
from memorydojo.models.connection import Connection


class GatewayModels:
    """One chat and one embedding model, asked through the gateway. Implements `memorydojo.models.base.MemoryModels`.

    A memory system with a client or a server of its own can be given ``base_url`` and ``api_key`` instead.

    Args:
        connection: The way to the gateway.
        chat_model: Name of the chat model.
        embedding_model: Name of the embedding model.
        simulated: Whether the chat model is the offline simulator.
    """

    def __init__(self, connection: Connection, *, chat_model: str, embedding_model: str, simulated: bool) -> None:
        self.base_url = connection.base_url
        self.api_key = connection.secret
        self.chat_model = chat_model
        self.embedding_model = embedding_model
        self.simulated = simulated
        self._connection = connection

    @functools.cached_property
    def embedding_dimensions(self) -> int:
        """Length of the embedding model's vectors, measured on one text."""
        return len(self.embed(["a text"])[0])

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers one request in the form of OpenAI's chat completions; see `MemoryModels`."""
        answer = self._connection.post("chat/completions", {**request, "model": self.chat_model})
        choices = answer.get("choices")
        if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
            raise ModelError(f"the model {self.chat_model!r} answered without choices; check what its endpoint serves")
        return answer

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embeds texts as vectors, in order; see `MemoryModels`."""
        if not texts:
            return []
        request = {"model": self.embedding_model, "input": list(texts), "encoding_format": "float"}
        data: Any = self._connection.post("embeddings", request).get("data")
        try:
            vectors = [row["embedding"] for row in sorted(data, key=lambda row: row["index"])]
        except (TypeError, KeyError) as error:
            raise ModelError(f"the model {self.embedding_model!r} answered in a form that is no embedding") from error
        if len(vectors) != len(texts):
            raise ModelError(
                f"the model {self.embedding_model!r} gave {len(vectors)} vectors for {len(texts)} texts; "
                "check what its endpoint serves"
            )
        return vectors
