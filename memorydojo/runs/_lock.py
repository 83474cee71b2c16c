"""Locks on files that the system releases when their holder ends, however it ends."""

import os
import sys
from pathlib import Path

from memorydojo.errors import RunInUseError, SavedRunError
from memorydojo.runs._files import saving, shown


def lock(path: Path, *, what: str, shared: bool = False) -> int:
    """Locks a file, which is made if it does not exist, or fails at once.

    Args:
        path: The file.
        what: What the lock is for, for the message.
        shared: Whether others may hold the lock too, if they share it as well.

    Returns:
        The file's descriptor; closing it releases the lock.

    Raises:
        RunInUseError: Another process, or another descriptor of this one, holds it.
        SavedRunError: The file cannot be made or locked.
    """
    if sys.platform == "win32":
        raise SavedRunError("writing runs needs a POSIX system (file locks); on Windows use WSL. Reading works")
    import fcntl

    while True:
        with saving(path):
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise RunInUseError(f"{what} is being written by another process; wait until it ends or stop it") from None
        except OSError as error:
            os.close(descriptor)
            raise SavedRunError(
                f"cannot lock {shown(path)}: {error.strerror or error}; use a file system with locks"
            ) from error
        if _is_file(descriptor, path):
            return descriptor
        os.close(descriptor)  # whoever held it has removed it since it was opened


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
