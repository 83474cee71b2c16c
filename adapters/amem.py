"""A-MEM (a-mem 0.2.6), in the paper's configuration: one linked note a session, agentic search, five notes."""

import uuid
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters import _amem_setup
from memorydojo.adapters._amem_prompt import simulated_answer
from memorydojo.adapters._state import (
    MARKER,
    Guard,
    Lock,
    Rollback,
    Sessions,
    claim,
    copy_paths,
    new_copy,
    reporting,
    unicode,
)
from memorydojo.adapters._watch import calling, checked
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot

if TYPE_CHECKING:
    from memorydojo.adapters._amem_parts import Note, System

_Result = TypeVar("_Result")

_STATE = ("chroma", Sessions.NAME)
_NAMESPACE = uuid.UUID("6f0f5b0c-2d53-4a0f-9a35-3c1f6f0c8a4e")
_RESTORE = "Restore the directory from a checkpoint, or start with an empty one."
_REMEDY = "Nothing of this session was kept; solve the cause and write it again."


class AMemConfig(AdapterConfig):
    """Settings of A-MEM; the defaults are the paper's.

    Attributes:
        top_k: How many notes are delivered at most, linked neighbours included.
        primaries: How many of them may be direct hits of the search. None, as in A-MEM itself, lets them take every
            place, so that linked neighbours are never delivered; fewer than ``top_k`` is an ablation.
    """

    top_k: int = Field(default=5, ge=1)
    primaries: int | None = Field(default=None, ge=1)


