import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorydojo.errors import SavedRunError
from memorydojo.record import Action, MemoryEntry, MemoryItem, SnapshotDifference
from memorydojo.runs import RunDirectory, RunHeader, load_runs, run_id
from memorydojo.runs.model import SessionResult

TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ITEMS = st.builds(MemoryItem, entry_ids=st.tuples(TEXT), text=TEXT, kind=TEXT, rank=st.integers(0, 9))
ACTIONS = st.builds(Action, function=TEXT, arguments=st.dictionaries(TEXT, JSON, max_size=3), observation=TEXT)
ENTRIES = st.builds(MemoryEntry, id=TEXT, kind=TEXT, text=TEXT, metadata=st.dictionaries(TEXT, JSON, max_size=2))
DIFFERENCES = st.builds(SnapshotDifference, created=st.tuples(ENTRIES), removed=st.lists(TEXT).map(tuple))
FIELDS = st.fixed_dictionaries(
    {
        "query": TEXT,
        "prompt": TEXT,
        "items": st.lists(ITEMS, max_size=2).map(tuple),
        "actions": st.lists(ACTIONS, max_size=2).map(tuple),
        "final_response": st.none() | TEXT,
        "completed": st.booleans(),
        "utility": st.booleans(),
        "difference": DIFFERENCES,
        "seconds": st.dictionaries(TEXT, st.floats(0, 1e9), max_size=2),
        "time": st.datetimes(timezones=st.integers(-12, 12).map(lambda h: timezone(timedelta(hours=h)))),
    }
)


def written(root: Path, header: RunHeader, sessions: list[SessionResult]) -> Path:
    with RunDirectory(root).begin(header) as writer:
        for result in sessions:
            writer.append(result)
        return writer.directory


@settings(max_examples=40, deadline=None)
@given(fields=st.lists(FIELDS, max_size=3))
def test_any_sessions_are_read_back_equal(
    make: Any, tmp_path_factory: pytest.TempPathFactory, fields: list[dict[str, Any]]
) -> None:
    sessions = [make.session(t, **given) for t, given in enumerate(fields, start=1)]
    root = tmp_path_factory.mktemp("runs")
    folder = written(root, make.header(), sessions)
    assert load_runs(root)[0].sessions == sessions
    assert (folder / "sessions.jsonl").read_bytes().isascii()


@pytest.mark.filterwarnings("ignore:.*last line is incomplete")
@settings(max_examples=40, deadline=None)
@given(fields=st.lists(FIELDS, min_size=1, max_size=3), data=st.data())
def test_truncation_at_any_byte_leaves_a_prefix_of_the_sessions(
    make: Any, tmp_path_factory: pytest.TempPathFactory, fields: list[dict[str, Any]], data: st.DataObject
) -> None:
    sessions = [make.session(t, **given) for t, given in enumerate(fields, start=1)]
    root = tmp_path_factory.mktemp("runs")
    path = written(root, make.header(), sessions) / "sessions.jsonl"
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    left = load_runs(root)[0].sessions
    assert left == sessions[: whole[:cut].count(b"\n")]


