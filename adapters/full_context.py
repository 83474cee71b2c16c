"""The memory that keeps and delivers everything: the upper bound of what memory can carry."""

import json
import os
from pathlib import Path
from typing import Any, Self

from memorydojo._base import Frozen
from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters._state import MARKER, Guard, claim, copy_paths, new_copy, reporting, unicode
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, MemoryItem, SessionRecord, Snapshot

_FILE = "sessions.jsonl"


class _Stored(Frozen):
    id: str
    time: str
    kind: str
    text: str


class FullContextAdapter(MemoryAdapter):
    """Stores each session as prose and delivers all of them, oldest first, whatever the query.

    Its state is one append-only file. A line that a crash cut off is dropped when the memory is opened again.
    """

    name = "full_context"
    embeds = False

    def __init__(self, directory: Path, config: AdapterConfig) -> None:
        self._directory, self._config = directory, config
        self._guard = Guard(self.name)
        self._sessions = self._read()

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory; the models are not used."""
        with reporting(cls.name, "open"):
            claim(directory, cls.name, {})
            return cls(directory, config)

    def write(self, record: SessionRecord) -> None:
        """Appends the session and waits until it is on disk."""
        with self._guard.using("write"):
            if record.id in self._sessions:
                raise MemorySystemError(
                    self.name, "write", f"session {record.id!r} is already stored", "Give each session its own id."
                )
            stored = _Stored(
                id=record.id, time=record.time.isoformat(), kind=record.kind, text=unicode(record.transcript())
            )
            line = json.dumps(stored.model_dump(), ensure_ascii=True) + "\n"
            path = self._directory / _FILE
            before = path.stat().st_size if path.exists() else 0
            try:
                with path.open("ab") as file:
                    file.write(line.encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                os.truncate(path, before)
                raise
            self._sessions[record.id] = stored

    def retrieve(self, query: str) -> list[MemoryItem]:
        """Every stored session, oldest first."""
        with self._guard.using("retrieve"):
            return [
                MemoryItem(entry_ids=(s.id,), text=s.text, kind="session", rank=rank)
                for rank, s in enumerate(self._sessions.values())
            ]

    def snapshot(self) -> Snapshot:
        """Every stored session, oldest first."""
        with self._guard.using("snapshot"):
            entries = (
                MemoryEntry(id=s.id, kind="session", text=s.text, metadata={"time": s.time, "session_kind": s.kind})
                for s in self._sessions.values()
            )
            return Snapshot(entries={entry.id: entry for entry in entries})

    def checkpoint(self, target: Path) -> None:
        """Copies the file."""
        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER, _FILE), self._directory, partial)

    def describe(self) -> MemoryDescription:
        """What this memory is."""
        return MemoryDescription(
            name=self.name,
            settings=self._config.model_dump(mode="json"),
            limits=("Nothing is ever dropped, so the delivered text grows with every session.",),
            writes="Each session is written as prose: request, assistant messages, tool calls, observations, response.",
            stores="One entry a session, word for word.",
            retrieves="Everything, whatever the query.",
            presents="All sessions in the order in which they were written.",
        )

    def close(self) -> None:
        """Ends the use of this instance."""
        with self._guard.closing():
            pass

    def _read(self) -> dict[str, _Stored]:
        path = self._directory / _FILE
        if not path.exists():
            return {}
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        found: dict[str, _Stored] = {}
        for number, line in enumerate(data[:whole].split(b"\n")[:-1], start=1):
            try:
                stored = _Stored.model_validate(json.loads(line))
            except ValueError as error:
                raise MemorySystemError(
                    self.name,
                    "open",
                    f"line {number} of {path} is no session: {error}",
                    "Restore the directory from a checkpoint.",
                ) from error
            found[stored.id] = stored
        return found