class AMemAdapter(MemoryAdapter):
    """A-MEM's real code on a Chroma store below the memory's directory.

    A write is all or nothing: if it fails, or the process dies in it, the memory is as it was before. A note's id is
    made from its session's, so that equal runs are equal. The store is opened again after every write, so that a fork,
    which starts from the files, does not differ from the run that it left. Search is exact for the same reason.
    """

    name = "a-mem"
    packages = tuple(_amem_setup.PACKAGES.values())
    extra = "a-mem"
    install = _amem_setup.INSTALL
    Config = AMemConfig

    def __init__(self, directory: Path, models: MemoryModels, config: AMemConfig) -> None:
        self._directory, self._models, self._config = directory, models, config
        self._guard, self._problems = Guard(self.name), list[str]()
        self._sessions, self._rollback = Sessions(directory, self.name), Rollback(directory, _STATE)
        self._lock = Lock(self.name, directory)
        try:
            self._system: System = self._start()
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory; a write that was interrupted is undone first."""
        _amem_setup.require_packages()
        _amem_setup.load()
        with reporting(cls.name, "open", RuntimeError, ValueError):
            claim(
                directory,
                cls.name,
                {
                    "a-mem": version("a-mem"),
                    "embedding_model": models.embedding_model,
                    "embedding_dimensions": models.embedding_dimensions,
                },
            )
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Lets A-MEM add the session as a note, analyse it, link it and rewrite its neighbours."""
        with self._guard.using("write"):
            self._sessions.before(record.id)
            self._called("write", _RESTORE, lambda: self._check_count(self._system))
            try:
                with self._rollback.guarding(self._system.close):
                    self._called("write", _REMEDY, lambda: self._add(record))
            finally:
                self._system = self._start()

    def retrieve(self, query: str) -> list[MemoryItem]:
        """The notes that A-MEM's agentic search finds, in its order; a blank query finds nothing."""
        with self._guard.using("retrieve"):
            query = unicode(query).strip()
            if not query:
                return []
            return self._called(
                "retrieve", "Check the embedding model and this memory's directory.", lambda: self._retrieve(query)
            )

    def snapshot(self) -> Snapshot:
        """Every note, in the order in which the sessions were written."""
        with self._guard.using("snapshot"):
            return self._called("snapshot", _RESTORE, self._snapshot)

    def checkpoint(self, target: Path) -> None:
        """Copies the files; nothing is being written meanwhile."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER, *_STATE), self._directory, partial)

    def describe(self) -> MemoryDescription:
        """Versions and settings, and what in this set-up is not as in A-MEM's own."""
        expands = self._config.primaries is not None and self._config.primaries < self._config.top_k
        neighbours = (
            f"ablation: at most {self._config.primaries} direct hits, the other places are for linked neighbours"
            if expands
            else "native: direct hits take every place, linked neighbours are never delivered"
        )
        return MemoryDescription(
            name=self.name,
            versions={name: version(name) for name in ("a-mem", "chromadb")},
            settings={**self._config.model_dump(mode="json"), "temperature": 0.1, "evolution_neighbours": 5},
            modes={
                "vector_store": "Chroma, embedded, on disk",
                "vector_search": "exact, cosine distance",
                "search": "agentic note search",
                "neighbours": neighbours,
                "note_cache": "off",
                "chat_model": self._models.chat_model,
                "embedding_model": self._models.embedding_model,
            },
            limits=(
                "A-MEM's agentic search takes its k best notes first and cuts neighbours off beyond k, so in native "
                "mode linked neighbours are never delivered.",
                "A note's embedding covers its session first and its metadata last; an embedding model that cuts long "
                "texts off never sees the metadata of a long session.",
                "Vector search is exact, where Chroma's own is approximate and differs from one opening to the next.",
                "The score of an item is a cosine distance: less is nearer.",
                "Evolution rewrites the context and tags of neighbours and the links and tags of the new note, never "
                "the content of a note. Links go from new notes to old ones.",
                "Links are stored as the model writes them; some may name no note.",
                "Text of sessions is not escaped in A-MEM's requests and can imitate the rows of neighbours.",
                "When A-MEM last read a note, and how often, is not part of the snapshot; nothing depends on it.",
                "Note ids are made from session ids, not random.",
            ),
            writes="Each session goes in as one prose note, observations included. A language model derives keywords, "
            "a one-sentence context and tags from it. Then it sees the new note with its five nearest notes in full, "
            "links the new note to some of them, and may rewrite their contexts and tags.",
            stores="One note a session: the session word for word, with context, keywords, tags and links to older "
            "notes, and one embedding of all of it but the links.",
            retrieves="The notes whose embedding is nearest to the task request, nearest first; nothing is left out "
            "for being far.",
            presents="Up to top_k notes: the full text of each session, then its context, keywords and tags.",
        )

    def close(self) -> None:
        """Closes the store and releases the lock."""
        with self._guard.closing() as first:
            if first:
                self._system.close()
                self._lock.release()

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers A-MEM's analysis and evolution requests by stated rules; see ``docs/simulator-memory.md``."""
        return simulated_answer(request)

    def _start(self) -> "System":
        from memorydojo.adapters._amem_parts import System

        self._rollback.undo()
        system = self._called("open", _RESTORE, lambda: System(self._directory, self._models, self._problems))
        try:
            self._called("open", _RESTORE, lambda: self._check_count(system))
        except BaseException:
            system.close()
            raise
        return system

    def _check_count(self, system: "System") -> None:
        """A-MEM finds nothing in a store that has lost its notes, and says nothing."""
        stored, written = system.count(), len(self._sessions.written())
        if stored != written:
            raise ValueError(f"the store holds {stored} notes of {written} sessions")

    def _called(self, call: str, remedy: str, work: Callable[[], _Result]) -> _Result:
        """Runs ``work`` and raises whatever went wrong in it, also what A-MEM kept to itself."""
        _amem_setup.PROCESS.use(call)
        with calling(_amem_setup.LOGGER, self._problems):
            return checked(self.name, call, remedy, self._problems, work)

    def _add(self, record: SessionRecord) -> None:
        self._system.add_note(unicode(record.transcript()), time=f"{record.time:%Y%m%d%H%M}", id=_note_id(record.id))
        self._sessions.add(record.id)
        self._check_count(self._system)

    def _retrieve(self, query: str) -> list[MemoryItem]:
        self._check_count(self._system)
        found = self._system.found(query, self._config.top_k, self._config.primaries)
        notes = self._system.notes(result["id"] for result in found)
        hits = [result["id"] for result in found if not result["is_neighbor"]]
        return [
            MemoryItem(
                entry_ids=(id_,),
                text=notes[id_].delivered(),
                kind="note",
                route="linked" if result["is_neighbor"] else "primary",
                via=_leading(id_, hits, notes) if result["is_neighbor"] else None,
                rank=rank,
                score=result.get("score"),
            )
            for rank, result in enumerate(found)
            for id_ in (result["id"],)
        ]

    def _snapshot(self) -> Snapshot:
        self._check_count(self._system)
        notes = self._system.notes()
        return Snapshot(
            entries={
                id_: _entry(id_, session, notes[id_])
                for session in self._sessions.written()
                for id_ in (_note_id(session),)
            }
        )


def _note_id(session: str) -> str:
    """A-MEM's own ids are random; these look alike and are the same in equal runs."""
    return str(uuid.uuid5(_NAMESPACE, session))


def _leading(id_: str, hits: list[str], notes: "Mapping[str, Note]") -> str:
    """The direct hit that led to a neighbour: the first one that links to it, as in A-MEM's search."""
    return next(hit for hit in hits if id_ in notes[hit].fields["links"])


def _entry(id_: str, session: str, note: "Note") -> MemoryEntry:
    shown = ("timestamp", "context", "keywords", "tags", "category", "evolution_history")
    return MemoryEntry(
        id=id_,
        kind="note",
        text=note.text(),
        links=tuple(note.fields["links"]),
        metadata={"session": session, **{name: note.fields[name] for name in shown}},
    )