@given(hostile=TEXT.filter(bool) | st.sampled_from(["../../x", "/etc/passwd", "..", ".", "a\0b", "x" * 5000, "a--b"]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_hostile_names_never_leave_the_directory(make: Any, hostile: str) -> None:
    name = run_id(make.plan(trajectory_id=hostile, memory=hostile))
    assert Path("runs", name).resolve().parent == Path("runs").resolve()
    assert name.isascii()
    assert len(name) <= 200
    assert name == run_id(make.plan(trajectory_id=hostile, memory=hostile))


def test_run_id_is_readable_and_tells_plans_apart(make: Any) -> None:
    assert run_id(make.plan()).startswith("ws-01--full_context--workspace.seed-1--")
    assert run_id(make.plan(t0=None)).startswith("ws-01--full_context--clean--")
    assert run_id(make.plan(seed=1)) != run_id(make.plan(seed=2))


def test_unsafe_run_id_is_refused(make: Any, tmp_path: Path) -> None:
    with pytest.raises(SavedRunError, match="cannot name a folder"):
        RunDirectory(tmp_path / "r").begin(make.header(run_id="../out"))
    assert not (tmp_path / "out").exists()


def test_numbers_that_are_not_finite_stay_valid_json(make: Any, tmp_path: Path) -> None:
    item = MemoryItem(entry_ids=("a",), text="t", kind="k", rank=0, score=float("inf"))
    folder = written(tmp_path, make.header(), [make.session(1, items=(item,))])
    line = (folder / "sessions.jsonl").read_text()
    assert json.loads(line, parse_constant=pytest.fail)["items"][0]["score"] == "Infinity"
    assert load_runs(tmp_path)[0].sessions[0].items == (item,)


def test_saved_sessions_load_into_pandas_without_this_library(make: Any, tmp_path: Path) -> None:
    folder = written(tmp_path, make.header(), [make.session(1, query="\u2028\ud800"), make.session(2)])
    assert list(pd.read_json(folder / "sessions.jsonl", lines=True)["session"]) == [1, 2]


def test_directory_with_something_else_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(SavedRunError, match=r"thesis\.tex.*Choose a new or empty directory"):
        RunDirectory(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SavedRunError, match="file"):
        RunDirectory(tmp_path / "file")


def test_directory_of_a_newer_schema_says_to_upgrade(tmp_path: Path) -> None:
    RunDirectory(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 99}))
    for open_it in (RunDirectory, load_runs):
        with pytest.raises(SavedRunError, match="pip install --upgrade"):
            open_it(tmp_path)


def test_directory_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(SavedRunError, match="format"):
        RunDirectory(tmp_path)


def test_interrupted_creation_of_a_directory_does_not_lock_it_out(tmp_path: Path) -> None:
    (tmp_path / ".memorydojo-77-manifest.json").write_text("{")
    assert RunDirectory(tmp_path).complete_ids() == set()


def test_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SavedRunError, match=r"cannot write .*Make room or choose a directory"):
        RunDirectory(tmp_path / "file" / "runs")


