"""Where an export goes: whole or not at all, and never over what no export has written."""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError
from memorydojo.runs._files import TEMPORARY_PREFIX, saving, sync_directory


def make_parent(target: Path) -> None:
    """Makes the directory of a target, if there is none.

    Raises:
        SavedRunError: It cannot be made.
    """
    with saving(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)


def refuse(target: Path) -> InvalidInputError:
    """The error for a place that holds something else."""
    return InvalidInputError(
        f"{plain(str(target))} exists and holds something else than such an export; choose another name or remove it"
    )


@contextmanager
def new_file(target: Path, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A temporary file beside the target, which takes its place when the block ends well.

    Args:
        target: The file to write.
        ours: Says of an existing file whether an export has written it.

    Raises:
        InvalidInputError: The target holds something else.
        SavedRunError: It cannot be written; what was there before still is.
    """
    make_parent(target)
    if target.exists() and not (target.is_file() and (target.stat().st_size == 0 or ours(target))):
        raise refuse(target)
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{target.name}")
    with saving(target):
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(target.parent)


@contextmanager
def new_directory(target: Path, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A temporary directory beside the target, which takes its place when the block ends well.

    Args:
        target: The directory to write.
        ours: Says of an existing directory that is not empty whether an export has written all that is in it.

    Raises:
        InvalidInputError: The target holds something else.
        SavedRunError: It cannot be written; what was there before still is.
    """
    make_parent(target)
    if target.exists() and not (target.is_dir() and (not any(target.iterdir()) or ours(target))):
        raise refuse(target)
    name = f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{target.name}"
    temporary, old = target.with_name(name), target.with_name(f"{name}-old")
    with saving(target):
        temporary.mkdir()
        try:
            yield temporary
            if target.exists():
                os.replace(target, old)
            try:
                os.replace(temporary, target)
            except OSError:
                if old.exists():
                    os.replace(old, target)
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        sync_directory(target.parent)


def check_runs(runs: object) -> None:
    """Refuses the path of a directory in place of its runs.

    Raises:
        InvalidInputError: It is a path.
    """
    if isinstance(runs, str | os.PathLike):
        raise InvalidInputError("an export takes runs, not the path of a directory: give memorydojo.load_runs(path)")
