import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorydojo.adapters import _letta_server, _letta_setup
from memorydojo.adapters._letta_cli import app
from memorydojo.cli.main import app as whole
from memorydojo.cli.main import main
from memorydojo.errors import MemorySystemError

ADDRESS = {"url": "http://127.0.0.1:9", "password": "secret", "pid": 1, "log": "server.log"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(_letta_server.HOME_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def announced(home: Path) -> Iterator[Path]:
    """A place whose server says that it runs."""
    (home / "server.json").write_text(json.dumps(ADDRESS))
    with (home / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield home


def test_the_command_is_part_of_memorydojo() -> None:
    result = CliRunner().invoke(whole, ["letta", "--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in ("up", "down", "status"))


def test_status_without_a_server_names_the_command_and_fails(home: Path) -> None:
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 1
    assert f"not set up in {home}" in result.output
    assert "memorydojo letta up" in result.output


def test_status_names_the_server_and_not_its_password(announced: Path) -> None:
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 0
    assert "http://127.0.0.1:9" in result.output
    assert "secret" not in result.output


def test_up_does_not_start_a_second_server(announced: Path) -> None:
    result = CliRunner().invoke(app, ["up"])
    assert result.exit_code == 0
    assert "running already" in result.output


def test_what_a_killed_server_left_behind_is_no_server(home: Path) -> None:
    (home / "server.json").write_text(json.dumps({**ADDRESS, "pid": os.getpid()}))
    (home / "server.lock").touch()
    assert _letta_server.running() is None
    assert "not running" in CliRunner().invoke(app, ["down"]).output


def test_the_pinned_packages_name_no_address() -> None:
    lines = _letta_server.REQUIREMENTS.read_text().splitlines()
    assert "letta==0.16.8" in lines
    assert all("==" in line and "://" not in line for line in lines)
    assert not any(line.startswith("torch==") for line in lines)


def test_a_set_up_with_other_packages_is_not_taken_for_this_one(home: Path) -> None:
    (home / "ready").write_text("letta==0.16.7\n")
    assert not _letta_server.is_set_up(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs as another account")
def test_a_place_out_of_reach_of_postgresqls_account_is_refused(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(MemorySystemError, match=_letta_server.HOME_VARIABLE):
        _letta_setup.set_up(closed / "letta", lambda text: None)


def test_a_set_up_that_fails_says_what_failed_and_where_its_log_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.chmod(0o755)
    monkeypatch.setattr(_letta_setup, "_check_within_reach", lambda place: None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(sys, "argv", ["memorydojo", "letta", "set-up"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "set-up: false -m venv failed" in said
    assert f"See {home / 'setup.log'}." in said
    assert not _letta_server.is_set_up(home)


@pytest.fixture
def own_place() -> Iterator[Path]:
    """A place with the packages of the real one, so that no server of the user's is touched."""
    source = _letta_server.home()
    _letta_setup.set_up(source, print)
    with tempfile.TemporaryDirectory(dir=source) as folder:
        place = Path(folder)
        place.chmod(0o711)
        for name in ("venv", "ready", "database-password"):
            (place / name).symlink_to(source / name)
        subprocess.run(["cp", "-a", str(source / "database"), str(place)], check=True)
        yield place


@pytest.mark.slow
@pytest.mark.letta_server
@pytest.mark.skipif(not os.environ.get("MEMORYDOJO_TEST_LETTA"), reason="needs a Letta server: make test-letta")
def test_a_server_starts_and_stops_and_is_gone_when_its_process_is_killed(own_place: Path) -> None:
    place = own_place
    environment = {**os.environ, _letta_server.HOME_VARIABLE: str(place)}

    def command(name: str) -> "subprocess.CompletedProcess[str]":
        program = [sys.executable, "-m", "memorydojo.cli.main", "letta", name]
        return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)

    assert "ready at http://127.0.0.1:" in command("up").stdout
    assert command("status").returncode == 0
    assert command("down").stdout == "stopped\n"
    assert command("status").returncode == 1
    command("up")
    found = _letta_server.running(place)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    deadline = time.monotonic() + 40
    while _processes(place) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _processes(place)
    assert command("status").returncode == 1


def _processes(place: Path) -> list[str]:
    """The commands that run and have to do with a place."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(place) in command:
            found.append(command)
    return found
