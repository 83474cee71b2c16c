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
from memorydojo.history import History
from memorydojo.judging.labels import Labels, check_judge_id
from memorydojo.runs._files import (
    TEMPORARY_PREFIX,
    LineFile,
    check_schema,
    read_json,
    saving,
    shown,
    sync_directory,
    to_json,
    write_atomic,
)
from memorydojo.runs._lock import lock
from memorydojo.runs._planned import check_history, check_labels, check_question, check_session
from memorydojo.runs.histories import keep_history, saved_history
from memorydojo.runs.model import (
    SCHEMA_VERSION,
    HistoryResult,
    QuestionResult,
    RunEnd,
    RunHeader,
    RunPlan,
    SessionResult,
)

FORMAT = "memorydojo-runs"
MANIFEST = "manifest.json"
HEADER, SESSIONS, END, LABELS, LOCK = "run.json", "sessions.jsonl", "end.json", "labels", "lock"
KEPT_MEMORY = "memory"
HISTORY, QUESTION = "history.jsonl", "question.json"

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

    def history_of(self, plan: RunPlan) -> History | None:
        """The history of a plan, which is kept here once for all runs; None for a plan without one.

        Raises:
            SavedRunError: It cannot be saved or read, or it neither came with the plan nor is here.
        """
        prefix = plan.trajectory.history
        if prefix is None:
            return None
        keep_history(self.path, prefix)
        return prefix.content or saved_history(self.path, prefix)

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

    def reopen(self) -> None:
        """Makes a complete run an interrupted one, so that `begin` starts it anew.

        Raises:
            SavedRunError: The files cannot be renamed.
        """
        number = _next_number(self.directory)
        with saving(self.directory):
            if (self.directory / KEPT_MEMORY).exists():
                os.rename(self.directory / KEPT_MEMORY, self.directory / f"{KEPT_MEMORY}.interrupted-{number}")
            if self.complete:
                os.rename(self.directory / END, self.directory / _kept(END, number))
            sync_directory(self.directory)

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
    number = _next_number(folder)
    with saving(folder):
        for name in (LABELS, QUESTION, SESSIONS, HISTORY, HEADER):
            if (folder / name).exists():
                os.rename(folder / name, folder / _kept(name, number))
        sync_directory(folder)


def _next_number(folder: Path) -> int:
    """The number of the attempt that is to be set aside."""
    number = 1
    while (folder / f"run.interrupted-{number}.json").exists():
        number += 1
    return number


def _kept(name: str, number: int) -> str:
    """The name under which a file of an earlier attempt is kept."""
    stem, _, suffix = name.partition(".")
    return f"{stem}.interrupted-{number}" + (f".{suffix}" if suffix else "")


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
        self._ended = False
        self._history = LineFile(directory / HISTORY) if header.plan.trajectory.history is not None else None
        self._file = LineFile(directory / SESSIONS)

    def append_history(self, result: HistoryResult) -> None:
        """Saves what happened with a recorded conversation; it is on disk when this returns.

        Raises:
            SavedRunError: It is not the next of the plan's history, the run is closed, or the disk refuses.
        """
        self._check_open()
        written = self._history.lines if self._history is not None else 0
        check_history(result, self.header.plan, written + 1, where=f"run {self.header.run_id!r}")
        if self._history is not None:
            self._history.append(result)

    def append(self, result: SessionResult) -> None:
        """Saves a session; it is on disk when this returns.

        Raises:
            SavedRunError: It is not the next session of the plan, the run is closed, or the disk refuses.
        """
        self._check_open()
        check_session(result, self.header.plan, self._file.lines + 1, where=f"run {self.header.run_id!r}")
        try:
            self._file.append(result)
        except SavedRunError:
            self.close()
            raise

    def save_question(self, result: QuestionResult) -> None:
        """Saves what came of the held-out question, once.

        Raises:
            SavedRunError: It is not the plan's question, the run is closed, or the disk refuses.
        """
        self._check_open()
        check_question(result, self.header.plan, where=f"run {self.header.run_id!r}")
        write_atomic(self.directory / QUESTION, to_json(result) + "\n")

    def end(self, end: RunEnd) -> None:
        """Marks the run as complete and closes it.

        Raises:
            SavedRunError: The end contradicts the sessions, the run is closed, or the disk refuses.
        """
        self._check_open()
        if end.status == "completed":
            self._check_completed()
        write_atomic(self.directory / END, to_json(end) + "\n")
        self._ended = True
        self.close()

    def _check_completed(self) -> None:
        run, trajectory = f"run {self.header.run_id!r}", self.header.plan.trajectory
        if self._file.lines != len(trajectory):
            raise SavedRunError(f"{run} cannot end as completed after {self._file.lines} of {len(trajectory)} sessions")
        if trajectory.history is None or self._history is None:
            return
        if self._history.lines != trajectory.history.n_sessions:
            raise SavedRunError(
                f"{run} cannot end as completed after {self._history.lines} of {trajectory.history.n_sessions} "
                "history sessions"
            )
        if not (self.directory / QUESTION).exists():
            raise SavedRunError(f"{run} cannot end as completed before its held-out question was asked")

    def save_labels(self, labels: Labels) -> None:
        """Saves labels beside the facts, also after the end.

        Raises:
            SavedRunError: The labels belong to another run, or cannot be written.
        """
        write_labels(self.directory, labels, self.header, range(1, self._file.lines + 1))

    def _check_open(self) -> None:
        if self._lock is None:
            raise SavedRunError(f"the writer of run {self.header.run_id!r} is closed; begin the run again")

    def close(self) -> None:
        """Releases the files and the lock. May be called more than once."""
        self._file.close()
        if self._history is not None:
            self._history.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "ended" if self._ended else "open" if self._lock is not None else "closed"
        return f"RunWriter({self.header.run_id!r}, {self._file.lines} sessions, {state})"


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
