"""A server as a child process that is gone when its memory is closed and when this process ends, however it ends.

A shell stands between: it starts the server, and kills it when the pipe from this process closes. The system closes
the pipe even after ``kill -9``. A signal at the parent's death (``PR_SET_PDEATHSIG``) would come too early: it fires
when the *thread* ends that started the child, and worker threads do.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memorydojo.errors import MemorySystemError

#: $1 is the scratch directory, the rest the server's command; the pipe is standard input.
_KEEPER = """
exec 3<&0 </dev/null
scratch=$1
shift
"$@" 3<&- &
server=$!
(read -r _ <&3; kill -KILL $server) &
watcher=$!
exec 3<&-
wait $server
status=$?
kill -KILL $watcher
rm -rf -- "$scratch"
exit $status
"""
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
        self._system, self._log, self._scratch = system, log, scratch
        if environment is None:
            environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 (no text of a session gets here)
                ["/bin/sh", "-c", _KEEPER, "memorydojo-server", str(scratch), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=dict(environment),
                start_new_session=True,  # an interrupt from the keyboard is for this process, not for the server
            )
        _running.add(self)

    def wait(self, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Waits until ``ready`` says so.

        Raises:
            MemorySystemError: The server ended, or is not ready in time; it is stopped then.
        """
        end = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                self._fail(f"its server ended at once (status {self._process.returncode})")
            if time.monotonic() > end:
                self._fail(f"its server was not ready after {seconds:g} s")
            time.sleep(0.005)

    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Kills the server and waits until it is gone. May be called more than once."""
        self._let_go()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)
        _running.discard(self)

    def _let_go(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _fail(self, problem: str) -> None:
        self.stop()
        with contextlib.suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
            problem = "; ".join([problem, *lines])
        raise MemorySystemError(self._system, "open", problem, f"Its log is {self._log}.")


#: A forked worker gets a copy of every pipe, and would keep the servers alive after this process: it closes them.
_running: "weakref.WeakSet[Server]" = weakref.WeakSet()


def _let_go_of_the_parents() -> None:
    for server in list(_running):
        server._let_go()
    _running.clear()


os.register_at_fork(after_in_child=_let_go_of_the_parents)
