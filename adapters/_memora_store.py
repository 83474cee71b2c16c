"""Memora's records in one SQLite file: episodes, facts and cues, and the links between them.

One connection holds the file exclusively from `open` to `close`, so a second instance is refused, and a write is one
transaction: the file has all of it or nothing, also after the process was killed.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memorydojo.errors import MemorySystemError

FILE = "memora.sqlite"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS episodes (number INTEGER PRIMARY KEY, heading TEXT UNIQUE NOT NULL, "
    "session TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, time TEXT NOT NULL, text TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS facts (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, "
    "heading TEXT UNIQUE NOT NULL, value TEXT NOT NULL, vector BLOB NOT NULL, "
    "session TEXT NOT NULL, time TEXT NOT NULL, history TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cues (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, text TEXT NOT NULL, "
    "name TEXT UNIQUE NOT NULL, vector BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS fact_episodes (fact TEXT NOT NULL, place INTEGER NOT NULL, episode INTEGER NOT NULL, "
    "PRIMARY KEY (fact, place))",
    "CREATE TABLE IF NOT EXISTS fact_cues (fact TEXT NOT NULL, place INTEGER NOT NULL, cue TEXT NOT NULL, "
    "PRIMARY KEY (fact, place))",
)

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Episode:
    """The text of one session, never changed.

    Attributes:
        number: 1-based number of the write that stored it.
        heading: ``[EPISODIC] topic (segment 1)``, unique.
        session: The session's id.
        kind: The session's kind.
        time: When the session took place, in ISO form.
        text: The session's transcript.
    """

    number: int
    heading: str
    session: str
    kind: str
    time: str
    text: str

    @property
    def id(self) -> str:
        """``episode-0001`` for the first session."""
        return f"episode-{self.number:04}"


@dataclass(frozen=True)
class Fact:
    """A primary entry.

    Attributes:
        id: Its id, which it keeps when it is rewritten.
        heading: The primary abstraction: unique, and the only part of it that is embedded.
        value: What is remembered.
        vector: The heading's vector.
        session: The session that wrote it last.
        time: When that session took place, in ISO form.
        episodes: Numbers of the episodes that it comes from, in the order in which they were added.
        cues: Ids of its cues.
        history: Its earlier versions, oldest first.
    """

    id: str
    heading: str
    value: str
    vector: Vector
    session: str
    time: str
    episodes: tuple[int, ...]
    cues: tuple[str, ...] = ()
    history: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """The fact as it is delivered."""
        return f"{self.heading}: {self.value}"


@dataclass(frozen=True)
class Cue:
    """An anchor that leads to one or more facts. ``name`` is its text without regard to case and spaces."""

    id: str
    text: str
    name: str
    vector: Vector


@dataclass
class Contents:
    """All records, each kind in the order in which it was made."""

    episodes: list[Episode] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)
    cues: dict[str, Cue] = field(default_factory=dict)

    def facts_of_cues(self) -> dict[str, list[str]]:
        """Ids of the facts that each cue leads to."""
        found: dict[str, list[str]] = {id_: [] for id_ in self.cues}
        for fact in self.facts.values():
            for cue in fact.cues:
                found[cue].append(fact.id)
        return found


@dataclass(frozen=True)
class Change:
    """What one write does.

    Attributes:
        episode: The new episode.
        facts: New facts, and facts that are rewritten under their old ids.
        cues: New cues. Cues that lead to no fact any more are removed.
    """

    episode: Episode
    facts: tuple[Fact, ...] = ()
    cues: tuple[Cue, ...] = ()


class Store:
    """The open file.

    Raises:
        MemorySystemError: Another instance has it open.
    """

    def __init__(self, directory: Path) -> None:
        self._database = sqlite3.connect(directory / FILE, check_same_thread=False, isolation_level=None, timeout=0)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            with self._transaction():
                for statement in _SCHEMA:
                    self._database.execute(statement)
        except sqlite3.OperationalError as error:
            self._database.close()
            if "locked" not in str(error):
                raise
            problem = f"{directory} is open in another instance"
            raise MemorySystemError("memora", "open", problem, "Close that one first, or fork it.") from error
        except BaseException:
            self._database.close()
            raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN EXCLUSIVE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def contents(self) -> Contents:
        """All records."""
        select = self._database.execute
        episodes: dict[str, list[int]] = {}
        for fact, number in select("SELECT fact, episode FROM fact_episodes ORDER BY fact, place"):
            episodes.setdefault(fact, []).append(number)
        cues: dict[str, list[str]] = {}
        for fact, cue in select("SELECT fact, cue FROM fact_cues ORDER BY fact, place"):
            cues.setdefault(fact, []).append(cue)
        found = Contents()
        for row in select("SELECT number, heading, session, kind, time, text FROM episodes ORDER BY number"):
            found.episodes.append(Episode(*row))
        for id_, heading, value, vector, session, time, history in select(
            "SELECT id, heading, value, vector, session, time, history FROM facts ORDER BY number"
        ):
            found.facts[id_] = Fact(
                id_,
                heading,
                value,
                np.frombuffer(vector, dtype=np.float64),
                session,
                time,
                tuple(episodes.get(id_, ())),
                tuple(cues.get(id_, ())),
                tuple(json.loads(history)),
            )
        for id_, text, name, vector in select("SELECT id, text, name, vector FROM cues ORDER BY number"):
            found.cues[id_] = Cue(id_, text, name, np.frombuffer(vector, dtype=np.float64))
        return found

    def has_session(self, session: str) -> bool:
        """Whether a session was written."""
        return self._database.execute("SELECT 1 FROM episodes WHERE session = ?", (session,)).fetchone() is not None

    def apply(self, change: Change) -> None:
        """Does all of a write in one transaction, or nothing."""
        with self._transaction():
            e = change.episode
            self._database.execute(
                "INSERT INTO episodes (number, heading, session, kind, time, text) VALUES (?, ?, ?, ?, ?, ?)",
                (e.number, e.heading, e.session, e.kind, e.time, e.text),
            )
            self._database.executemany(
                "INSERT INTO cues (id, text, name, vector) VALUES (?, ?, ?, ?)",
                [(cue.id, cue.text, cue.name, cue.vector.tobytes()) for cue in change.cues],
            )
            for fact in change.facts:
                self._put(fact)
            self._database.execute("DELETE FROM cues WHERE id NOT IN (SELECT cue FROM fact_cues)")

    def _put(self, fact: Fact) -> None:
        self._database.execute(
            "INSERT INTO facts (id, heading, value, vector, session, time, history) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET heading = excluded.heading, value = excluded.value, "
            "vector = excluded.vector, session = excluded.session, time = excluded.time, history = excluded.history",
            (
                fact.id,
                fact.heading,
                fact.value,
                fact.vector.tobytes(),
                fact.session,
                fact.time,
                json.dumps(fact.history, ensure_ascii=False),
            ),
        )
        self._link("fact_episodes", "episode", fact.id, fact.episodes)
        self._link("fact_cues", "cue", fact.id, fact.cues)

    def _link(self, table: str, column: str, fact: str, targets: Iterable[int | str]) -> None:
        self._database.execute(f"DELETE FROM {table} WHERE fact = ?", (fact,))  # noqa: S608 (names of this module)
        self._database.executemany(
            f"INSERT INTO {table} (fact, place, {column}) VALUES (?, ?, ?)",  # noqa: S608
            [(fact, place, target) for place, target in enumerate(targets)],
        )

    def copy(self, directory: Path) -> None:
        """Writes a consistent copy of the file into another directory."""
        with closing(sqlite3.connect(directory / FILE)) as target:
            self._database.backup(target)

    def close(self) -> None:
        """Closes the file and lets others open it."""
        self._database.close()
