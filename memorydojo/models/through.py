"""A memory system's models behind the gateway."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memorydojo._display import plain
from memorydojo.errors import ModelError

if TYPE_CHECKING:
    import httpx


class GatewayModels:
    """One chat and one embedding model, asked through the gateway. Implements `memorydojo.models.base.MemoryModels`.

    A memory system with a client or a server of its own can be given ``base_url`` and ``api_key`` instead.

    Args:
        base_url: The gateway's address for the run and the role.
        api_key: The gateway's secret.
        chat_model: Name of the chat model.
        embedding_model: Name of the embedding model.
        simulated: Whether the chat model is the offline simulator.
    """

    def __init__(self, base_url: str, api_key: str, *, chat_model: str, embedding_model: str, simulated: bool) -> None:
        self.base_url = base_url
        self.api_key = api_key
        self.chat_model = chat_model
        self.embedding_model = embedding_model
        self.simulated = simulated

    @functools.cached_property
    def _client(self) -> "httpx.Client":
        import httpx

        # The gateway keeps the timeouts of the endpoint; waiting for it must not be cut short here.
        headers = {"Authorization": f"Bearer {self.api_key}"}
        # Loopback needs no certificates either, and loading them takes as long as many calls.
        return httpx.Client(headers=headers, timeout=None, trust_env=False, verify=False)  # noqa: S113, S501

    @functools.cached_property
    def embedding_dimensions(self) -> int:
        """Length of the embedding model's vectors, measured on one text."""
        return len(self.embed(["a text"])[0])

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers one request in the form of OpenAI's chat completions; see `MemoryModels`."""
        answer = self._post("chat/completions", {**request, "model": self.chat_model})
        choices = answer.get("choices")
        if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
            raise ModelError(f"the model {self.chat_model!r} answered without choices; check what its endpoint serves")
        return answer

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embeds texts as vectors, in order; see `MemoryModels`."""
        if not texts:
            return []
        request = {"model": self.embedding_model, "input": list(texts), "encoding_format": "float"}
        data: Any = self._post("embeddings", request).get("data")
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

    def _post(self, endpoint: str, request: Mapping[str, Any]) -> dict[str, Any]:
        import httpx

        try:
            response = self._client.post(f"{self.base_url}/{endpoint}", json=request)
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ModelError(f"the model {request['model']!r} could not be asked: {error}") from error
        if response.status_code != 200:
            detail = answer.get("error") if isinstance(answer, dict) else None
            message = detail.get("message") if isinstance(detail, dict) else None
            raise ModelError(plain(str(message or f"the gateway answered {response.status_code}"), 600))
        if not isinstance(answer, dict):
            raise ModelError(f"the model {request['model']!r} answered in a form that is no JSON object")
        return answer

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()
