"""Graphiti (graphiti-core 0.31.2), in the paper's configuration: one episode a session, relation facts delivered."""

from collections.abc import Callable, Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters import _graphiti_setup
from memorydojo.adapters._graphiti_prompt import episode_text, simulated_answer
from memorydojo.adapters._state import MARKER, Guard, Lock, claim, copy_paths, new_copy, reporting, unicode
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryItem, SessionRecord, Snapshot

if TYPE_CHECKING:
    from memorydojo.adapters._graphiti_graph import Fact

_Result = TypeVar("_Result")

_SCHEMES = ("falkor", "falkors", "redis", "rediss", "unix")
_SEARCHES = ("BM25, embeddings and neighbours in the graph", "BM25 and embeddings")
_RERANKERS = {
    "scores": "the chat model's score from 0 to 100 for each fact",
    "logprobs": "the chat model's probability that each fact is relevant",
    "rrf": "none; reciprocal rank fusion of the searches",
}
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
        structured_output: How the form of an answer is asked for: ``"json_schema"``, or ``"json_object"`` with the
            form in the prompt, for models that do not take the first.
        max_tokens: Longest answer of the chat model.
        concurrency: How many requests to models are under way at most.
        server: Address of a FalkorDB server that somebody else runs, for example ``redis://127.0.0.1:6379``; None for
            one of the memory's own. User and password come from the environment (``MEMORYDOJO_FALKORDB_USER``,
            ``MEMORYDOJO_FALKORDB_PASSWORD``), since settings are saved with every run.
    """

    top_k: int = Field(default=10, ge=1)
    reranker: Literal["scores", "logprobs", "rrf"] = "scores"
    source: Literal["message", "text"] = "message"
    expired_facts: bool = True
    structured_output: Literal["json_schema", "json_object"] = "json_schema"
    max_tokens: int = Field(default=16384, ge=1)
    concurrency: int = Field(default=10, ge=1)
    server: str | None = None

    @field_validator("server")
    @classmethod
    def _check_server(cls, server: str | None) -> str | None:
        if server is None:
            return None
        parts = urlsplit(server)
        if parts.scheme not in _SCHEMES:
            raise ValueError(
                f"server must begin with one of {', '.join(f'{scheme}://' for scheme in _SCHEMES)}; it has to be a "
                "FalkorDB server, since a memory in Neo4j could neither be forked nor undone"
            )
        if "@" in parts.netloc or "password" in parts.query:
            raise ValueError(
                "server must hold no user and no password, since settings are saved with every run; set "
                "MEMORYDOJO_FALKORDB_USER and MEMORYDOJO_FALKORDB_PASSWORD"
            )
        return server


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
        from memorydojo.adapters._graphiti_store import open_graph

        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name)
        self._lock = Lock(self.name, directory)
        try:
            self._graph = open_graph(directory, models, config)
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
                    "server": "own" if config.server is None else "other",
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
                self._checked("write", _REMEDY, self._graph.begin)
                text = unicode(episode_text(record.messages))
                self._called("write", _REMEDY, self._graph.add(record, text, len(written) + 1))
                self._checked("write", _REMEDY, self._graph.keep)
            except BaseException:
                self._checked("write", "Open the directory again.", self._graph.undo)
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
            copy_paths((MARKER,), self._directory, partial)
            self._checked("checkpoint", "Check the disk and the server.", lambda: self._graph.checkpoint(partial))

    def describe(self) -> MemoryDescription:
        """Versions, settings and modes, and what in this set-up is not as in Graphiti's own."""
        return MemoryDescription(
            name=self.name,
            versions={**{name: version(name) for name in sorted(self.packages)}, **self._graph.versions},
            settings={**self._config.model_dump(mode="json"), "temperature": 0.1, "reranker_temperature": 0.0},
            modes={
                "server": self._graph.server,
                "search": _SEARCHES[self._config.reranker == "rrf"],
                "reranker": _RERANKERS[self._config.reranker],
                "chat_model": self._models.chat_model,
                "embedding_model": self._models.embedding_model,
                "telemetry": "off",
            },
            limits=(
                "Graphiti's reranker for OpenAI needs logprobs, which reasoning models do not give; the default one "
                "here asks the question of Graphiti's reranker for Gemini.",
                "Graphiti delivers facts that no longer hold like any other; here they are marked, or left out if "
                "expired_facts is false.",
                "Of facts with the same text Graphiti delivers one; the item names all of them.",
                "Graphiti drops the search by words for long texts; here it uses the first 512 different words.",
                "One model answers all of Graphiti's requests; it would give the simpler ones to a smaller model.",
                "An answer in a wrong form is an error at once; Graphiti would ask up to four times.",
                "Known upstream: unrelated facts may retire each other (getzep/graphiti issue 1728), and summaries "
                "keep facts that were retired.",
                "Communities and custom types of entities and facts are not used.",
                "Native ids are counted, not random; times are those of the sessions.",
                "NUL characters do not survive in the database.",
            ),
            writes="Each session goes in whole, observations included, as one episode. A language model names the "
            "entities in it, then the facts that join two of them, in its own words and with dates; it is shown the "
            "last ten episodes. It then says which entities and facts are known already and which known facts the new "
            "ones contradict; those are kept, and marked as expired.",
            stores="The episode word for word; an entry for each entity with a summary, which holds its facts as they "
            "are until it grows long; an entry for each fact with its two entities, its episodes, its dates and an "
            "embedding.",
            retrieves="Only facts are found: by BM25 over their words, by similarity of their embedding to the task "
            "request, and along the graph from those; a model then orders them by relevance to the request. Episodes "
            "and summaries are never found.",
            presents="The texts of the best facts, best first, up to top_k; a fact that no longer holds says so.",
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
        """Runs ``work`` in the graph's loop; see `_checked`."""
        return self._checked(call, remedy, lambda: self._graph.run(work))

    def _checked(self, call: str, remedy: str, work: Callable[[], _Result]) -> _Result:
        """Does ``work`` and raises whatever went wrong in it, also what Graphiti kept to itself."""
        problems = self._graph.models.problems
        problems.clear()
        try:
            result = work()
        except (MemorySystemError, OSError):
            raise
        except Exception as error:  # Graphiti raises what its parts raise, its own kinds and bare ones
            found = [*problems] or [f"{type(error).__name__}: {error}"]
            if trouble := self._graph.trouble():
                found.append(trouble)
            raise MemorySystemError(self.name, call, "; ".join(dict.fromkeys(found)), remedy) from error
        if problems:
            raise MemorySystemError(self.name, call, "; ".join(dict.fromkeys(problems)), remedy)
        return result


def _delivered(fact: "Fact") -> str:
    return fact.text if fact.ended is None else f"{fact.text} (no longer true since {fact.ended})"
