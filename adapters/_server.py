"""Servers in processes of their own that end with the process that started them, however it ends.

The parent holds one end of a pipe. A small guard process holds the other and starts the server; when the pipe closes,
because the parent closed it or was killed, the guard stops the server. Where the kernel can (Linux), the server is
also stopped when the guard itself is killed. This file is also the guard's program, so it imports only the library.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 0.2


class Child:
    """A server process. It is started at once.

    Args:
        command: Program and arguments.
        log: File that its output is appended to.
        env: Its whole environment.
        cwd: Its working directory.
        user: The account it runs as; only for root.
        stop_signal: What asks it to stop.
        grace: Seconds that it has for that before it is killed.
        scratch: A directory that is removed when it has ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path,
        user: str | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        grace: float = 15.0,
        scratch: Path | None = None,
    ) -> None:
        arguments = [str(int(stop_signal)), str(grace), user or "", str(scratch or ""), *command]
        self._grace, self._scratch = grace, scratch
        with log.open("ab") as output:
            self._guard = subprocess.Popen(  # noqa: S603 - no shell
                [sys.executable, "-IS", str(Path(__file__).resolve()), *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
            )
        _running.add(self)

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._guard.poll() is None

    @property
    def status(self) -> int | None:
        """The status that it ended with, or None while it runs."""
        return self._guard.poll()

    def stop(self) -> None:
        """Stops it and waits until it is gone. May be called more than once."""
        self.let_go()
        try:
            self._guard.wait(self._grace + 10)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        _running.discard(self)

    def let_go(self) -> None:
        """Closes the pipe and does not wait."""
        if self._guard.stdin is not None:
            with contextlib.suppress(OSError):
                self._guard.stdin.close()


#: A forked worker gets a copy of every pipe, and would keep the servers alive after this process: it closes them.
_running: "weakref.WeakSet[Child]" = weakref.WeakSet()


def _let_go_of_the_parents() -> None:
    for child in list(_running):
        child.let_go()
    _running.clear()


os.register_at_fork(after_in_child=_let_go_of_the_parents)


def free_port() -> int:
    """A port on loopback that is free now. Another process may take it meanwhile: start again if it does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(
    ready: Callable[[], bool], *, children: Sequence[Child], seconds: float, every: float = _LOOK_SECONDS
) -> bool:
    """Waits until ``ready`` says so, and asks it ``every`` so many seconds; False when a child ended or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and all(child.running for child in children):
        if ready():
            return True
        time.sleep(every)
    return False


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _guard(stop_signal: signal.Signals, grace: float, user: str, scratch: str, command: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its pipe and with its server, never before them

    def child_setup() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)

    account = {"user": user, "group": _group(user), "extra_groups": ()} if user else {}
    server = subprocess.Popen(  # type: ignore[call-overload]  # noqa: S603 - no shell
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=child_setup,  # safe: the guard has one thread
        **account,
    )
    _await_end(server)
    _end(server, stop_signal, grace)
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return int(server.returncode)


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def _await_end(server: "subprocess.Popen[bytes]") -> None:
    """Returns when the pipe closes or the server ends."""
    while server.poll() is None:
        readable, _, _ = select.select([0], [], [], _LOOK_SECONDS)
        if readable and not os.read(0, 1):
            return


def _end(server: "subprocess.Popen[bytes]", stop_signal: signal.Signals, grace: float) -> None:
    if server.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            server.send_signal(stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(grace)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)  # what the server has left behind
    server.wait()


if __name__ == "__main__":
    sys.exit(_guard(signal.Signals(int(sys.argv[1])), float(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:]))
