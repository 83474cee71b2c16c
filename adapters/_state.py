"""What every adapter does with its directory: claim it, copy it, and say what went wrong with it."""

import contextlib
import itertools
import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from memorydojo.errors import InvalidInputError, MemorySystemError, ModelError

MARKER = "memory.json"
_COPIED_AT_ONCE = 1 << 20


def claim(directory: Path, system: str, identity: dict[str, Any]) -> None:
    """Makes ``directory`` the memory of ``system``, or checks that it is.

    Args:
        directory: An existing directory, empty or left by an earlier instance.
        system: The adapter's name.
        identity: What must be the same whenever this memory is opened, as JSON data.

    Raises:
        MemorySystemError: The directory is missing, holds something else, or was made with another identity.
    """
    expected = {"memory": system, "format": 1, **identity}
    marker = directory / MARKER
    if not directory.is_dir():
        raise MemorySystemError(system, "open", f"there is no directory {directory}", "Create it first.")
    if not marker.exists():
        if any(directory.iterdir()):
            raise MemorySystemError(
                system,
                "open",
                f"{directory} is not empty and holds no memory",
                "Give the memory a directory of its own.",
            )
        replace_text(marker, json.dumps(expected))
        return
    try:
        found = json.loads(marker.read_text(encoding="utf-8"))
    except ValueError as error:
        raise MemorySystemError(system, "open", f"{marker} cannot be read: {error}", _RESTORE) from error
    if found != expected:
        raise MemorySystemError(
            system,
            "open",
            f"{directory} holds the memory {found}, not {expected}",
            "Open it with the memory system and the models that made it, or use an empty directory.",
        )


