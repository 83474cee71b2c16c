"""The parts that Mem0 is built from: its real store, database and pipeline, with models and failures made visible.

Imports mem0ai, so it is itself imported only when a memory is opened.
"""
# ruff: noqa: E402 (mem0ai must be loaded the safe way before anything else imports it)

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from memorydojo.adapters._asking import embedded, reply_text
from memorydojo.adapters._mem0_prompt import checked_memories, dated
from memorydojo.adapters._mem0_setup import bm25_encoder, load
from memorydojo.adapters._watch import Watched, noting
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels

load()

from mem0.configs.base import MemoryConfig
from mem0.memory.main import Memory
from mem0.memory.storage import SQLiteManager
from mem0.memory.utils import extract_json, remove_code_blocks
from mem0.vector_stores.qdrant import Qdrant
from qdrant_client import QdrantClient

COLLECTION = "mem0"
ENTITIES = "mem0_entities"
_CONTEXT_MESSAGES = 10


class Chat:
    """Mem0's language model: asks the run's chat model and refuses answers that Mem0 would turn into nothing."""

    def __init__(self, models: MemoryModels, max_tokens: int, problems: list[str]) -> None:
        self._models, self._max_tokens, self._problems = models, max_tokens, problems
        self.session_date: str | None = None

    def generate_response(self, messages: Sequence[Mapping[str, str]], response_format: Mapping[str, str]) -> str:
        """Answers Mem0's extraction request with its text."""
        with noting(self._problems):
            if self.session_date is not None:
                messages = dated(messages, self.session_date)
            response = self._models.chat(
                {
                    "messages": [dict(message) for message in messages],
                    "temperature": 0.1,
                    "max_tokens": self._max_tokens,
                    "response_format": dict(response_format),
                }
            )
            text = reply_text(response)
            body = remove_code_blocks(text)
            checked_memories(body, extract_json(body))
            return text


class Embeddings:
    """Mem0's embedding model: asks the run's and checks what comes back."""

    def __init__(self, models: MemoryModels, problems: list[str]) -> None:
        self._models, self._problems = models, problems

    def embed(self, text: str, action: str) -> list[float]:
        """The vector of one text."""
        return self.embed_batch([text], action)[0]

    def embed_batch(self, texts: list[str], action: str) -> list[list[float]]:
        """The vectors of texts, in order."""
        with noting(self._problems):
            return embedded(self._models, texts, system="mem0", call="embed")


class Client(Watched):
    """An embedded qdrant client that finds the same, with the same scores, however often it searched before.

    Every search normalizes the vectors in memory once more in place, which changes their last bits, and Mem0 searches
    in several threads at once. So each search waits for its turn and starts from the vectors as they were loaded.
    """

    def __init__(self, target: QdrantClient, problems: list[str]) -> None:
        super().__init__(target, problems)
        self._lock = threading.Lock()
        self._loaded: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def remember(self) -> None:
        """Takes the vectors as they are now for those that were loaded.

        Raises:
            MemorySystemError: This version of qdrant-client keeps them elsewhere.
        """
        try:
            collections = self._target._client.collections.values()
            arrays = [array for collection in collections for array in collection.vectors.values()]
        except AttributeError as error:
            raise MemorySystemError(
                "mem0",
                "open",
                f"this version of qdrant-client is not supported ({error})",
                "Install the version named in constraints.txt.",
            ) from error
        self._loaded = [(array, array.copy()) for array in arrays]

    def query_points(self, **query: Any) -> Any:
        """One search."""
        with self._lock, noting(self._problems):
            self._restore()
            return self._target.query_points(**query)

    def query_batch_points(self, **queries: Any) -> Any:
        """Several searches, one after the other."""
        with self._lock, noting(self._problems):
            self._restore()
            return self._target.query_batch_points(**queries)

    def _restore(self) -> None:
        for array, loaded in self._loaded:
            array[...] = loaded


class Store(Qdrant):  # type: ignore[misc]
    """Mem0's own qdrant store on a shared embedded client, with BM25 that works offline or fails aloud."""

    def _get_bm25_encoder(self) -> Any:
        return _Encoder()

    def _create_filter_indexes(self) -> None:
        """Embedded qdrant has no payload indexes; Mem0 knows that only of stores that open the client themselves."""


class _Encoder:
    def embed(self, texts: list[str]) -> Iterator[Any]:
        with noting():
            return iter(list(bm25_encoder().embed(texts)))


class History(SQLiteManager):  # type: ignore[misc]
    """Mem0's own history database.

    Mem0 means to keep the last ten messages as context, but of a longer session it keeps the first ten, because it
    gives all messages of a session one time. It is therefore only given the last ten.
    """

    def save_messages(self, messages: list[dict[str, Any]], session_scope: str) -> None:
        """Keeps the last ten messages of the scope."""
        super().save_messages(messages[-_CONTEXT_MESSAGES:], session_scope)


class System(Memory):  # type: ignore[misc]
    """Mem0's `Memory` around given parts; its own constructor would build clients of vendors.

    Args:
        directory: The memory's directory.
        models: The run's models.
        max_tokens: Longest answer of the extraction model.
        before: The one that had the directory open, if there was one in this process. Its qdrant client serves again:
            making one takes several times as long as opening the store, because it copies what it knows of its types.
    """

    def __init__(self, directory: Path, models: MemoryModels, max_tokens: int, before: "System | None" = None) -> None:
        self.problems: list[str] = []
        dimensions = models.embedding_dimensions
        options: dict[str, Any] = {"force_disable_check_same_thread": True}
        if before is None:
            self._client = QdrantClient(path=str(directory / "qdrant"), **options)
        else:
            self._client = before._client
            self._client._client = type(self._client._client)(location=str(directory / "qdrant"), **options)
        try:
            client = Client(self._client, self.problems)
            self.config = MemoryConfig()
            self.embedding_model = Embeddings(models, self.problems)
            self.vector_store = Store(COLLECTION, dimensions, client=client)
            self._entity_store = Store(ENTITIES, dimensions, client=client)
            client.remember()
            self.llm = Chat(models, max_tokens, self.problems)
            self.db = Watched(History(str(directory / "history.db")), self.problems)
        except BaseException:
            self._client.close()
            raise
        self.collection_name = COLLECTION
        self.api_version = self.config.version
        self.custom_instructions = None
        self.reranker = None

    def memories(self) -> list[tuple[str, dict[str, Any]]]:
        """Every memory, id and payload, by ascending id."""
        return self._points(COLLECTION)

    def entities(self) -> list[tuple[str, dict[str, Any]]]:
        """Every entity, id and payload, by ascending id."""
        return self._points(ENTITIES)

    def _points(self, collection: str) -> list[tuple[str, dict[str, Any]]]:
        total = self._client.count(collection).count
        if not total:
            return []
        found, _ = self._client.scroll(collection, limit=total, with_payload=True, with_vectors=False)
        return [(str(point.id), dict(point.payload or {})) for point in found]

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What happened to a memory, oldest first."""
        return list(self.db.get_history(memory_id))

    def close(self) -> None:
        """Closes the history database and the store; Mem0's own close leaves the store open and locked."""
        super().close()
        self._client.close()
