"""The parts that A-MEM is built from: its real code and Chroma, with models and failures made visible.

Imports a-mem, so it is itself imported only when a memory is opened.
"""
# ruff: noqa: E402 (a-mem must be loaded the safe way before anything else imports it)

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memorydojo.adapters._amem_prompt import checked_answer
from memorydojo.adapters._amem_setup import built_from, load
from memorydojo.adapters._asking import embedded, reply_text
from memorydojo.adapters._watch import Watched, stopping
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels

load()

import chromadb
from agentic_memory.llm_controller import OpenAIController
from agentic_memory.memory_system import AgenticMemorySystem
from agentic_memory.retrievers import ChromaRetriever
from chromadb.config import Settings

STORE = "chroma"
TEMPERATURE = 0.1
_COLUMNS = ("metadatas", "documents")


class Chat(OpenAIController):  # type: ignore[misc]
    """A-MEM's own OpenAI controller on the run's chat model; it refuses answers that A-MEM would turn into nothing.

    A-MEM's prompts go out as they are. Its temperature of 1.0 is replaced by the paper's 0.1.
    """

    def __init__(self, models: MemoryModels, problems: list[str]) -> None:
        self._models, self._problems = models, problems
        self.model = models.chat_model
        self.client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=self._create)))

    def get_completion(self, prompt: str, response_format: Mapping[str, Any], temperature: float = TEMPERATURE) -> str:
        """The answer to one of A-MEM's requests, as JSON that A-MEM can use."""
        with stopping(self._problems):
            text = super().get_completion(prompt, response_format, TEMPERATURE)
            return json.dumps(checked_answer(text, response_format), ensure_ascii=False)

    def _create(self, *, model: str, **request: Any) -> Any:
        text = reply_text(self._models.chat(request))
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])


class Embeddings(chromadb.EmbeddingFunction[list[str]]):  # type: ignore[misc]
    """Chroma's embedding function: asks the run's embedding model and checks what comes back.

    Args:
        models: The run's models; None for the function that Chroma rebuilds for itself and never calls.
        problems: Where failures are noted.
    """

    def __init__(self, models: MemoryModels | None, problems: list[str]) -> None:
        self._models, self._problems = models, problems

    def __call__(self, input: list[str]) -> list[NDArray[np.float32]]:
        """The vectors of texts, in order."""
        with stopping(self._problems):
            if self._models is None:
                raise MemorySystemError("a-mem", "embed", "Chroma has lost the run's models", "Open the memory again.")
            vectors = embedded(self._models, list(input), system="a-mem", call="embed")
            return [np.array(vector, dtype=np.float32) for vector in vectors]

    @staticmethod
    def name() -> str:
        """The name that Chroma keeps with the collection. Which model it is, ``memory.json`` says."""
        return "memorydojo"

    def get_config(self) -> dict[str, Any]:
        """Nothing: the models belong to the run."""
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> "Embeddings":
        """A function without models; Chroma takes one that cannot be rebuilt for out of date."""
        return Embeddings(None, [])

    def default_space(self) -> str:
        """Cosine distance, as of the sentence transformers that A-MEM uses by default."""
        return "cosine"

    def supported_spaces(self) -> list[str]:
        """Cosine distance only."""
        return ["cosine"]


class Store(Watched):
    """A-MEM's Chroma collection, with exact search in place of Chroma's approximate one.

    Chroma builds its index again whenever it is opened, in an order of its own: equally near notes change places, and
    among many alike notes it finds fewer than are asked for. Here the nearest are counted out over the vectors that
    Chroma keeps; of equally near notes the one with the lesser id comes first.

    A-MEM reads each note that a search found, and each one that it links to, by a request of its own. Here the search
    reads them all at once; they are kept until the next search, each until it is changed. Nobody else has the store
    open.

    Args:
        collection: The collection.
        embeddings: The embedding function of the queries.
        problems: Where failures are noted.
    """

    def __init__(self, collection: Any, embeddings: Embeddings, problems: list[str]) -> None:
        super().__init__(collection, problems, stopping)
        self._embeddings = embeddings
        self._kept: dict[str, tuple[dict[str, Any], str] | None] = {}

    def __getattr__(self, name: str) -> Any:
        """A method of the collection that may change notes."""
        method = super().__getattr__(name)

        def changing(*args: Any, **options: Any) -> Any:
            for id_ in options.get("ids", list(self._kept)):
                self._kept.pop(id_, None)
            return method(*args, **options)

        return changing

    def count(self) -> int:
        """How many notes there are."""
        return int(super().__getattr__("count")())

    def get(self, ids: list[str] | None = None, include: Iterable[str] = _COLUMNS) -> dict[str, Any]:
        """Chroma's own answer, or the same from the notes that are kept."""
        if ids is None or not self._kept.keys() >= set(ids) or set(include) != set(_COLUMNS):
            return dict(super().__getattr__("get")(ids=ids, include=list(include)))
        found = {id_: note for id_ in ids if (note := self._kept[id_]) is not None}
        return {
            "ids": list(found),
            "metadatas": [dict(metadata) for metadata, _ in found.values()],  # A-MEM changes what it is given
            "documents": [document for _, document in found.values()],
        }

    def _keep(self, ids: list[str]) -> None:
        """Reads and keeps notes, also which of them do not exist."""
        rows = self.get(ids=ids)
        found = zip(rows["ids"], rows["metadatas"], rows["documents"], strict=True)
        self._kept |= dict.fromkeys(ids) | {id_: (metadata, document) for id_, metadata, document in found}

    def query(self, query_texts: list[str], n_results: int) -> dict[str, Any]:
        """The nearest notes to the one query, in the form of Chroma's own answer."""
        (query,) = (vector.astype(np.float64) for vector in self._embeddings(query_texts))
        stored = self.get(include=["embeddings"])
        vectors = np.asarray(stored["embeddings"], dtype=np.float64)
        # Row by row, not as a matrix product: its last bits depend on how many rows there are.
        cosines = (vectors * query).sum(axis=1) / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
        nearest = sorted(zip((1 - cosines).tolist(), stored["ids"], strict=True))[:n_results]
        ids = [id_ for _, id_ in nearest]
        self._kept.clear()
        self._keep(ids)
        rows = self.get(ids)
        links = {link for metadata in rows["metadatas"] for link in json.loads(metadata["links"])}
        self._keep(sorted(links - self._kept.keys()))
        return {
            "ids": [rows["ids"]],
            "distances": [[distance for distance, _ in nearest]],
            **{name: [rows[name]] for name in _COLUMNS},
        }


