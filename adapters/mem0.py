"""Mem0 (mem0ai 2.2.1), in the paper's configuration: inferred facts, found by vectors, BM25 and entities together."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters import _mem0_setup
from memorydojo.adapters._mem0_prompt import native_messages, simulated_answer
from memorydojo.adapters._state import (
    MARKER,
    Guard,
    Lock,
    Rollback,
    Sessions,
    claim,
    copy_paths,
    counted_ids,
    new_copy,
    reporting,
    unicode,
)
from memorydojo.adapters._watch import checked
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot

if TYPE_CHECKING:
    from memorydojo.adapters._mem0_parts import System

_Result = TypeVar("_Result")

_USER = "user"
_STATE = ("qdrant", "history.db", Sessions.NAME)
_REMEDY = "Nothing of this session was kept; solve the cause and write it again."


class Mem0Config(AdapterConfig):
    """Settings of Mem0; the defaults are the paper's.

    Attributes:
        top_k: How many memories are delivered at most.
        threshold: Least vector similarity of a delivered memory, from 0 to 1.
        max_tokens: Longest answer of the extraction model. Mem0's own 2,000 cuts off long sessions.
        session_dates: Whether the extraction prompt names the session's day. Mem0 itself names the day on which the
            program runs, so that "yesterday" means another day in every repetition.
    """

    top_k: int = Field(default=20, ge=1)
    threshold: float = Field(default=0.1, ge=0, le=1)
    max_tokens: int = Field(default=8000, ge=1)
    session_dates: bool = True


class Mem0Adapter(MemoryAdapter):
    """Mem0's real code on an embedded qdrant store below the memory's directory.

    A write is all or nothing: if it fails, or the process dies in it, the memory is as it was before. Native ids count
    writes and entries, so that equal runs are equal: ``00000002-0000-4000-8000-000000000001`` is the first entry of
    the second write. The store is read again from disk after every write, because qdrant's vectors in memory differ
    in their last bits from the same vectors once reloaded, and a fork must not differ from the run that it left.
    """

    name = "mem0"
    packages = tuple(_mem0_setup.PACKAGES.values())
    extra = "mem0"
    Config = Mem0Config

    def __init__(self, directory: Path, models: MemoryModels, config: Mem0Config) -> None:
        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name, sqlite3.Error)
        self._sessions, self._rollback = Sessions(directory, self.name), Rollback(directory, _STATE)
        self._lock = Lock(self.name, directory)  # also while the store is closed between two writes
        try:
            self._system: System = self._start(None)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory; a write that was interrupted is undone first."""
        _mem0_setup.require_packages()
        _mem0_setup.load()
        with reporting(cls.name, "open", sqlite3.Error, RuntimeError, ValueError):
            claim(
                directory,
                cls.name,
                {
                    "mem0ai": version("mem0ai"),
                    "embedding_model": models.embedding_model,
                    "embedding_dimensions": models.embedding_dimensions,
                },
            )
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Lets Mem0 extract and store what it wants of the session."""
        with self._guard.using("write"):
            number = len(self._sessions.before(record.id)) + 1
            try:
                with self._rollback.guarding(self._system.close):
                    self._add(record, counted_ids(number))
                    self._sessions.add(record.id)
            finally:
                self._system = self._start(self._system)

    def retrieve(self, query: str) -> list[MemoryItem]:
        """What Mem0's search finds, in its order; a blank query finds nothing."""
        return [
            MemoryItem(entry_ids=(r["id"],), text=r["memory"], kind="memory", rank=rank, score=r["score"])
            for rank, r in enumerate(self.search(query))
        ]

    def search(self, query: str) -> list[dict[str, Any]]:
        """The results of Mem0's own search, with the parts of each score in ``score_details``."""
        with self._guard.using("retrieve"):
            query = unicode(query).strip()
            if not query:
                return []
            answer = self._called(
                "retrieve",
                "Check the embedding model and this memory's directory.",
                lambda: self._system.search(
                    query,
                    top_k=self._config.top_k,
                    filters={"user_id": _USER},
                    threshold=self._config.threshold,
                    rerank=False,
                    explain=True,
                ),
            )
            return list(answer["results"])

    def snapshot(self) -> Snapshot:
        """Every memory, then every entity, each in the order in which they were made."""
        with self._guard.using("snapshot"):
            return self._called("snapshot", "Restore the directory from a checkpoint.", self._snapshot)

    def checkpoint(self, target: Path) -> None:
        """Copies the files; nothing is being written meanwhile."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER, *_STATE), self._directory, partial)

    def describe(self) -> MemoryDescription:
        """Versions and settings, and what in this set-up is not as in Mem0's own."""
        dates = "the session's day" if self._config.session_dates else "the day on which the program runs"
        return MemoryDescription(
            name=self.name,
            versions={name: version(name) for name in sorted(_mem0_setup.PACKAGES.values())},
            settings={**self._config.model_dump(mode="json"), "infer": True, "rerank": False, "temperature": 0.1},
            modes={
                "vector_store": "qdrant, embedded, on disk",
                "search": "vectors, BM25 and entities",
                "reranker": "none",
                "chat_model": self._models.chat_model,
                "embedding_model": self._models.embedding_model,
                "prompt_dates": dates,
                "context_messages": "the last ten of the previous sessions",
            },
            limits=(
                "Mem0 has no role for observations; they go in as assistant messages that name the tool.",
                "Mem0 2 only adds memories; it never rewrites or removes one. Entities get new links.",
                "The last ten messages, which Mem0 keeps as context for the next extraction, are no entries: they are "
                "never delivered.",
                "BM25 runs without fastembed's own list of stop words, which would be a download; Mem0 has removed "
                "spaCy's stop words before.",
                "Native ids are counted, not random.",
            ),
            writes="The whole session, observations included, goes to a language model in one request; it answers with "
            "short self-contained facts in its own words, and exact duplicates of near memories are dropped.",
            stores="One entry for each extracted fact, with its embedding, its lemmas, its session and its time; and "
            "one entry for each named entity or topic in those facts, linked to them.",
            retrieves="Facts whose embedding is similar to the task request, ranked by similarity plus BM25 plus a "
            "boost for shared entities; facts below the similarity threshold are never found.",
            presents="The texts of the best facts, best first, up to top_k.",
        )

    def close(self) -> None:
        """Closes the database and the store, and releases the store's lock."""
        with self._guard.closing() as first:
            if first:
                self._system.close()
                self._lock.release()

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers Mem0's extraction request by stated rules; see ``docs/simulator-memory.md``."""
        return simulated_answer(request)

    def _start(self, before: "System | None") -> "System":
        from memorydojo.adapters._mem0_parts import System

        self._rollback.undo()
        return System(self._directory, self._models, self._config.max_tokens, before)

    def _add(self, record: SessionRecord, ids: Iterator[str]) -> None:
        if self._config.session_dates:
            self._system.llm.session_date = record.time.date().isoformat()
        self._called(
            "write",
            _REMEDY,
            lambda: self._system.add(
                native_messages(record.messages),
                user_id=_USER,
                metadata={"session": record.id, "created_at": record.time.isoformat()},
                infer=True,
            ),
            ids,
        )

    def _called(self, call: str, remedy: str, work: Callable[[], _Result], ids: Iterator[str] | None = None) -> _Result:
        """Runs ``work`` and raises whatever went wrong in it, also what Mem0 kept to itself."""
        problems = self._system.problems
        with _mem0_setup.calling(problems, ids):
            return checked(self.name, call, remedy, problems, work, sqlite3.Error)

    def _snapshot(self) -> Snapshot:
        entries = [
            MemoryEntry(
                id=id_,
                kind="memory",
                text=payload.pop("data"),
                metadata={**payload, "history": [_event(event) for event in self._system.history(id_)]},
            )
            for id_, payload in self._system.memories()
        ]
        entries += [
            MemoryEntry(
                id=id_,
                kind="entity",
                text=payload.pop("data"),
                links=tuple(payload.pop("linked_memory_ids")),
                metadata=payload,
            )
            for id_, payload in self._system.entities()
        ]
        return Snapshot(entries={entry.id: entry for entry in entries})


def _event(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of Mem0's history without its random id."""
    return {name: row[name] for name in ("event", "old_memory", "new_memory", "created_at", "is_deleted")}
