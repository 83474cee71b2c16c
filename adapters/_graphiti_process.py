"""FalkorDB as a child process on a unix socket of its own."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memorydojo.adapters._server import Child, tail, wait_until
from memorydojo.errors import MemorySystemError

_LONGEST_PATH = 100
_LAST_LINES = 5


def scratch_directory(system: str) -> Path:
    """A new directory for sockets and temporary files, with a path that is short enough for a socket in it.

    Raises:
        MemorySystemError: There is no place with a short path.
    """
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 (mkdtemp makes it private)
        if len(os.fsencode(place)) + len("/memorydojo-12345678/server.sock") <= _LONGEST_PATH:
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="memorydojo-", dir=place))
    raise MemorySystemError(
        system,
        "open",
        f"the path {tempfile.gettempdir()} is too long for a socket, or cannot be written to",
        f"Set TMPDIR to a directory whose path has at most {_LONGEST_PATH - 32} characters.",
    )


class Server:
    """A running server.

    Args:
        system: The adapter's name, for errors.
        command: The server's command; never made of text from a session.
        log: The file that gets what the server prints.
        scratch: A directory that is removed when the server has ended.
        environment: The server's environment; by default only PATH, so that keys stay here.

    Attributes:
        scratch: The directory that is removed with the server.
    """

    def __init__(
        self,
        system: str,
        command: Sequence[str],
        *,
        log: Path,
        scratch: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._system, self._log, self.scratch = system, log, scratch
        if environment is None:
            environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        self._child = Child(
            command, log=log, env=environment, cwd=scratch, stop_signal=signal.SIGKILL, grace=5, scratch=scratch
        )

    def wait(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Waits until ``ready`` says so.

        Raises:
            MemorySystemError: The server ended, or is not ready in time; it is stopped then.
        """
        if wait_until(ready, children=[self._child], seconds=seconds, every=0.005):
            return
        ended = self._child.status
        problem = f"was not ready after {seconds:g} s" if ended is None else f"ended at once (status {ended})"
        self.stop()
        said = tail(self._log, _LAST_LINES).replace("\n", "; ")
        raise MemorySystemError(
            self._system, "open", f"its server {problem}{'; ' if said else ''}{said}", f"Its log is {self._log}."
        )

    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._child.running

    def stop(self) -> None:
        """Kills the server and waits until it is gone. May be called more than once."""
        self._child.stop()
