"""Writing runs: a directory of runs that is append-only and survives a crash at any point.

The format is documented in ``docs/saved-runs.md``.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memorydojo.errors import SavedRunError
from memorydojo.judging.labels import Labels, check_judge_id
from memorydojo.runs._files import (
    TEMPORARY_PREFIX,
    check_schema,
    read_json,
    saving,
    shown,
    sync_directory,
    to_json,
    write_atomic,
)
from memorydojo.runs._lock import lock
from memorydojo.runs.model import SCHEMA_VERSION, RunEnd, RunHeader, RunPlan, SessionResult

FORMAT = "memorydojo-runs"
MANIFEST = "manifest.json"
HEADER, SESSIONS, END, LABELS, LOCK = "run.json", "sessions.jsonl", "end.json", "labels", "lock"

_PART_LIMIT = 40
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")


def run_id(plan: RunPlan) -> str:
    """The id of the run that a plan describes: readable, deterministic, and safe as the name of a folder.

    ``<trajectory>--<memory>--<objective>.<payload>`` (or ``clean``) ``--<hash>``. The readable parts are cut and
    cleaned; the hash, the first ten hexadecimal digits of the SHA-256 of the plan's canonical JSON, tells apart
    plans that read alike.
    """
    payload = plan.insertion.payload if plan.insertion else None
    attack = f"{_part(payload.objective)}.{_part(payload.id)}" if payload else "clean"
    digest = hashlib.sha256(to_json(plan, canonical=True).encode("ascii")).hexdigest()[:10]
    return f"{_part(plan.trajectory.id)}--{_part(plan.memory)}--{attack}--{digest}"


def _part(text: str) -> str:
    cleaned = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9._+]", "-", text[: 4 * _PART_LIMIT]))
    return cleaned.strip("-.+_")[:_PART_LIMIT].rstrip("-.+_") or "x"


def check_run_id(name: str) -> None:
    """Refuses an id that is no safe name of a folder.

    Raises:
        SavedRunError: The id could leave the directory or is not portable.
    """
    if not _SAFE_ID.fullmatch(name):
        raise SavedRunError(
            f"the run id {name[:80]!r} cannot name a folder; take the id from memorydojo.runs.run_id(plan)"
        )


class RunDirectory:
    """A directory of saved runs, opened for writing. It is made if it does not exist.

    Several processes may write different runs into one directory at once; a run has one writer at a time.

    Args:
        path: The directory.

    Raises:
        SavedRunError: The directory holds something else, was written by a newer version, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with saving(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / MANIFEST).exists():
                self._create()
        check_manifest(self.path)

    def _create(self) -> None:
        other = next((p for p in self.path.iterdir() if not p.name.startswith(TEMPORARY_PREFIX)), None)
        # Another process may have made the directory of runs since the manifest was looked for.
        if other is not None and not (self.path / MANIFEST).exists():
            raise SavedRunError(
                f"{shown(self.path)} holds something other than saved runs, for example {shown(Path(other.name))}; "
                "nothing was touched. Choose a new or empty directory"
            )
        manifest = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "memorydojo": version("memorydojo"),
            "created": datetime.now(UTC).isoformat(),
        }
        write_atomic(self.path / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def claim(self, run_id: str) -> "RunClaim":
        """Keeps other processes out of one run until the claim is closed or the process ends, however it ends.

        Raises:
            RunInUseError: Another process has claimed the run.
            SavedRunError: The id is unsafe, or the folder cannot be made or locked.
        """
        check_run_id(run_id)
        folder = self.path / "runs" / run_id
        with saving(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return RunClaim(folder, lock=lock(folder / LOCK, what=f"the run in {shown(folder)}"))

    def begin(self, header: RunHeader) -> "RunWriter":
        """Claims a run and starts it; see `RunClaim.begin`.

        Raises:
            RunInUseError: Another process has claimed the run.
            SavedRunError: The run is complete, belongs to another plan, has an unsafe id, or cannot be written.
        """
        with self.claim(header.run_id) as claim:
            return claim.begin(header)

    def complete_ids(self) -> set[str]:
        """Ids of the runs that have come to their end; a sweep skips them."""
        return {path.parent.name for path in (self.path / "runs").glob(f"*/{END}")}

    def is_complete(self, run_id: str) -> bool:
        """Whether a run has come to its end."""
        return (self.path / "runs" / run_id / END).exists()

    def __repr__(self) -> str:
        return f"RunDirectory({shown(self.path)!r})"


class RunClaim:
    """The sole right to write one run. Made by `RunDirectory.claim`; also a context manager."""

    def __init__(self, directory: Path, *, lock: int) -> None:
        self.directory = directory
        self._lock: int | None = lock

    @property
    def complete(self) -> bool:
        """Whether the run has come to its end; another process may have brought it there."""
        return (self.directory / END).exists()

    def begin(self, header: RunHeader) -> "RunWriter":
        """Starts the run, from its first session. The claim passes to the writer.

        What an interrupted earlier attempt has left is kept under another name, ``sessions.interrupted-1.jsonl``
        and so on.

        Raises:
            SavedRunError: The run is complete, belongs to another plan, or cannot be written.
        """
        if self._lock is None:
            raise SavedRunError(f"the claim on {shown(self.directory)} is closed; claim the run again")
        _set_aside(self.directory, header)
        write_atomic(self.directory / HEADER, to_json(header) + "\n")
        writer = RunWriter(self.directory, header, lock=self._lock)
        self._lock = None
        return writer

    def close(self) -> None:
        """Gives the claim up, if it has not passed to a writer."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _set_aside(folder: Path, header: RunHeader) -> None:
    if (folder / END).exists():
        raise SavedRunError(
            f"the run {header.run_id!r} is complete in {shown(folder)} and is never overwritten; "
            "skip it (RunDirectory.complete_ids), or write into another directory"
        )
    if not (folder / HEADER).exists():
        return
    saved = read_json(folder / HEADER)
    if saved.get("plan") != json.loads(to_json(header.plan)):
        raise SavedRunError(
            f"{shown(folder)} holds a run of another plan under the same id; write into another directory"
        )
    # The header moves last: a crash in between leaves it, and the next attempt goes on with the same number.
    number = 1
    while (folder / f"run.interrupted-{number}.json").exists():
        number += 1
    with saving(folder):
        for name in (LABELS, SESSIONS, HEADER):
            stem, _, suffix = name.partition(".")
            if (folder / name).exists():
                kept = f"{stem}.interrupted-{number}" + (f".{suffix}" if suffix else "")
                os.rename(folder / name, folder / kept)
        sync_directory(folder)


def check_manifest(path: Path) -> dict[str, Any]:
    """Reads the manifest of a directory of runs.

    Raises:
        SavedRunError: It is missing, of another format, or newer than this library.
    """
    if not (path / MANIFEST).exists():
        problem = "does not exist" if not path.exists() else "is no directory of saved runs (it has no manifest.json)"
        raise SavedRunError(f"{shown(path)} {problem}; give the directory that a run or a sweep was written to")
    manifest = read_json(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise SavedRunError(
            f"{shown(path / MANIFEST)} is not of the format {FORMAT!r}; "
            "give the directory that a run or a sweep was written to"
        )
    check_schema(manifest.get("schema_version"), SCHEMA_VERSION, path / MANIFEST)
    return manifest


class RunWriter:
    """Appends the sessions of one run. Made by `RunDirectory.begin`; also a context manager.

    Closing it without `end` leaves an interrupted run, whose sessions stay readable.
    """

    def __init__(self, directory: Path, header: RunHeader, *, lock: int) -> None:
        self.directory = directory
        self.header = header
        self._lock: int | None = lock
        self._written = 0
        self._ended = False
        with saving(directory / SESSIONS):
            self._file: int | None = os.open(
                directory / SESSIONS, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            sync_directory(directory)

    def append(self, result: SessionResult) -> None:
        """Saves a session; it is on disk when this returns.

        Raises:
            SavedRunError: It is not the next session of the plan, the run is closed, or the disk refuses.
        """
        file = self._open_file()
        check_session(result, self.header.plan, self._written + 1, where=f"run {self.header.run_id!r}")
        line = (to_json(result) + "\n").encode("ascii")
        with saving(self.directory / SESSIONS):
            size = os.fstat(file).st_size
            try:
                _write_all(file, line)
                os.fsync(file)
            except OSError:
                # A part of the line must not stay in front of later ones: cut it off, and take no more.
                self.close()
                os.truncate(self.directory / SESSIONS, size)
                raise
        self._written += 1

    def end(self, end: RunEnd) -> None:
        """Marks the run as complete and closes it.

        Raises:
            SavedRunError: The end contradicts the sessions, the run is closed, or the disk refuses.
        """
        self._open_file()
        planned = len(self.header.plan.trajectory)
        if end.status == "completed" and self._written != planned:
            raise SavedRunError(
                f"run {self.header.run_id!r} cannot end as completed after {self._written} of {planned} sessions"
            )
        write_atomic(self.directory / END, to_json(end) + "\n")
        self._ended = True
        self.close()

    def save_labels(self, labels: Labels) -> None:
        """Saves labels beside the facts, also after the end.

        Raises:
            SavedRunError: The labels belong to another run, or cannot be written.
        """
        write_labels(self.directory, labels, self.header, range(1, self._written + 1))

    def _open_file(self) -> int:
        if self._file is None:
            raise SavedRunError(f"the writer of run {self.header.run_id!r} is closed; begin the run again")
        return self._file

    def close(self) -> None:
        """Releases the files and the lock. May be called more than once."""
        file, lock, self._file, self._lock = self._file, self._lock, None, None
        for descriptor in (file, lock):
            if descriptor is not None:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "ended" if self._ended else "open" if self._file is not None else "closed"
        return f"RunWriter({self.header.run_id!r}, {self._written} sessions, {state})"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def check_labels(labels: Labels, header: RunHeader, begun: Sequence[int], path: Path) -> None:
    """Refuses labels that are not of a run with this header and these sessions.

    Raises:
        SavedRunError: Run, payload or sessions differ.
    """
    payload = header.plan.insertion.payload.sha256 if header.plan.insertion else None
    found = labels.run_id, labels.payload_sha256, [session.session for session in labels.sessions]
    if found != (header.run_id, payload, [*begun]):
        raise SavedRunError(
            f"the labels in {shown(path)} belong to another run or to other sessions of it; "
            "label the run again with memorydojo.judging.label_run"
        )


def write_labels(folder: Path, labels: Labels, header: RunHeader, begun: Sequence[int]) -> None:
    """Writes the labels of a run; earlier labels of the same judge are replaced.

    Raises:
        SavedRunError: The labels belong to another run, or cannot be written.
    """
    check_judge_id(labels.judge)
    path = folder / LABELS / f"{labels.judge}.json"
    check_labels(labels, header, begun, path)
    with saving(path):
        path.parent.mkdir(exist_ok=True)
    write_atomic(path, to_json(labels) + "\n")


def check_session(result: SessionResult, plan: RunPlan, number: int, *, where: str) -> None:
    """Refuses a session that is not the given one of the plan.

    Raises:
        SavedRunError: Number, domain or task differ.
    """
    planned = plan.trajectory.sessions
    if result.session != number or number > len(planned):
        raise SavedRunError(
            f"{where}: found session {result.session} where session {number} of {len(planned)} was due; "
            "sessions are saved in order, one by one"
        )
    due = planned[number - 1]
    if (result.domain, result.task_id) != (due.domain, due.task_id):
        raise SavedRunError(
            f"{where}: session {number} is {result.domain}/{result.task_id}, "
            f"but the plan has {due.domain}/{due.task_id} there"
        )