class Lock:
    """Keeps other instances, of this and of other processes, out of a memory's directory.

    The system releases it when the process ends, however it ends.

    Args:
        system: The adapter's name.
        directory: The memory's directory.

    Raises:
        MemorySystemError: Another instance has it open.
    """

    def __init__(self, system: str, directory: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise MemorySystemError(
                system, "open", "this system has no file locks of POSIX", "On Windows, use WSL."
            ) from error
        self._descriptor: int | None = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if not isinstance(error, BlockingIOError):
                raise
            raise MemorySystemError(
                system, "open", f"{directory} is open in another instance", "Close that one first, or fork it."
            ) from error

    def release(self) -> None:
        """Lets others in. May be called more than once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def counted_ids(write: int) -> Iterator[str]:
    """Ids of the entries that a write makes: well-formed UUIDs, unique and ascending in a memory.

    Args:
        write: The 1-based number of the write.
    """
    for number in itertools.count(1):
        yield f"{write:08x}-0000-4000-8000-{number:012x}"


_RESTORE = "Restore the directory from a checkpoint, or start with an empty one."


def replace_text(path: Path, text: str) -> None:
    """Replaces a small file in one step, so that it is never half written."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


@contextlib.contextmanager
def new_copy(target: Path) -> Iterator[Path]:
    """A directory to write a copy into; it becomes ``target`` only when everything is there.

    Raises:
        InvalidInputError: ``target`` exists and is not an empty directory.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"cannot write a checkpoint to {target}: it exists and is not an empty directory")
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    partial.replace(target)


def copy_paths(names: Iterable[str], source: Path, target: Path) -> None:
    """Copies the files and directories that exist of ``names``; lock files stay behind."""
    for name in names:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, target / name, ignore=shutil.ignore_patterns(".lock"))
        elif path.exists():
            shutil.copy2(path, target / name)


class Rollback:
    """Makes writes all or nothing for a system that cannot do so itself: its files are copied before each of them.

    The copy is one file, not a directory: where the disk keeps a journal, removing a directory may take as long as
    waiting until a file is on disk. Whoever opens the memory calls `undo` first, in case that the process died in a
    write.

    Args:
        directory: The memory's directory.
        names: The files and directories in it that a write may change.
    """

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        self._directory, self._names = directory, tuple(names)
        self._kept = directory / "before-write"

    @contextlib.contextmanager
    def guarding(self, close: Callable[[], None]) -> Iterator[None]:
        """Runs a write; if it fails, everything is as it was before. The system is closed afterwards in any case.

        Args:
            close: Makes the system let go of its files; may be called twice.
        """
        self._keep()
        try:
            yield
            close()
        except BaseException:
            close()
            self.undo()
            raise
        self._kept.unlink()

    def undo(self) -> None:
        """Puts back what a write that did not end has changed. Copies, so that it can be done again if interrupted."""
        if not self._kept.exists():
            return
        try:
            with tarfile.TarFile(self._kept) as kept:
                kept.getmembers()  # it must be readable to its end before anything is removed for it
                for name in self._names:
                    path = self._directory / name
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink(missing_ok=True)
                kept.extraction_filter = lambda member, path: member  # as they were: the copy is this memory's own
                kept.extractall(self._directory)  # noqa: S202
        except tarfile.TarError as error:
            raise OSError(
                f"{self._kept}, the copy from before a write that did not end, is damaged: {error}"
            ) from error
        self._kept.unlink()

    def _keep(self) -> None:
        """Copies the files that exist; the copy has its name only when everything is in it."""
        partial = self._kept.with_name(f"{self._kept.name}.partial")
        with tarfile.TarFile(partial, "w", copybufsize=_COPIED_AT_ONCE) as kept:
            for name in self._names:
                if (self._directory / name).exists():
                    kept.add(self._directory / name, name, filter=_without_lock)
        partial.replace(self._kept)


def _without_lock(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith("/.lock") else member


class Sessions:
    """The ids of the sessions that a memory has written, in order, in one file beside the system's own.

    Args:
        directory: The memory's directory.
        system: The adapter's name.
    """

    NAME = "sessions.json"

    def __init__(self, directory: Path, system: str) -> None:
        self._path, self._system = directory / self.NAME, system

    def written(self) -> list[str]:
        """The ids, oldest first."""
        return [str(id_) for id_ in json.loads(self._path.read_text(encoding="utf-8"))] if self._path.exists() else []

    def before(self, id_: str) -> list[str]:
        """The ids that were written before the new session ``id_``.

        Raises:
            MemorySystemError: It is one of them.
        """
        written = self.written()
        if id_ in written:
            raise MemorySystemError(
                self._system, "write", f"session {id_!r} is already stored", "Give each session its own id."
            )
        return written

    def add(self, id_: str) -> None:
        """Notes that a session was written."""
        replace_text(self._path, json.dumps([*self.written(), id_]))


@contextlib.contextmanager
def reporting(system: str, call: str, *expected: type[Exception]) -> Iterator[None]:
    """Turns failures of the models, of files and of the ``expected`` kinds into `MemorySystemError`."""
    kinds: tuple[type[Exception], ...] = (OSError, *expected)
    try:
        yield
    except ModelError as error:
        raise MemorySystemError(
            system, call, f"its model failed: {error}", "Check the model endpoint, then run the session again."
        ) from error
    except kinds as error:
        raise MemorySystemError(
            system, call, f"{type(error).__name__}: {error}", "Check the directory of this memory and the disk."
        ) from error


class Guard:
    """Lets one call at a time use a memory, and none after it was closed.

    Args:
        system: The adapter's name.
        expected: The kinds of errors that the system's own storage raises.
    """

    def __init__(self, system: str, *expected: type[Exception]) -> None:
        self._system, self._expected = system, expected
        self._lock = threading.RLock()
        self._closed = False

    @contextlib.contextmanager
    def using(self, call: str) -> Iterator[None]:
        """Holds the memory for one ``call`` and reports failures as `MemorySystemError`."""
        with self._lock:
            if self._closed:
                raise MemorySystemError(self._system, call, "this instance is closed", "Open the directory again.")
            with reporting(self._system, call, *self._expected):
                yield

    @contextlib.contextmanager
    def closing(self) -> Iterator[bool]:
        """Ends the use; gives whether this is the first time."""
        with self._lock:
            first, self._closed = not self._closed, True
            yield first


def unicode(text: str) -> str:
    r"""The text as valid Unicode: surrogate pairs joined, lone surrogates replaced, all else as it is.

    >>> unicode("a\ud83d\ude00 b\ud800")
    'a😀 b�'
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
