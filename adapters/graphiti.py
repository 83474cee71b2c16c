"""Graphiti (graphiti-core 0.31.2), in the paper's configuration: one episode a session, relation facts delivered."""

from collections.abc import Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters import _graphiti_setup
from memorydojo.adapters._graphiti_prompt import episode_text, simulated_answer
from memorydojo.adapters._graphiti_store import GRAPH_FILE
from memorydojo.adapters._state import MARKER, Guard, Lock, claim, copy_paths, new_copy, reporting, unicode
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryItem, SessionRecord, Snapshot

if TYPE_CHECKING:
    from memorydojo.adapters._graphiti_graph import Fact

_Result = TypeVar("_Result")

_REMEDY = "Nothing of this session was kept; solve the cause and write it again."


class GraphitiConfig(AdapterConfig):
    """Settings of Graphiti; the defaults are the paper's where it names them.

    Attributes:
        top_k: How many facts are delivered at most.
        reranker: Who orders the facts that the hybrid search found. ``"scores"``: the chat model gives each a score
            from 0 to 100, as Graphiti's reranker for models without logprobs asks it. ``"logprobs"``: the chat model's
            probability that each is relevant, as Graphiti's reranker for OpenAI asks it; an error if it gives none.
            ``"rrf"``: no model; the ranks of the searches are fused.
        source: How a session goes in: ``"message"``, a conversation with named speakers, or ``"text"``.
        expired_facts: Whether facts that were found to hold no longer are delivered, each marked as such. Graphiti
            delivers them unmarked.
        max_tokens: Longest answer of the chat model.
        concurrency: How many requests to models are under way at most.
    """

    top_k: int = Field(default=10, ge=1)
    reranker: Literal["scores", "logprobs", "rrf"] = "scores"
    source: Literal["message", "text"] = "message"
    expired_facts: bool = True
    max_tokens: int = Field(default=16384, ge=1)
    concurrency: int = Field(default=10, ge=1)


class GraphitiAdapter(MemoryAdapter):
    """Graphiti's real code on a FalkorDB server of the memory's own.

    A write is all or nothing: if it fails, or the process dies in it, the memory is as it was before. Native ids count
    writes and entries, and times are those of the sessions, so that equal runs are equal.
    """

    name = "graphiti"
    packages = tuple(_graphiti_setup.PACKAGES.values())
    extra = "graphiti"
    Config = GraphitiConfig

    def __init__(self, directory: Path, models: MemoryModels, config: GraphitiConfig) -> None:
        from memorydojo.adapters._graphiti_graph import Graph

        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name)
        self._lock = Lock(self.name, directory)
        try:
            self._graph = Graph(directory, models, config)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory and starts its server."""
        _graphiti_setup.require_packages()
        _graphiti_setup.load()
        with reporting(cls.name, "open"):
            claim(
                directory,
                cls.name,
                {
                    "graphiti_core": version("graphiti-core"),
                    "embedding_model": models.embedding_model,
                    "embedding_dimensions": models.embedding_dimensions,
                },
            )
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Lets Graphiti read the session as one episode and bring its graph up to date."""
        with self._guard.using("write"):
            written = self._called("write", _REMEDY, self._graph.sessions())
            if record.id in written:
                raise MemorySystemError(
                    self.name, "write", f"session {record.id!r} is already stored", "Give each session its own id."
                )
            try:
                text = unicode(episode_text(record.messages))
                self._called("write", _REMEDY, self._graph.add(record, text, len(written) + 1))
                self._called("write", _REMEDY, self._graph.save())
                self._graph.keep()
            except BaseException:
                self._graph.undo()
                raise

    def retrieve(self, query: str) -> list[MemoryItem]:
        """The facts that Graphiti's hybrid search finds, as its reranker orders them; none for a blank query."""
        with self._guard.using("retrieve"):
            query = unicode(query).strip()
            if not query:
                return []
            facts = self._called("retrieve", "Check the models and this memory's directory.", self._graph.find(query))
            return [
                MemoryItem(entry_ids=fact.ids, text=_delivered(fact), kind="fact", rank=rank, score=fact.score)
                for rank, fact in enumerate(facts)
            ]

    def snapshot(self) -> Snapshot:
        """Every episode, entity and fact, expired ones included, each kind in the order in which they were made."""
        with self._guard.using("snapshot"):
            entries = self._called("snapshot", "Restore the directory from a checkpoint.", self._graph.entries())
            return Snapshot(entries={entry.id: entry for entry in entries})

    def checkpoint(self, target: Path) -> None:
        """Copies the graph's file, which holds all that was written."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER, GRAPH_FILE), self._directory, partial)

    def describe(self) -> MemoryDescription:
        """Versions, settings and modes, and what in this set-up is not as in Graphiti's own."""
        return MemoryDescription(
            name=self.name,
            versions={name: version(name) for name in sorted(self.packages)},
            settings=self._config.model_dump(mode="json"),
            modes={},
            limits=(),
            writes="x",
            stores="x",
            retrieves="x",
            presents="x",
        )

    def close(self) -> None:
        """Ends the server and its threads, and lets others in."""
        with self._guard.closing() as first:
            if first:
                self._graph.close()
                self._lock.release()

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers Graphiti's own requests by stated rules; see ``docs/simulator-memory.md``."""
        return simulated_answer(request)

    def _called(self, call: str, remedy: str, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs ``work`` and raises whatever went wrong in it, also what Graphiti kept to itself."""
        problems = self._graph.models.problems
        problems.clear()
        try:
            result = self._graph.run(work)
        except Exception as error:  # Graphiti raises what its parts raise, its own kinds and bare ones
            found = "; ".join(dict.fromkeys(problems)) or f"{type(error).__name__}: {error}"
            raise MemorySystemError(self.name, call, found, remedy) from error
        if problems:
            raise MemorySystemError(self.name, call, "; ".join(dict.fromkeys(problems)), remedy)
        return result


def _delivered(fact: "Fact") -> str:
    return fact.text if fact.ended is None else f"{fact.text} (no longer true since {fact.ended})"