def test_disk_error_cuts_the_half_line_and_keeps_what_was_saved(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunDirectory(tmp_path).begin(make.header())
    writer.append(make.session(1))
    real: Callable[[int, bytes], int] = os.write
    calls: list[int] = []

    def full(descriptor: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) == 1:
            return real(descriptor, bytes(data)[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SavedRunError, match="No space left"):
        writer.append(make.session(2))
    monkeypatch.undo()
    with pytest.raises(SavedRunError, match="closed"):
        writer.append(make.session(2))
    assert load_runs(tmp_path)[0].sessions == [make.session(1)]


def test_interrupted_attempts_are_kept_under_other_names(make: Any, tmp_path: Path) -> None:
    for attempt in range(2):
        written(tmp_path, make.header(), [make.session(1, query=str(attempt))])
    folder = written(tmp_path, make.header(), [make.session(1, query="last")])
    assert json.loads((folder / "sessions.interrupted-1.jsonl").read_text())["query"] == "0"
    assert json.loads((folder / "sessions.interrupted-2.jsonl").read_text())["query"] == "1"
    assert (folder / "run.interrupted-2.json").exists()
    assert [s.query for s in load_runs(tmp_path)[0].sessions] == ["last"]


def test_crash_while_an_attempt_is_set_aside_loses_nothing(make: Any, tmp_path: Path) -> None:
    folder = written(tmp_path, make.header(), [make.session(1, query="first")])
    (folder / "sessions.jsonl").rename(folder / "sessions.interrupted-1.jsonl")
    written(tmp_path, make.header(), [])
    assert json.loads((folder / "sessions.interrupted-1.jsonl").read_text())["query"] == "first"
    assert (folder / "run.interrupted-1.json").exists()


def test_complete_run_is_never_overwritten(make: Any, tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    with store.begin(make.header()) as writer:
        for t in (1, 2, 3):
            writer.append(make.session(t))
        writer.end(make.end())
    assert store.complete_ids() == {make.header().run_id}
    with pytest.raises(SavedRunError, match="never overwritten"):
        store.begin(make.header())
    assert len(load_runs(tmp_path)[0].sessions) == 3


def test_another_plan_under_the_same_id_is_refused(make: Any, tmp_path: Path) -> None:
    written(tmp_path, make.header(), [])
    with pytest.raises(SavedRunError, match="another plan"):
        RunDirectory(tmp_path).begin(make.header(make.plan(seed=5), run_id=make.header().run_id))


def test_second_writer_of_a_run_is_refused_until_the_first_closes(make: Any, tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    with store.begin(make.header()), pytest.raises(SavedRunError, match="another process"):
        store.begin(make.header())
    store.begin(make.header()).close()


def test_sessions_out_of_order_or_of_another_task_are_refused(make: Any, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).begin(make.header()) as writer:
        with pytest.raises(SavedRunError, match="session 1 of 3 was due"):
            writer.append(make.session(2))
        with pytest.raises(SavedRunError, match="user_task_9"):
            writer.append(make.session(1, task_id="user_task_9"))
        writer.append(make.session(1))


def test_run_cannot_end_as_completed_before_its_last_session(make: Any, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).begin(make.header()) as writer:
        with pytest.raises(SavedRunError, match="after 0 of 3"):
            writer.end(make.end())
        writer.end(make.end("stopped"))
    run = load_runs(tmp_path)[0]
    assert run.complete
    assert run.end == make.end("stopped")


_WRITE = """
import sys
from memorydojo.runs import RunDirectory, RunHeader, SessionResult
header = RunHeader.model_validate_json(sys.stdin.readline())
result = SessionResult.model_validate_json(sys.stdin.readline())
writer = RunDirectory(sys.argv[1]).begin(header)
for t in range(1, len(header.plan.trajectory) + 1):
    writer.append(result.model_copy(update={"session": t, "task_id": f"user_task_{t - 1}"}))
    print(t, flush=True)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*last line is incomplete")
def test_killed_writer_leaves_loadable_facts_and_no_lock(make: Any, tmp_path: Path) -> None:
    header = make.header(make.plan(5000))
    given = f"{header.model_dump_json()}\n{make.session(1, prompt='x' * 5000).model_dump_json()}\n"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.close()
        seen = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.readlines()
    run = load_runs(tmp_path)[0]
    assert not run.complete
    assert 20 <= len([line for line in seen if line.endswith("\n")]) <= len(run.sessions) < 5000
    RunDirectory(tmp_path).begin(header).close()


@pytest.mark.slow
def test_processes_write_different_runs_into_one_new_directory_at_once(make: Any, tmp_path: Path) -> None:
    headers = [make.header(make.plan(seed=seed)).model_dump_json() for seed in range(8)]
    script = "import sys; from memorydojo.runs import RunDirectory, RunHeader; h = RunHeader.model_validate_json"
    script += "(sys.argv[2]); RunDirectory(sys.argv[1]).begin(h).close()"
    root = str(tmp_path / "new")
    running = [subprocess.Popen([sys.executable, "-c", script, root, header]) for header in headers]
    assert [process.wait() for process in running] == [0] * 8
    assert len(load_runs(root)) == 8


def test_threads_that_make_the_same_directory_at_once_all_get_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        for n in range(10):
            made = list(threads.map(lambda _, n=n: RunDirectory(tmp_path / str(n)).path, range(16)))
            assert set(made) == {tmp_path / str(n)}
            assert [p.name for p in made[0].iterdir()] == ["manifest.json"]
