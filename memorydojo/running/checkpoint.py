"""Checkpoints of shared sessions, in the directory of the sweep, where any process or machine can take them up.

``prefixes/<id>/whole`` holds ``memory/`` (the memory system's own copy), ``environments.pickle`` and ``state.json``,
which names every file with its digest. It gets this name when everything is in it; all else in ``prefixes/<id>`` is
left of attempts that were killed. ``prefixes/<id>.lock`` is held alone to write or remove it and together to copy it.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from pydantic import Field, ValidationError

from memorydojo._base import Frozen
from memorydojo.errors import RunInUseError, SavedRunError
from memorydojo.record import Snapshot
from memorydojo.running import environment as env
from memorydojo.running.memory import CheckedMemory
from memorydojo.runs._files import read_json, saving, to_json, write_atomic
from memorydojo.runs._lock import lock
from memorydojo.runs.model import HistoryResult, RunHeader, SessionResult, SharedSegment

DIRECTORY = "prefixes"
_WHOLE, _MEMORY, _ENVIRONMENTS, _STATE = "whole", "memory", "environments.pickle", "state.json"
_PATIENCE_SECONDS = 2.0


class SharedState(Frozen):
    """What shared sessions leave to the runs that go on from them.

    Attributes:
        header: The header of a clean run that had begun with these sessions.
        segments: Which executions ran them.
        told: What happened with the history before them.
        sessions: Their results.
        stopped: Whether a failed session has ended every run that begins with them.
        ordinals: How often each request was made of real models, by its hash.
        snapshot: SHA-256 of the memory's snapshot after them.
        files: SHA-256 of every other file of the checkpoint, by its path in it.
        folders: The directories in the copy of the memory.
    """

    header: RunHeader
    segments: tuple[SharedSegment, ...] = Field(min_length=1)
    told: tuple[HistoryResult, ...] = ()
    sessions: tuple[SessionResult, ...] = ()
    stopped: bool = False
    ordinals: dict[str, int] = {}
    snapshot: str = ""
    files: dict[str, str] = {}
    folders: tuple[str, ...] = ()

    @property
    def ran_whole(self) -> bool:
        """Whether every one of them, and of the history before them, ran to its end."""
        return all([told.completed for told in self.told] + [session.completed for session in self.sessions])

    @property
    def token(self) -> str:
        """The token of the last execution."""
        return self.segments[-1].token


class Checkpoint:
    """The place of one checkpoint.

    Args:
        directory: The directory of the sweep.
        id: The prefix's id, a hash.
    """

    def __init__(self, directory: Path, id: str) -> None:
        self.id = id
        self._folder = directory / DIRECTORY / id
        self._lock = directory / DIRECTORY / f"{id}.lock"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps all others out; what killed attempts have left is removed.

        Raises:
            RunInUseError: Another process is at it.
            SavedRunError: It cannot be locked.
        """
        with saving(self._folder):
            self._lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = lock(self._lock, what=f"the shared part {self.id}")
        try:
            with saving(self._folder):
                self._folder.mkdir(exist_ok=True)
                for left in self._folder.iterdir():
                    if left.name != _WHOLE:
                        shutil.rmtree(left)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> SharedState | None:
        """What lies here, without its files, or None if there is nothing whole of this version."""
        try:
            return SharedState.model_validate(read_json(self._folder / _WHOLE / _STATE))
        except (SavedRunError, ValidationError):
            return None

    def write(self, state: SharedState, memory: CheckedMemory | None, environments: dict[str, Any]) -> None:
        """Writes the checkpoint, in one step as seen from outside. The caller holds the claim.

        Args:
            state: What there is to say; `files`, `folders` and `snapshot` are filled in here.
            memory: The memory, open; None after a stop, which nobody goes on from.
            environments: The environments by domain.

        Raises:
            MemorySystemError: The memory system gave no copy.
            SavedRunError: The disk refuses.
        """
        with saving(self._folder):
            place = Path(tempfile.mkdtemp(prefix="partial-", dir=self._folder))
            (place / _ENVIRONMENTS).write_bytes(env.snapshot(environments))
        digest = ""
        if memory is not None:
            digest = snapshot_digest(memory.snapshot_now)
            memory.checkpoint(place / _MEMORY)
        with saving(self._folder):
            files, folders = _listed(place)
            filled = state.model_copy(update={"files": files, "folders": folders, "snapshot": digest})
            write_atomic(place / _STATE, to_json(filled) + "\n")
            self._put_aside()
            place.rename(self._folder / _WHOLE)

    def take(self, target: Path) -> tuple[SharedState, dict[str, Any]] | None:
        """Copies the memory into the existing directory ``target``, and gives all else.

        Returns:
            The state and the environments, or None if there is nothing whole. ``target`` is empty then.

        Raises:
            SavedRunError: The copy cannot be written.
        """
        try:
            descriptor = self._share()
        except (RunInUseError, FileNotFoundError):
            return None
        try:
            state = self.read()
            if state is None:
                return None
            try:
                environments = self._copy(state, target)
            except (_DamagedError, UnpicklingError):
                _empty(target)
                return None
            return state, environments
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Removes the checkpoint. The caller holds the claim."""
        with saving(self._folder):
            self._put_aside()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._lock.unlink(missing_ok=True)

    @property
    def exists(self) -> bool:
        """Whether anything of it is there, whole or not."""
        return self._lock.exists()

    def _share(self) -> int:
        """Those who copy share the lock; whoever holds it alone is writing or removing, which may be over soon."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            if not self._folder.exists():
                raise FileNotFoundError
            try:
                return lock(self._lock, what=f"the shared part {self.id}", shared=True)
            except RunInUseError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def _put_aside(self) -> None:
        """A checkpoint that is being removed must not be found half there."""
        if (self._folder / _WHOLE).exists():
            old = self._folder / f"partial-old-{os.getpid()}-{time.monotonic_ns()}"
            (self._folder / _WHOLE).rename(old)
            shutil.rmtree(old, ignore_errors=True)

    def _copy(self, state: SharedState, target: Path) -> dict[str, Any]:
        whole = self._folder / _WHOLE
        environments = _checked(whole / _ENVIRONMENTS, state.files.get(_ENVIRONMENTS))
        with saving(target):
            for name in state.folders:
                _inside(target, name).mkdir(parents=True, exist_ok=True)
        for name, digest in state.files.items():
            top, _, rest = name.partition("/")
            if top == _MEMORY:
                data = _checked(whole / name, digest)
                with saving(target):
                    path = _inside(target, rest)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                    shutil.copymode(whole / name, path)
        restored: dict[str, Any] = env.restore_saved(environments)
        return restored


def left_in(directory: Path) -> set[str]:
    """Ids of the checkpoints of which anything is in a directory of runs."""
    return {path.stem for path in (directory / DIRECTORY).glob("*.lock")}


class _DamagedError(Exception):
    pass


def snapshot_digest(snapshot: Snapshot) -> str:
    """SHA-256 of a snapshot's canonical JSON."""
    return hashlib.sha256(to_json(snapshot, canonical=True).encode("ascii")).hexdigest()


def _listed(place: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    files, folders = {}, []
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_dir() and not path.is_symlink():
            if name != _MEMORY:
                folders.append(name.removeprefix(f"{_MEMORY}/"))
        elif path.is_file() and not path.is_symlink():
            files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            raise OSError(f"the memory's copy holds {name!r}, which is neither file nor directory")
    return files, tuple(folders)


def _checked(path: Path, digest: str | None) -> bytes:
    try:
        if path.is_symlink():
            raise _DamagedError(path.name)
        data = path.read_bytes()
    except OSError as error:
        raise _DamagedError(path.name) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise _DamagedError(path.name)
    return data


def _inside(target: Path, name: str) -> Path:
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise _DamagedError(name)
    return target / name


def _empty(target: Path) -> None:
    for path in target.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
