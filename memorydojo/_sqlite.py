"""A file of SQLite that several threads and processes write to, and that survives a kill."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal

from memorydojo._display import plain
from memorydojo.errors import SavedRunError

_PATIENCE_SECONDS = 60


class SqliteStore:
    """The base of stores: opening, versions, access, and errors that say what to do.

    Args:
        path: The file; it is made if it does not exist.

    Attributes:
        SCHEMA: The statements that make its tables.
        VERSION: Version of the schema; a newer file is refused.
        HOLDS: What it holds, for messages.

    Raises:
        SavedRunError: It cannot be opened, or is no such store.
    """

    SCHEMA: ClassVar[str]
    VERSION: ClassVar[int]
    HOLDS: ClassVar[str]

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
                f"cannot open the store of {self.HOLDS} {plain(str(path))}: {plain(str(error), 200)}"
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
        if version > self.VERSION:
            raise SavedRunError(
                f"the store of {self.HOLDS} {plain(str(self.path))} was written by a newer version; upgrade memorydojo"
            )
        if version < self.VERSION:
            for statement in self.SCHEMA.split(";"):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {self.VERSION}")

    @contextmanager
    def _access(self, what: Literal["read", "write"]) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                yield self._database
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            raise SavedRunError(
                f"cannot {what} the recorded {self.HOLDS} in {plain(str(self.path))}: {plain(str(error), 200)}. "
                "Make room on the disk and see that the file is whole and may be written, then start again"
            ) from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._database.close()
