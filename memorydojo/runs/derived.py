"""The rows of the session table, kept beside the runs: a copy that is made again wherever it could be wrong.

``derived/session-table.<judge>.jsonl`` may be deleted at any time. It holds the rows of complete runs with saved
labels. A run's rows are taken from it only if every file of the run has the size, times and inode that it had when the
rows were made, and only if the code that makes rows is the same. A copied or restored directory has other inodes and
times, and so is read anew.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from memorydojo.runs._files import TEMPORARY_PREFIX, write_atomic
from memorydojo.runs.store import LABELS, LOCK

FOLDER = "derived"
FORMAT = 1

#: Directories with fewer runs than this are read anew each time: it takes a second, and leaves no file behind.
WORTH_KEEPING = 100

#: Rows of a file that has changed so shortly before are not kept: another change could get the same time.
SETTLED_NS = 2_000_000_000

Row = Mapping[str, Any]
Signature = list[list[Any]]


@dataclass
class Kept:
    """The rows of one run.

    Attributes:
        signature: The state of its files.
        version: Version of the judge.
        marker: Version of what marked the answer to the held-out question, if there is one.
        count: The number of rows.
        shared: Columns that have one value in all rows.
        columns: The other columns.
    """

    signature: Signature
    version: str
    marker: str | None
    count: int
    shared: dict[str, Any]
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, rows: list[dict[str, Any]], *, version: str, marker: str | None, signature: Signature) -> "Kept":
        """Rows by column. All rows of a run have the same columns."""
        shared, columns = {}, {}
        for name, first in rows[0].items():
            values = [row[name] for row in rows]
            # By identity or equal text: 1, 1.0 and True are equal to each other, but not the same.
            same = all(value is first or (type(value) is type(first) and value == first) for value in values)
            if same:
                shared[name] = first
            else:
                columns[name] = values
        return cls(signature, version, marker, len(rows), shared, columns)

    def column(self, name: str) -> list[Any]:
        """The values of a column; None where the run has no such column."""
        found = self.columns.get(name)
        return found if found is not None else [self.shared.get(name)] * self.count


@dataclass
class Derived:
    """The kept rows of a directory of runs.

    Attributes:
        directory: The directory.
        judge: The name of the labels that the rows are made from.
        runs: The kept rows by run.
        changed: Whether there is something to save.
    """

    directory: Path
    judge: str
    runs: dict[str, Kept] = field(default_factory=dict)
    changed: bool = False

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / FOLDER / f"session-table.{self.judge}.jsonl"

    @classmethod
    def read(cls, directory: Path, judge: str) -> "Derived":
        """What was kept; nothing if the file is missing, damaged, or of other code."""
        derived = cls(directory, judge)
        try:
            head, _, body = derived.path.read_bytes().partition(b"\n")
            header = json.loads(head)
            if header != derived._header(body):
                return derived
            lines = [json.loads(line) for line in body.splitlines()]
        except (OSError, ValueError, RecursionError):
            return derived
        derived.runs = {line.pop("run"): Kept(**line) for line in lines}
        return derived

    def find(self, folder: Path) -> Kept | None:
        """The rows of a run, if nothing of it has changed."""
        kept = self.runs.get(folder.name)
        if kept is None or kept.signature != signature(folder, self.judge):
            return None
        return kept

    def keep(self, folder: Path, kept: Kept, *, now: int | None) -> None:
        """Takes new rows in, if they can be relied on later.

        Args:
            folder: The run's folder.
            kept: The rows, with the state of the files from before they were read.
            now: The file system's time, from before that; None if it is not known.
        """
        last = max(max(entry[2], entry[3]) for entry in kept.signature)
        if now is None or last > now - SETTLED_NS or kept.signature != signature(folder, self.judge):
            return
        self.runs[folder.name] = kept
        self.changed = True

    def save(self) -> None:
        """Writes the file; where that is impossible, nothing is lost but time."""
        from memorydojo.errors import SavedRunError

        there = {entry.name for entry in os.scandir(self.directory / "runs")}
        lines = [
            json.dumps({"run": run, **vars(kept)}, separators=(",", ":"))
            for run, kept in sorted(self.runs.items())
            if run in there
        ]
        body = "".join(f"{line}\n" for line in lines)
        try:
            self.path.parent.mkdir(exist_ok=True)
            write_atomic(self.path, json.dumps(self._header(body.encode("ascii"))) + "\n" + body)
        except (OSError, SavedRunError):
            return
        self.changed = False

    def _header(self, body: bytes) -> dict[str, Any]:
        return {"format": FORMAT, "code": _code(), "judge": self.judge, "sha256": hashlib.sha256(body).hexdigest()}


def signature(folder: Path, judge: str) -> Signature:
    """The state of all files that a run's rows can depend on: name, size, times of change in nanoseconds, inode.

    The time of change proper (ctime) is the system's own: no copying or restoring tool can set it back.
    """
    states = []
    for path in (folder, folder / LABELS):
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:
            continue
        for entry in entries:
            name = entry.name
            if name == LOCK or name.startswith(TEMPORARY_PREFIX) or ".interrupted-" in name:
                continue
            if path != folder and name != f"{judge}.json":
                continue
            if entry.is_dir():
                continue
            state = entry.stat()
            states.append([name, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino])
    return sorted(states)


def settled(folder: Path) -> bool:
    """Whether every file of lines ends with a whole one: of a torn one there is to be a warning each time."""
    for path in folder.glob("[!.]*.jsonl"):
        if ".interrupted-" in path.name or not path.stat().st_size:
            continue
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                return False
    return True


def time_of(directory: Path) -> int | None:
    """The file system's time in nanoseconds, which may be another machine's; None if nothing can be written there."""
    probe = directory / f"{TEMPORARY_PREFIX}{os.getpid()}-time"
    try:
        probe.write_bytes(b"")
        now = probe.stat().st_mtime_ns
        probe.unlink()
    except OSError:
        return None
    return now


@lru_cache(maxsize=1)
def _code() -> str:
    """A hash of the code that makes rows of files: rows that older code has made are not those that this code makes."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in _sources(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(root: Path) -> Iterable[Path]:
    return sorted([*root.glob("*.py"), *root.glob("runs/*.py"), *root.glob("judging/*.py")])
