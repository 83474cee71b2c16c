"""Memora: an engine of this project's own after the published algorithm (arXiv 2602.03315), in the paper's setting.

Microsoft's own client (github.com/microsoft/Memora) is on no package registry and is not used here.
"""

import hashlib
import importlib.util
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters._memora_search import BM25, RRF_K, WEIGHTS, Found, Search, SearchSettings
from memorydojo.adapters._memora_simulated import simulated_answer
from memorydojo.adapters._memora_store import Contents, Store
from memorydojo.adapters._memora_talk import Talk
from memorydojo.adapters._memora_write import WriteSettings, planned
from memorydojo.adapters._state import MARKER, Guard, claim, copy_paths, new_copy, reporting, unicode
from memorydojo.errors import MemorySystemError, MissingPackageError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot

#: The state of the published description that the engine follows; another one is another memory.
_ENGINE = "arXiv 2602.03315, prompted policy"


class MemoraConfig(AdapterConfig):
    """Settings of Memora; the defaults are the paper's.

    Attributes:
        top_k: Most facts of one search, and most facts that the search by index gives to the fusion.
        hybrid_top_k: Most facts that BM25 gives to the fusion.
        cue_top_k: Most cues that are followed to their facts.
        max_steps: Most steps of the retrieval policy; 0 leaves it out.
        episodic: Whether facts bring the episodes that they come from.
        update_threshold: Least cosine of two indices, from -1 to 1, at which an update is considered.
        update_candidates: How many similar facts an update can choose from.
        attempts: How often the chat model is asked until its answer has the right form.
        max_tokens: Longest answer of the chat model.
    """

    top_k: int = Field(default=10, ge=1)
    hybrid_top_k: int = Field(default=10, ge=1)
    cue_top_k: int = Field(default=20, ge=1)
    max_steps: int = Field(default=4, ge=0)
    episodic: bool = True
    update_threshold: float = Field(default=0.8, ge=-1, le=1)
    update_candidates: int = Field(default=5, ge=1)
    attempts: int = Field(default=3, ge=1)
    max_tokens: int = Field(default=8000, ge=1)


class MemoraAdapter(MemoryAdapter):
    """Episodes, facts and cues in one SQLite file below the memory's directory.

    A write asks all its questions first and then stores everything in one transaction. Ids count writes and entries,
    so that equal runs are equal: ``fact-0002-001`` is the first fact that the second write made. A fact that is
    updated keeps its id and its history.
    """

    name = "memora"
    packages = ("bm25s",)
    extra = "memora"
    Config = MemoraConfig

    def __init__(self, directory: Path, models: MemoryModels, config: MemoraConfig) -> None:
        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name, sqlite3.Error)
        self._store = Store(directory)

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory; what an interrupted write left behind is rolled back by SQLite."""
        if importlib.util.find_spec("bm25s") is None:
            raise MissingPackageError("bm25s", "the memory system 'memora'", "memora")
        with reporting(cls.name, "open", sqlite3.Error):
            claim(
                directory,
                cls.name,
                {
                    "engine": _ENGINE,
                    "embedding_model": models.embedding_model,
                    "embedding_dimensions": models.embedding_dimensions,
                },
            )
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Stores the session as an episode, its facts, and their cues; or rewrites facts that it updates."""
        with self._guard.using("write"):
            if self._store.has_session(record.id):
                raise MemorySystemError(
                    self.name, "write", f"session {record.id!r} is already stored", "Give each session its own id."
                )
            settings = WriteSettings(self._config.update_threshold, self._config.update_candidates)
            self._store.apply(planned(record, self._store.contents(), talk=self._talk("write"), settings=settings))

    def retrieve(self, query: str) -> list[MemoryItem]:
        """The episodes of the facts that were found, then the facts; a blank query finds nothing.

        A fact's route is ``primary`` if it was found by its index or its words, and ``linked`` (via the cue) if a cue
        led to it. An episode's route is ``episodic`` (via the best fact that comes from it).
        """
        with self._guard.using("retrieve"):
            query = unicode(query).strip()
            if not query:
                return []
            contents = self._store.contents()
            config = self._config
            budgets = SearchSettings(config.top_k, config.hybrid_top_k, config.cue_top_k, config.max_steps)
            found = Search(contents, self._talk("retrieve"), budgets).run(query)
            items = [*(_episodes(found, contents) if config.episodic else ()), *map(_fact_item, found)]
            return [item.model_copy(update={"rank": rank}) for rank, item in enumerate(items)]

    def snapshot(self) -> Snapshot:
        """Every episode, then every fact, then every cue, each in the order in which they were made."""
        with self._guard.using("snapshot"):
            return _snapshot(self._store.contents())

    def checkpoint(self, target: Path) -> None:
        """Copies the file through SQLite's own backup."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER,), self._directory, partial)
            self._store.copy(partial)

    def describe(self) -> MemoryDescription:
        """Versions and settings, and in what this engine is not Microsoft's client."""
        return MemoryDescription(
            name=self.name,
            versions={"bm25s": version("bm25s"), "sqlite": sqlite3.sqlite_version},
            settings={**self._config.model_dump(mode="json"), "temperature": 0.1, "policy_temperature": 0.0},
            modes={
                "implementation": "own engine after the published algorithm (arXiv 2602.03315)",
                "official_client": "not used: it is on no package registry, and takes its endpoint from the process",
                "policy": "prompted" if self._config.max_steps else "none",
                "search": f"indices, cues and BM25, fused by ranks (k={RRF_K}, weights {WEIGHTS}, BM25 {BM25})",
                "store": "SQLite, one file",
                "chat_model": self._models.chat_model,
                "embedding_model": self._models.embedding_model,
            },
            limits=(
                "This is not Microsoft's client: prompts are worded by this project, and results need not be equal.",
                "A session is one segment; its topic is the task request, not a summary.",
                "A fact whose index is word for word that of a stored fact is dropped with its value, as published.",
                "An updated fact keeps its id. The official client deletes it and stores it anew under the SHA-256 of "
                "its new index, which is in the metadata as record_id, so that it would count as another entry there.",
                "Cues are made after the updates are decided, in one request for all new and rewritten facts.",
                "A malformed answer is asked for again and then an error. The official client creates a fact or ends "
                "the search instead.",
                "An episode without facts cannot be retrieved. Episodes are delivered in full, so contexts grow long.",
                "Similarity compares indices and cues only; what a value says and its index does not is found by BM25.",
            ),
            writes="The whole session, observations included, is stored word for word as an episode; a language model "
            "extracts facts from it, each a short index and a value in neutral sentences, and one to three cues for "
            "each fact; a fact that resembles a stored one may be merged into it.",
            stores="Episodes (full session text), facts (index, value, links to their episodes and cues, earlier "
            "versions) and cues of two to four words that connect facts. Indices and cues are embedded, values not.",
            retrieves="Facts whose index or cues resemble the task request or that share words with it, fused; then a "
            "language model decides, up to max_steps times, to stop, to add facts that share a cue with those found, "
            "or to search with another query. Each fact found brings the episodes that it comes from.",
            presents="First the full text of the linked episodes, those of the best facts first, then the facts as "
            "'index: value'.",
        )

    def close(self) -> None:
        """Closes the file and lets others open the directory."""
        with self._guard.closing() as first:
            if first:
                self._store.close()

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers Memora's four requests by stated rules; see ``docs/simulator-memory.md``."""
        return simulated_answer(request)

    def _talk(self, call: str) -> Talk:
        return Talk(self._models, call=call, attempts=self._config.attempts, max_tokens=self._config.max_tokens)


