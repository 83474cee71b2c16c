"""The file of recorded answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import SavedRunError
from memorydojo.models.cache import Recorded, ResponseStore

SMALL = Recorded("application/json", b"{}", {})


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    store._database.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(SavedRunError, match="newer version; upgrade"):
        ResponseStore(tmp_path / "s.sqlite")


def test_something_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(SavedRunError, match="cannot open the store of answers"):
        ResponseStore(tmp_path / "s.sqlite")


def test_a_recorded_answer_is_read_back_as_it_was(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    answer = Recorded("text/plain", b"\x00\xff", {"prompt_tokens": 1})
    store.put("r", "q", 1, answer=answer)
    assert store.get("r", "q", 1) == answer
    assert store.get("r", "q", 2) is None
    store.close()


def test_a_store_that_is_closed_names_its_file(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    store.close()
    for use in (lambda: store.get("r", "q", 1), lambda: store.count("r"), lambda: store.put("r", "q", 1, answer=SMALL)):
        with pytest.raises(SavedRunError, match=r"cannot (read|write) the recorded answers in .*s\.sqlite"):
            use()


# Processes.

#: Writes answers of a run, forever or so many, and says after each that it is recorded.
WRITER = """
import sys
from pathlib import Path
from memorydojo.models.cache import Recorded, ResponseStore

path, run, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = ResponseStore(path)
for n in range(1, most + 1):
    body = f"{run} {n} ".encode() * 2000
    store.put(run, "q", n, answer=Recorded("text/plain", body, {"prompt_tokens": n}))
    print(n, flush=True)
store.close()
"""


@contextmanager
def writers(path: Path, runs: dict[str, int]) -> Iterator[list[Any]]:
    """Processes that write so many answers of a run each; none opens the file before all are ready to."""
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        started: list[Any] = [
            stack.enter_context(subprocess.Popen([*command, run, str(most)], **pipes)) for run, most in runs.items()
        ]
        try:
            for process in started:
                assert process.stdout.readline() == "ready\n"
            for process in started:
                process.stdin.write("go\n")
                process.stdin.flush()
            yield started
        finally:
            for process in started:
                process.kill()


def check_answers(path: Path, run: str, numbers: range) -> None:
    with closing(ResponseStore(path)) as store:
        for n in numbers:
            expected = Recorded("text/plain", f"{run} {n} ".encode() * 2000, {"prompt_tokens": n})
            assert store.get(run, "q", n) == expected


@pytest.mark.slow
def test_what_was_recorded_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    recorded = 0
    for attempt in range(3):
        run = f"run-{attempt}"
        with writers(path, {run: 10**6}) as (writer,):
            for _ in range(20 + 7 * attempt):
                writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            assert writer.wait(10) == -signal.SIGKILL
            recorded = 20 + 7 * attempt + len(writer.stdout.read().split())
        check_answers(path, run, range(1, recorded + 1))
        with closing(ResponseStore(path)) as store:
            assert store.count(run) in (recorded, recorded + 1)  # the kill may come before the word of the last
            assert store._database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"  # and all of them make it
    runs = [f"run-{n}" for n in range(4)]
    with writers(path, dict.fromkeys(runs, 100)) as started:
        for process in started:
            _, said = process.communicate(timeout=60)
            assert (process.returncode, said) == (0, "")
    for run in runs:
        check_answers(path, run, range(1, 101))


@pytest.mark.slow
def test_processes_that_make_the_file_at_once_all_get_it(tmp_path: Path) -> None:
    for attempt in range(8):
        with writers(tmp_path / f"{attempt}.sqlite", {f"run-{n}": 1 for n in range(8)}) as started:
            said = [process.communicate(timeout=60)[1] for process in started]
        assert said == [""] * 8


@pytest.mark.slow
def test_a_killed_writer_does_not_keep_others_from_writing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with writers(path, {"killed": 10**6, "other": 300}) as (killed, other):
        for _ in range(10):
            killed.stdout.readline()
        os.kill(killed.pid, signal.SIGKILL)
        _, said = other.communicate(timeout=60)
        assert (other.returncode, said) == (0, "")
    check_answers(path, "killed", range(1, 11))
    check_answers(path, "other", range(1, 301))