class Retriever(ChromaRetriever):  # type: ignore[misc]
    """A-MEM's own retriever on a Chroma client that reads no ``.env`` and sends no telemetry.

    Attributes:
        most: How many results a search gives at most, whatever is asked for; None for no limit.
    """

    def __init__(self, path: Path, embeddings: Embeddings, problems: list[str]) -> None:
        self.most: int | None = None
        self.persist_directory = str(path)
        self.embedding_function = embeddings
        # Constructed without validation, because validation also reads the environment and a file `.env`.
        settings = Settings.model_construct(anonymized_telemetry=False, is_persistent=True, persist_directory=str(path))
        self.client = chromadb.PersistentClient(str(path), settings)
        try:
            collection = self.client.get_or_create_collection("memories", embedding_function=embeddings)
        except BaseException:
            self.client.close()
            raise
        self.collection = Store(collection, embeddings, problems)

    def search(self, query: str, k: int = 5) -> dict[str, Any]:
        """A-MEM's own search."""
        return dict(super().search(query, k if self.most is None else min(k, self.most)))


@dataclass(frozen=True)
class Note:
    """One note as Chroma keeps it.

    Attributes:
        fields: A-MEM's fields; lists as lists, the rest as text.
        copies: The document and the copy of it in the metadata, where they hold anything else than the fields.
    """

    fields: dict[str, Any]
    copies: tuple[str, ...]

    def text(self) -> str:
        """Everything of the note in which content can survive."""
        parts = [self.fields["content"], self.metadata_text()]
        if self.fields["category"] != "Uncategorized":
            parts.append(f"Category: {self.fields['category']}")
        if self.fields["evolution_history"]:
            parts.append(f"History: {self.fields['evolution_history']}")
        return "\n\n".join([*parts, *(f"Embedded as: {copy}" for copy in self.copies)])

    def delivered(self) -> str:
        """The note as the agent gets it."""
        return f"{self.fields['content']}\n\n{self.metadata_text()}"

    def metadata_text(self) -> str:
        """The metadata that the model wrote, a line each."""
        lists = {name: ", ".join(map(str, self.fields[name])) for name in ("keywords", "tags")}
        return f"Context: {self.fields['context']}\nKeywords: {lists['keywords']}\nTags: {lists['tags']}"


class System(AgenticMemorySystem):  # type: ignore[misc]
    """A-MEM's `AgenticMemorySystem` on the run's models and a Chroma store in ``directory``.

    Its cache of notes is off: a note from the cache is not always what a reopened store would give, and a fork must
    not differ from the run that it left.

    Args:
        directory: The memory's directory.
        models: The run's models.
        problems: Where failures of the models and the store are noted.
    """

    def __init__(self, directory: Path, models: MemoryModels, problems: list[str]) -> None:
        chat, embeddings = Chat(models, problems), Embeddings(models, problems)
        retriever = Retriever(directory / STORE, embeddings, problems)
        try:
            with built_from(ChromaRetriever=lambda **_: retriever, LLMController=lambda *_: SimpleNamespace(llm=chat)):
                super().__init__(storage_path=retriever.persist_directory, enable_cache=False)
        except BaseException:
            retriever.client.close()
            raise

    def found(self, query: str, k: int, primaries: int | None) -> list[dict[str, Any]]:
        """What A-MEM's agentic search finds.

        Args:
            query: The query.
            k: How many results, linked neighbours included.
            primaries: How many of them may be direct hits; None for all.
        """
        self.retriever.most = primaries
        try:
            return list(self.search_agentic(query, k))
        finally:
            self.retriever.most = None

    def count(self) -> int:
        """How many notes there are."""
        return int(self.retriever.collection.count())

    def notes(self, ids: Iterable[str] | None = None) -> dict[str, Note]:
        """Notes by id, all of them by default."""
        wanted = None if ids is None else list(ids)
        if wanted == []:
            return {}
        rows = self.retriever.collection.get(ids=wanted, include=["metadatas", "documents"])
        return {
            id_: _note(metadata, document)
            for id_, metadata, document in zip(rows["ids"], rows["metadatas"], rows["documents"], strict=True)
        }

    def close(self) -> None:
        """Closes the store. A-MEM itself has no close, and Chroma would go on with files that are replaced."""
        self.retriever.client.close()


def _note(metadata: Mapping[str, str], document: str) -> Note:
    lists = ("keywords", "links", "tags", "evolution_history")
    fields = {name: json.loads(value) if name in lists else value for name, value in metadata.items()}
    enhanced = fields.pop("enhanced_content")
    expected = fields["content"]
    if fields["context"] != "General":
        expected += f" context: {fields['context']}"
    for name in ("keywords", "tags"):
        if fields[name]:
            expected += f" {name}: {', '.join(fields[name])}"
    return Note(fields, tuple(dict.fromkeys(copy for copy in (document, enhanced) if copy != expected)))