def _fact_item(found: Found) -> MemoryItem:
    return MemoryItem(
        entry_ids=(found.fact.id,),
        text=found.fact.text,
        kind="fact",
        route="primary" if found.cue is None else "linked",
        via=found.cue,
        rank=0,
        score=found.score,
    )


def _episodes(found: list[Found], contents: Contents) -> list[MemoryItem]:
    """The episodes of the facts, each once, those of the best facts first."""
    best: dict[int, Found] = {}
    for item in sorted(found, key=lambda item: -item.score):  # stable: of equally good ones the one found first
        for number in item.fact.episodes:
            best.setdefault(number, item)
    episodes = {episode.number: episode for episode in contents.episodes}
    return [
        MemoryItem(
            entry_ids=(episodes[number].id,),
            text=f"{episodes[number].heading}\n{episodes[number].text}",
            kind="episode",
            route="episodic",
            via=item.fact.id,
            rank=0,
            score=item.score,
        )
        for number, item in best.items()
    ]


def _snapshot(contents: Contents) -> Snapshot:
    names = {episode.number: episode.id for episode in contents.episodes}
    facts_of_cues = contents.facts_of_cues()
    entries = [
        MemoryEntry(
            id=episode.id,
            kind="episode",
            text=f"{episode.heading}\n{episode.text}",
            metadata={"session": episode.session, "session_kind": episode.kind, "time": episode.time},
        )
        for episode in contents.episodes
    ]
    entries += [
        MemoryEntry(
            id=fact.id,
            kind="fact",
            text=fact.text,
            links=(*(names[number] for number in fact.episodes), *fact.cues),
            metadata={
                "index": fact.heading,
                "value": fact.value,
                "record_id": hashlib.sha256(fact.heading.encode()).hexdigest(),
                "session": fact.session,
                "time": fact.time,
                "history": list(fact.history),
            },
        )
        for fact in contents.facts.values()
    ]
    entries += [
        MemoryEntry(id=cue.id, kind="cue", text=cue.text, links=tuple(facts_of_cues[cue.id]))
        for cue in contents.cues.values()
    ]
    return Snapshot(entries={entry.id: entry for entry in entries})
