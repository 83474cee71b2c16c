import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memorydojo.adapters._graphiti_process import Server, scratch_directory
from memorydojo.errors import MemorySystemError


def sleeper(tmp_path: Path, *command: str) -> Server:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 60"
    scratch = scratch_directory("test")
    server = Server("test", command or ("/bin/sh", "-c", script), log=tmp_path / "log", scratch=scratch)
    if not command:
        server.wait(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    return server


def pid_of(tmp_path: Path) -> int:
    return int((tmp_path / "pid").read_text())


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not runs(pid)


def test_a_server_and_its_scratch_directory_are_gone_when_it_is_stopped(tmp_path: Path) -> None:
    server = sleeper(tmp_path)
    assert server.alive()
    assert runs(pid_of(tmp_path))
    server.stop()
    server.stop()
    assert not server.alive()
    assert not runs(pid_of(tmp_path))
    assert not server.scratch.exists()


def test_a_server_that_ends_at_once_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    server = sleeper(tmp_path, "/bin/sh", "-c", "echo no such module; exit 3")
    with pytest.raises(MemorySystemError, match=r"status 3\); no such module.*Its log is"):
        server.wait(lambda: False)
    server.stop()
    assert not server.scratch.exists()


def test_a_server_that_does_not_become_ready_is_stopped(tmp_path: Path) -> None:
    server = sleeper(tmp_path)
    with pytest.raises(MemorySystemError, match="not ready"):
        server.wait(lambda: False, seconds=0.05)
    assert gone(pid_of(tmp_path))


def test_a_command_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    server = sleeper(tmp_path, str(tmp_path / "no-such-server"))
    with pytest.raises(MemorySystemError, match="ended at once"):
        server.wait(lambda: False)
    server.stop()


def test_a_server_lives_on_when_the_thread_that_started_it_ends(tmp_path: Path) -> None:
    started: list[Server] = []
    thread = threading.Thread(target=lambda: started.append(sleeper(tmp_path)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert runs(pid_of(tmp_path))
    started[0].stop()
    assert gone(pid_of(tmp_path))


def test_a_server_gets_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server = sleeper(tmp_path, "/bin/sh", "-c", "env; exit 1")
    with pytest.raises(MemorySystemError):
        server.wait(lambda: False)
    server.stop()
    assert "PATH=" in (tmp_path / "log").read_text()
    assert "sk-secret" not in (tmp_path / "log").read_text()


def test_a_path_that_is_too_long_for_a_socket_is_avoided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    scratch = scratch_directory("test")
    assert len(str(scratch / "server.sock")) < 104
    assert scratch.stat().st_mode & 0o777 == 0o700
    scratch.rmdir()


_PARENT = """
import os, sys, time
from pathlib import Path
from memorydojo.adapters._graphiti_process import Server, scratch_directory
place = Path(sys.argv[1])
server = Server("test", ["/bin/sh", "-c", f"echo $$ > {place}/pid; exec sleep 60"], log=place / "log",
                scratch=scratch_directory("test"))
server.wait(lambda: (place / "pid").exists() and (place / "pid").read_text().endswith("\\n"))
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    (place / "child").write_text(str(child))
(place / "scratch").write_text(str(server.scratch))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_server_is_gone_when_its_parent_is_killed_even_with_forked_workers_left(tmp_path: Path, how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT, str(tmp_path), how], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        pid = pid_of(tmp_path)
        assert runs(pid)
        parent.send_signal(signal.SIGKILL)
        try:
            assert gone(pid)
            scratch = Path((tmp_path / "scratch").read_text())
            end = time.monotonic() + 5
            while scratch.exists() and time.monotonic() < end:
                time.sleep(0.01)
            assert not scratch.exists()
        finally:
            if how == "fork":
                os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
