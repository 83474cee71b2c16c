"""Recorded answers of models, so that a run can be replayed to the byte without a call."""

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memorydojo._sqlite import SqliteStore

#: CPython's hashlib releases the lock for data of 2,048 bytes and more.
_PIECE = 2047


@dataclass(frozen=True)
class Recorded:
    """One recorded answer."""

    content_type: str
    body: bytes
    usage: dict[str, Any]


def fingerprint(endpoint: str, role: str, body: Mapping[str, Any]) -> str:
    """The hash of a complete request: endpoint, role, model and every parameter as it is sent."""
    canonical = json.dumps([endpoint, role, body], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return _sha256(canonical.encode("ascii"))


def _sha256(data: bytes) -> str:
    """The hash, made in pieces so small that Python does not let go of its lock for one.

    The gateway's one thread would have to win the lock back from every run each time, which took ten times as long as
    the hash itself with 64 of them.
    """
    made = hashlib.sha256()
    for start in range(0, len(data), _PIECE):
        made.update(data[start : start + _PIECE])
    return made.hexdigest()


def settle(path: Path) -> None:
    """Brings everything that was recorded into the file itself, so that a copy of it is whole.

    While it is written to, SQLite keeps the newest answers in a second file beside it.
    """
    if path.exists():
        with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


#: The run, and by its links what it goes on from. Links never form a ring; the limit is for damage.
_CHAIN = """
    WITH RECURSIVE chain (run, distance) AS (
        SELECT :run, 0
        UNION ALL
        SELECT links.prefix, chain.distance + 1 FROM links JOIN chain ON links.run = chain.run
        WHERE chain.distance < 1000
    )
"""
_FIND = f"""{_CHAIN}
    SELECT answers.content_type, answers.body, answers.usage FROM chain JOIN answers ON answers.run = chain.run
    WHERE answers.request = :request AND answers.ordinal = :ordinal ORDER BY chain.distance LIMIT 1
"""  # noqa: S608 - constants
_COUNT = f"{_CHAIN} SELECT count(*) FROM chain JOIN answers ON answers.run = chain.run"  # noqa: S608


class ResponseStore(SqliteStore):
    """Answers by run, request, and ordinal among the equal requests of the run.

    Runs that share their first sessions share the answers of these: they are recorded once, for the shared part, and
    each run is linked to it.

    A file of SQLite. Several threads and processes may write to it at once; what was recorded survives a kill.

    Args:
        path: The file; it is made if it does not exist.

    Raises:
        SavedRunError: It cannot be opened, or is no such store.
    """

    SCHEMA = """
        CREATE TABLE IF NOT EXISTS answers (
            run TEXT NOT NULL, request TEXT NOT NULL, ordinal INTEGER NOT NULL,
            content_type TEXT NOT NULL, body BLOB NOT NULL, usage TEXT NOT NULL,
            PRIMARY KEY (run, request, ordinal)
        ) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS links (run TEXT PRIMARY KEY, prefix TEXT NOT NULL) WITHOUT ROWID
    """
    VERSION = 2
    HOLDS = "answers"

    def get(self, run: str, request: str, ordinal: int) -> Recorded | None:
        """The recorded answer, or None.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database, closing(database.cursor()) as cursor:
            row = cursor.execute(_FIND, {"run": run, "request": request, "ordinal": ordinal}).fetchone()
            return None if row is None else Recorded(row[0], bytes(row[1]), json.loads(row[2]))

    def begin(self, run: str, *, prefix: str | None, replay: bool) -> None:
        """Notes what a run goes on from.

        Args:
            run: The run.
            prefix: Whose answers come before its own; None for nobody's.
            replay: Whether the run repeats a recorded one, whose link stays; else what was recorded of the run in
                another shape does not belong to it any more.

        Raises:
            SavedRunError: The file cannot be written.
        """
        with self._access("write") as database:
            if replay:
                if prefix is not None:
                    database.execute("INSERT OR IGNORE INTO links VALUES (?, ?)", (run, prefix))
                return
            if prefix is None:
                database.execute("DELETE FROM links WHERE run = ?", (run,))
            else:
                database.execute("DELETE FROM answers WHERE run = ?", (run,))
                database.execute("INSERT OR REPLACE INTO links VALUES (?, ?)", (run, prefix))

    def knows(self, run: str) -> bool:
        """Whether anything is recorded for a run, its link included.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database:
            (found,) = database.execute(
                "SELECT EXISTS (SELECT 1 FROM answers WHERE run = ?1) OR EXISTS (SELECT 1 FROM links WHERE run = ?1)",
                (run,),
            ).fetchone()
        return bool(found)

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
        """How many answers of a run are recorded, those of what it goes on from included.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database:
            (number,) = database.execute(_COUNT, {"run": run}).fetchone()
        return int(number)
