import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memorydojo as md
from memorydojo.cli.main import app

PLAN = """
name = "small"
trajectories = ["banking-003-01"]
memories = "full_context"
objectives = "own-domain"
payloads = ["seed-1"]
clean = true
"""


def invoke(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(PLAN)
    return path


def test_dry_run_says_what_would_be_done_and_does_nothing(plan: Path, tmp_path: Path) -> None:
    code, said = invoke("sweep", plan, "--directory", tmp_path / "runs", "--dry-run")
    assert code == 0
    assert "2 runs, 0 of them done" in said
    assert "6 task sessions, 0 history sessions" in said
    assert "estimate" not in said  # neither the simulated agent nor full_context asks a model
    assert not (tmp_path / "runs").exists()


def test_dry_run_as_json_has_every_count(plan: Path, tmp_path: Path) -> None:
    code, said = invoke("sweep", plan, "--directory", tmp_path / "runs", "--dry-run", "--json")
    report = json.loads(said)
    assert code == 0
    assert (report["name"], report["runs"], report["task_sessions"]) == ("small", 2, 6)
    assert {(c["condition"], c["objective"], c["runs"]) for c in report["cells"]} == {
        ("clean", None, 1),
        ("seed", "banking", 1),
    }


def test_an_experiment_lists_the_files_that_are_missing_and_the_command_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, said = invoke("sweep", "--experiment", "table-7", "--dry-run")
    assert "465 runs" in said
    assert "20 files are missing" in said
    assert "memorydojo optimize --memory mem0 --objective slack --output optimized/mem0/slack.json" in said
    assert "models to declare in a file for --models: gpt-5.6-luna, text-embedding-3-small" in said


def test_a_sweep_with_missing_payloads_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(md.MemoryDojoError, match=r"20 payload files of this sweep are missing.*memorydojo optimize"):
        invoke("sweep", "--experiment", "table-7")
    assert list(tmp_path.iterdir()) == []


def test_neither_file_nor_experiment_is_an_error() -> None:
    with pytest.raises(md.MemoryDojoError, match="give either a file or --experiment"):
        invoke("sweep")


def test_json_without_dry_run_is_an_error(plan: Path) -> None:
    with pytest.raises(md.MemoryDojoError, match="--json is for --dry-run"):
        invoke("sweep", plan, "--json")


def test_an_unknown_executor_is_named(plan: Path, tmp_path: Path) -> None:
    with pytest.raises(md.MemoryDojoError, match="unknown executor 'thread'; did you mean 'threads'"):
        invoke("sweep", plan, "--directory", tmp_path / "runs", "--executor", "thread")


def test_experiments_are_listed_shown_and_copied(tmp_path: Path) -> None:
    assert "tables-8-9" in invoke("experiments", "list")[1]
    copy = tmp_path / "mine.toml"
    invoke("experiments", "copy", "table-7", copy)
    assert copy.read_text() == invoke("experiments", "show", "table-7")[1]
    with pytest.raises(md.MemoryDojoError, match="exists; remove it"):
        invoke("experiments", "copy", "table-7", copy)


@pytest.mark.slow
def test_a_sweep_runs_is_quiet_without_a_terminal_and_goes_on(plan: Path, tmp_path: Path) -> None:
    directory = tmp_path / "runs"
    code, said = invoke("sweep", plan, "--directory", directory, "--jobs", "2")
    assert code == 0
    assert said.splitlines() == [
        f"small: 2 runs, saved in {directory}",
        f"2 runs are done and saved in {directory}",
        f"next: memorydojo metrics {directory} --by memory",
    ]
    before = sorted((path, path.stat().st_mtime_ns) for path in directory.rglob("*.json*"))
    plan.write_text(PLAN.replace('["seed-1"]', '["seed-2"]'))
    code, said = invoke("sweep", plan, "--directory", directory)
    assert "warning: 1 run in" in said
    assert "banking.seed-1" in said
    assert len(md.load_runs(directory)) == 3
    assert set(before) <= {(path, path.stat().st_mtime_ns) for path in directory.rglob("*.json*")}


@pytest.mark.slow
def test_a_payload_that_never_enters_is_told_after_the_sweep_and_below_its_metrics(plan: Path, tmp_path: Path) -> None:
    plan.write_text(PLAN.replace("clean = true", "observation = 50"))
    result = CliRunner().invoke(app, ["sweep", str(plan), "--directory", str(tmp_path / "runs")])
    assert "warning: in 1 of the poisoned runs the payload never entered an observation" in result.stderr
    assert "In 1 of 1 poisoned run the payload never entered an observation" in invoke("metrics", tmp_path / "runs")[1]


def test_a_terminal_shows_rates_and_the_remaining_time(plan: Path, tmp_path: Path) -> None:
    directory = tmp_path / "runs"
    command = [sys.executable, "-m", "memorydojo.cli.main", "sweep", str(plan), "--directory", str(directory)]
    controller, terminal = pty.openpty()
    process = subprocess.Popen(command, stdout=terminal, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "160"})
    os.close(terminal)
    said = b""
    while True:
        try:
            part = os.read(controller, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(controller)
    assert process.wait(60) == 0, process.stderr.read() if process.stderr else ""
    if process.stderr is not None:
        process.stderr.close()
    text = said.decode()
    assert "2/2 runs" in text
    assert "sessions/min" in text
    assert "remaining 0:00:00" in text


LONG = """
name = "long"
trajectories = ["banking-010-01", "banking-010-02", "banking-010-03", "banking-010-04"]
memories = "vector"
objectives = "own-domain"
payloads = ["seed-1", "seed-2"]
clean = true
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals to a group of processes")
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_ctrl_c_ends_after_the_runs_under_way_and_says_how_to_go_on(tmp_path: Path, executor: str) -> None:
    file, directory = tmp_path / "long.toml", tmp_path / "runs"
    file.write_text(LONG)
    process = _start(file, directory, executor)
    _wait_for(directory, "runs/*/end.json", process)
    # As a terminal does it: to every process of the group.
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "stopping after the runs under way" in said
    assert "of 12 runs are done and saved in" in said
    assert "run the same again to go on" in said
    assert "Traceback" not in said
    runs = md.load_runs(directory)
    assert 0 < len(runs) < 12
    assert all(run.complete for run in runs)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals to a group of processes")
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path, executor: str) -> None:
    file, directory = tmp_path / "long.toml", tmp_path / "runs"
    file.write_text(LONG)
    process = _start(file, directory, executor)
    _wait_for(directory, "runs/*/sessions.jsonl", process)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert time.monotonic() - start < 10
    assert "what was complete is saved" in said


def _start(file: Path, directory: Path, executor: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "memorydojo.cli.main", "sweep", str(file), "--directory", str(directory)]
    return subprocess.Popen(
        [*command, "--jobs", "2", "--executor", executor],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heed_ctrl_c,
    )


def _heed_ctrl_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that it starts, these tests too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_for(directory: Path, pattern: str, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 240
    while not list(directory.glob(pattern)):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
