"""Recorded answers of models, so that a run can be replayed to the byte without a call."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memorydojo._display import plain
from memorydojo.errors import SavedRunError

_VERSION = 1
_PATIENCE_SECONDS = 60
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    run TEXT NOT NULL, request TEXT NOT NULL, ordinal INTEGER NOT NULL,
    content_type TEXT NOT NULL, body BLOB NOT NULL, usage TEXT NOT NULL,
    PRIMARY KEY (run, request, ordinal)
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class Recorded:
    """One recorded answer."""

    content_type: str
    body: bytes
    usage: dict[str, Any]


def fingerprint(endpoint: str, role: str, body: Mapping[str, Any]) -> str:
    """The hash of a complete request: endpoint, role, model and every parameter as it is sent."""
    canonical = json.dumps([endpoint, role, body], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


class ResponseStore:
    """Answers by run, request, and ordinal among the equal requests of the run.

    A file of SQLite. Several threads and processes may write to it at once; what was recorded survives a kill.

    Args:
        path: The file; it is made if it does not exist.

    Raises:
        SavedRunError: It cannot be opened, or is no such store.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path, timeout=_PATIENCE_SECONDS, check_same_thread=False, isolation_level=None
            )
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise SavedRunError(
                f"cannot open the store of answers {plain(str(path))}: {plain(str(error), 200)}"
            ) from error

    def _prepare(self) -> None:
        # While one process turns the file into a write-ahead log, SQLite refuses others at once, whatever the timeout.
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)
        self._database.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise SavedRunError(
                f"the store of answers {plain(str(self.path))} was written by a newer version; upgrade memorydojo"
            )
        if version < _VERSION:
            self._database.execute(_SCHEMA)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def get(self, run: str, request: str, ordinal: int) -> Recorded | None:
        """The recorded answer, or None.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database, closing(database.cursor()) as cursor:
            row = cursor.execute(
                "SELECT content_type, body, usage FROM answers WHERE run = ? AND request = ? AND ordinal = ?",
                (run, request, ordinal),
            ).fetchone()
            return None if row is None else Recorded(row[0], bytes(row[1]), json.loads(row[2]))

    def put(self, run: str, request: str, ordinal: int, *, answer: Recorded) -> None:
        """Records an answer; a later attempt of the same run replaces an earlier one.

        Raises:
            SavedRunError: The file cannot be written, as when the disk is full.
        """
        with self._access("write") as database:
            database.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                (run, request, ordinal, answer.content_type, answer.body, json.dumps(answer.usage)),
            )

    def count(self, run: str) -> int:
        """How many answers of a run are recorded.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database:
            (number,) = database.execute("SELECT count(*) FROM answers WHERE run = ?", (run,)).fetchone()
        return int(number)

    @contextmanager
    def _access(self, what: Literal["read", "write"]) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._database
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            raise SavedRunError(
                f"cannot {what} the recorded answers in {plain(str(self.path))}: {plain(str(error), 200)}. "
                "Make room on the disk and see that the file is whole and may be written, then start again"
            ) from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._database.close()
