import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memorydojo.adapters._server import Child, free_port, tail, wait_until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
#: A server with a process of its own; both write down their numbers.
SERVER = (
    "import os, subprocess, sys, time; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "open('pids.partial', 'w').write(f'{os.getpid()} {child.pid}'); os.rename('pids.partial', 'pids'); time.sleep(600)"
)
PARENT = (
    "import sys, time; from pathlib import Path; from memorydojo.adapters._server import Child; "
    "place = Path(sys.argv[1]); "
    "child = Child([sys.executable, '-c', sys.argv[2]], log=place / 'log', env={}, cwd=place, grace=2); "
    "print(child._guard.pid, flush=True); time.sleep(600)"
)


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def soon(holds: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def pids(place: Path) -> list[int]:
    assert soon((place / "pids").exists)
    return [int(pid) for pid in (place / "pids").read_text().split()]


def child(place: Path, program: str, *, grace: float = 2) -> Child:
    return Child([sys.executable, "-c", program], log=place / "log", env={}, cwd=place, grace=grace)


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@linux
def test_a_stopped_server_is_gone_with_all_its_processes(tmp_path: Path) -> None:
    server = child(tmp_path, SERVER)
    found = pids(tmp_path)
    assert server.running
    server.stop()
    server.stop()
    assert not server.running
    assert soon(lambda: all(map(gone, found)))  # the system takes a moment to clear killed processes away


@linux
def test_a_server_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    server = child(tmp_path, STUBBORN, grace=0.3)
    assert soon(lambda: "up" in tail(tmp_path / "log"))
    server.stop()
    assert not server.running


@linux
def test_a_server_is_gone_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), SERVER], stdout=subprocess.DEVNULL)
    found = pids(tmp_path)
    assert not any(map(gone, found))
    parent.kill()
    parent.wait()
    assert soon(lambda: all(map(gone, found)))


@linux
def test_a_server_is_gone_when_its_guard_is_killed(tmp_path: Path) -> None:
    server = child(tmp_path, SERVER)
    found = pids(tmp_path)
    server._guard.kill()
    assert soon(lambda: gone(found[0]))
    server.stop()
    for pid in found[1:]:
        os.kill(pid, signal.SIGKILL)


def test_a_server_that_ends_is_noticed(tmp_path: Path) -> None:
    server = child(tmp_path, "print('cannot bind')")
    assert not wait_until(lambda: False, children=[server], seconds=20)
    assert "cannot bind" in tail(tmp_path / "log")
    server.stop()


def test_a_program_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    server = Child([str(tmp_path / "nothing")], log=tmp_path / "log", env={}, cwd=tmp_path)
    assert not wait_until(lambda: False, children=[server], seconds=20)
    assert "FileNotFoundError" in tail(tmp_path / "log")
    server.stop()


def test_a_server_is_awaited_until_it_is_ready(tmp_path: Path) -> None:
    server = child(tmp_path, STUBBORN, grace=0.2)
    assert wait_until(lambda: "up" in tail(tmp_path / "log"), children=[server], seconds=20)
    server.stop()


def test_a_free_port_can_be_bound() -> None:
    assert 0 < free_port() < 65536


def test_the_tail_of_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""
