"""Models that need no key and no network, behind the same protocol as real ones."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memorydojo.errors import MemoryDojoError, ModelError
from memorydojo.models.tokens import estimate_tokens
from memorydojo.simulator.embedder import EMBEDDING_DIMENSIONS, EMBEDDING_MODEL, MiniLMEmbedder

Simulate = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class SimulatedUsage:
    """What was asked of simulated models so far.

    Tokens are estimated: one for every four characters of each text, rounded up.
    """

    chat_calls: int = 0
    chat_input_tokens: int = 0
    chat_output_tokens: int = 0
    embed_calls: int = 0
    embed_input_tokens: int = 0


class SimulatedModels:
    """Chat by a memory system's own simulated model, embeddings by the local embedder.

    Implements `memorydojo.models.base.MemoryModels`. Its answers describe the simulator, never any language model.

    Args:
        simulate: Answers one chat request with an assistant message, usually a memory adapter's ``simulate``.
        embedder: The embedding model; a new one if it is not given. Share one to share its cache.
    """

    chat_model = "simulated"
    embedding_model = EMBEDDING_MODEL
    embedding_dimensions = EMBEDDING_DIMENSIONS
    simulated = True

    def __init__(self, simulate: Simulate, *, embedder: MiniLMEmbedder | None = None) -> None:
        self._simulate = simulate
        self._embedder = embedder or MiniLMEmbedder()
        self._lock = threading.Lock()
        self._usage = SimulatedUsage()

    @property
    def usage(self) -> SimulatedUsage:
        """Calls and estimated tokens so far. Calls that failed count."""
        with self._lock:
            return self._usage

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers one request in the form of OpenAI's chat completions; see `MemoryModels`.

        Raises:
            ModelError: The memory system has no simulated model for such a request.
        """
        sent = sum(estimate_tokens(str(message.get("content") or "")) for message in request["messages"])
        self._count(chat_calls=1, chat_input_tokens=sent)
        try:
            message = self._simulate(request)
        except MemoryDojoError as error:
            raise ModelError(f"the simulated memory-side model cannot answer: {error}") from error
        answered = estimate_tokens(str(message.get("content") or ""))
        self._count(chat_output_tokens=answered)
        usage = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
        return {
            "object": "chat.completion",
            "model": self.chat_model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embeds texts as unit vectors, in order."""
        self._count(embed_calls=1, embed_input_tokens=sum(map(estimate_tokens, texts)))
        return self._embedder.embed(texts)

    def _count(self, **more: int) -> None:
        with self._lock:
            self._usage = replace(self._usage, **{k: getattr(self._usage, k) + n for k, n in more.items()})
