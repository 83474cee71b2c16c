"""Reading and writing the files of saved runs: atomic, ASCII-only JSON, clear errors."""

import errno
import json
import math
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memorydojo._display import plain
from memorydojo.errors import SavedRunError, causes

TEMPORARY_PREFIX = ".memorydojo-"

_REMEDY = "Make room or choose a directory that you may write to; what was saved before is still there"


def to_json(model: BaseModel, *, canonical: bool = False) -> str:
    """One line of ASCII JSON; any text survives it, lone surrogates included.

    JSON has no numbers that are not finite: they are written as the strings ``"NaN"``, ``"Infinity"`` and
    ``"-Infinity"``, which number fields read back.

    Args:
        model: What to write.
        canonical: Keys sorted and no spaces, so that equal models have equal JSON.

    Raises:
        SavedRunError: A field that must hold JSON data holds something else.
    """
    # Not pydantic's own JSON: it cannot write lone surrogates, and makes null of numbers that are not finite.
    data = finite(model.model_dump())
    separators = (",", ":") if canonical else None
    try:
        return json.dumps(data, allow_nan=False, default=_plain, sort_keys=canonical, separators=separators)
    except (TypeError, ValueError) as error:
        raise SavedRunError(
            f"{type(model).__name__} cannot be saved: {plain(str(error), 200)}. "
            "Tool arguments, settings and metadata must be JSON data"
        ) from error


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no JSON data")


def finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    return data


def shown(path: Path) -> str:
    """A path as it may be printed."""
    return plain(str(path))


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Turns errors of the file system into a `SavedRunError` that names the path and the remedy."""
    try:
        yield
    except OSError as error:
        raise SavedRunError(f"cannot write {shown(path)}: {error.strerror or error}. {_REMEDY}") from error


_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_SQLITE_REFUSALS = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)


def refusal(error: BaseException) -> str | None:
    """Why the disk refused, if that is what an error comes from; None if it comes from something else."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _REFUSALS:
            return cause.strerror or str(cause)
        # The extended code has the kind in its last byte.
        if isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_REFUSALS:
            return plain(str(cause), 200)
    return None


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns errors that come from a full or read-only disk, through whatever code, into a `SavedRunError`."""
    try:
        yield
    except SavedRunError:
        raise
    except Exception as error:
        reason = refusal(error)
        if reason is None:
            raise
        raise SavedRunError(f"cannot write {shown(path)}: {reason}. {_REMEDY}") from error


def write_atomic(path: Path, text: str) -> None:
    """Writes a whole file or nothing; the file is on disk when this returns.

    Raises:
        SavedRunError: It cannot be written.
    """
    # Unique also among the threads of a process: several may make the same directory of runs at once.
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{path.name}")
    with saving(path):
        try:
            with open(temporary, "w", encoding="ascii", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


class LineFile:
    """A file that lines are appended to; each is on disk when `append` returns, whole or not at all.

    Args:
        path: The file, which must not exist.
        whole: To go on with a file instead: how many bytes of it are whole lines. What follows is cut off, as a last
            line without its end is what a kill leaves.

    Attributes:
        lines: How many lines were appended.

    Raises:
        SavedRunError: It cannot be made or opened.
    """

    def __init__(self, path: Path, *, whole: int | None = None) -> None:
        self.path = path
        self.lines = 0
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | (os.O_EXCL if whole is None else 0)
        with saving(path):
            self._file: int | None = os.open(path, flags, 0o644)
            if whole is not None:
                os.ftruncate(self._file, whole)
            sync_directory(path.parent)

    def append(self, model: BaseModel) -> None:
        """Saves a line. After an error no more are taken.

        Raises:
            SavedRunError: The disk refuses, or the file is closed.
        """
        if self._file is None:
            raise SavedRunError(f"{shown(self.path)} is closed; start again")
        line = (to_json(model) + "\n").encode("ascii")
        with saving(self.path):
            size = os.fstat(self._file).st_size
            try:
                _write_all(self._file, line)
                os.fsync(self._file)
            except OSError:
                # A part of the line must not stay in front of later ones: cut it off, and take no more.
                self.close()
                os.truncate(self.path, size)
                raise
        self.lines += 1

    def close(self) -> None:
        """Releases the file. May be called more than once."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: Path) -> None:
    """Makes new, renamed and removed names in a directory permanent."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        SavedRunError: The file is missing, unreadable, no JSON or no object.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise SavedRunError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise SavedRunError(f"{shown(path)} is no JSON: {error}. Restore the file from a copy") from error
    if not isinstance(data, dict):
        raise SavedRunError(f"{shown(path)} holds no JSON object. Restore the file from a copy")
    return data


def check_schema(version: object, supported: int, path: Path) -> None:
    """Refuses what a newer version of this library has written.

    Raises:
        SavedRunError: The version is newer, or no version at all.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SavedRunError(f"{shown(path)} has no valid schema_version: {version!r}. Restore the file from a copy")
    if version > supported:
        raise SavedRunError(
            f"{shown(path)} has schema version {version}; this version of memorydojo reads up to {supported}. "
            "Upgrade with: pip install --upgrade memorydojo"
        )
