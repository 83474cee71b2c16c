"""Plain vector memory: one embedding a session, the nearest sessions are delivered."""

import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters._asking import embedded
from memorydojo.adapters._state import MARKER, Guard, claim, copy_paths, new_copy, reporting, unicode
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot

_FILE = "sessions.sqlite"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, time TEXT NOT NULL, "
    "kind TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL)"
)


class VectorConfig(AdapterConfig):
    """Settings of the vector memory.

    Attributes:
        top_k: How many sessions are delivered at most.
    """

    top_k: int = Field(default=5, ge=1)


class VectorAdapter(MemoryAdapter):
    """Stores each session as prose with one vector, and delivers the ``top_k`` nearest to the query.

    Nearness is the cosine of the two vectors, which is also the score. Of equally near sessions the one that was
    written first comes first. Nothing is filtered by a threshold.
    """

    name = "vector"
    Config = VectorConfig

    def __init__(self, directory: Path, models: MemoryModels, config: VectorConfig) -> None:
        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name, sqlite3.Error)
        self._database = sqlite3.connect(directory / _FILE, check_same_thread=False)
        try:
            with self._database:
                self._database.execute(_SCHEMA)
        except sqlite3.Error:
            self._database.close()
            raise

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory."""
        with reporting(cls.name, "open", sqlite3.Error):
            claim(directory, cls.name, _identity(models))
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Embeds the session's prose and stores both in one transaction."""
        with self._guard.using("write"):
            if self._database.execute("SELECT 1 FROM sessions WHERE id = ?", (record.id,)).fetchone():
                raise MemorySystemError(
                    self.name, "write", f"session {record.id!r} is already stored", "Give each session its own id."
                )
            text = unicode(record.transcript())
            vector = self._embed("write", text).tobytes()
            with self._database:
                self._database.execute(
                    "INSERT INTO sessions (id, time, kind, text, vector) VALUES (?, ?, ?, ?, ?)",
                    (record.id, record.time.isoformat(), record.kind, text, vector),
                )

    def retrieve(self, query: str) -> list[MemoryItem]:
        """The nearest sessions, nearest first."""
        with self._guard.using("retrieve"):
            rows = self._database.execute("SELECT id, text, vector FROM sessions ORDER BY number").fetchall()
            if not rows:
                return []
            wanted = self._embed("retrieve", unicode(query))
            vectors = np.stack([np.frombuffer(row[2], dtype=np.float64) for row in rows])
            # Row by row, not as a matrix product: its last bits depend on how many rows there are.
            cosines = (vectors * wanted).sum(axis=1)
            order = np.argsort(-cosines, kind="stable")[: self._config.top_k]
            return [
                MemoryItem(entry_ids=(rows[i][0],), text=rows[i][1], kind="session", rank=rank, score=float(cosines[i]))
                for rank, i in enumerate(order)
            ]

    def snapshot(self) -> Snapshot:
        """Every stored session, oldest first."""
        with self._guard.using("snapshot"):
            rows = self._database.execute("SELECT id, time, kind, text FROM sessions ORDER BY number").fetchall()
            return Snapshot(
                entries={
                    id_: MemoryEntry(id=id_, kind="session", text=text, metadata={"time": time, "session_kind": kind})
                    for id_, time, kind, text in rows
                }
            )

    def checkpoint(self, target: Path) -> None:
        """Copies the database through SQLite's own backup."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER,), self._directory, partial)
            with closing(sqlite3.connect(partial / _FILE)) as copy:
                self._database.backup(copy)

    def describe(self) -> MemoryDescription:
        """What this memory is."""
        return MemoryDescription(
            name=self.name,
            versions={"numpy": version("numpy")},
            settings=self._config.model_dump(mode="json"),
            modes={"embedding_model": self._models.embedding_model},
            limits=(
                "A session has one vector; what the embedding model cuts off at its token limit is stored and "
                "delivered but cannot be searched for.",
                "Every session is delivered while there are no more than top_k.",
            ),
            writes="Each session is written as prose: request, assistant messages, tool calls, observations, response.",
            stores="One entry a session, word for word, with one embedding of the whole text.",
            retrieves="The top_k sessions by cosine similarity to the task request.",
            presents="The session texts, nearest first.",
        )

    def close(self) -> None:
        """Closes the database."""
        with self._guard.closing() as first:
            if first:
                self._database.close()

    def _embed(self, call: str, text: str) -> NDArray[np.float64]:
        return np.array(embedded(self._models, [text], system=self.name, call=call)[0], dtype=np.float64)


def _identity(models: MemoryModels) -> dict[str, Any]:
    return {"embedding_model": models.embedding_model, "embedding_dimensions": models.embedding_dimensions}
