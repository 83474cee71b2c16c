import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import SavedRunError, UnknownNameError
from memorydojo.record import MemoryEntry, Snapshot
from memorydojo.runs import RunDirectory, Usage, load_runs


def save(root: Path, make: Any, *, n: int = 3, begun: int = 3, end: str | None = "completed") -> Path:
    with RunDirectory(root).begin(make.header(make.plan(n))) as writer:
        for t in range(1, begun + 1):
            writer.append(make.session(t))
        if end:
            writer.end(make.end(end))
        folder: Path = writer.directory
    return folder


def test_import_stays_light() -> None:
    code = "import memorydojo.runs, sys; print([m for m in ('pandas', 'numpy', 'agentdojo') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(SavedRunError, match="nowhere does not exist"):
        load_runs(tmp_path / "nowhere")


def test_directory_without_manifest_is_no_directory_of_runs(tmp_path: Path) -> None:
    with pytest.raises(SavedRunError, match=r"no manifest\.json"):
        load_runs(tmp_path)


def test_runs_are_found_by_position_slice_and_id(make: Any, tmp_path: Path) -> None:
    save(tmp_path, make)
    save(tmp_path, make, n=4, begun=1, end=None)
    runs = load_runs(tmp_path)
    assert [run.id for run in runs] == sorted(run.id for run in runs)
    assert runs[runs[1].id] is runs[1]
    assert len(runs[:1]) == 1
    assert [run.id for run in runs.only([runs[1].id])] == [runs[1].id]
    with pytest.raises(UnknownNameError, match="did you mean"):
        runs[runs[0].id[:-1]]


def test_a_copied_folder_of_a_run_is_refused_by_name(make: Any, tmp_path: Path) -> None:
    folder = save(tmp_path, make)
    shutil.copytree(folder, folder.with_name("copy"))
    with pytest.raises(SavedRunError, match=rf"copy holds the run '{folder.name}'.*count twice"):
        load_runs(tmp_path).session_table()


def test_repr_is_plain_text_and_says_simulated(make: Any, tmp_path: Path) -> None:
    save(tmp_path, make, begun=1, end=None)
    runs = load_runs(tmp_path)
    assert repr(runs[0]) == f"<Run {runs[0].id}: 3 planned sessions, interrupted, simulated>"
    assert repr(runs) == "<1 run, 0 of them complete>"


def test_torn_last_line_is_left_out_with_a_warning_that_names_the_file(make: Any, tmp_path: Path) -> None:
    path = save(tmp_path, make, begun=2, end=None) / "sessions.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"sessions\.jsonl: the last line is incomplete"):
        assert len(load_runs(tmp_path)[0].sessions) == 1


@pytest.mark.parametrize("damage", [b"{\n", b"[]\n", b"\n", b'{"session": 1}\n', b"\xff\n", b"[" * 100_000 + b"\n"])
def test_damaged_line_is_named_with_its_number(make: Any, tmp_path: Path, damage: bytes) -> None:
    path = save(tmp_path, make) / "sessions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + damage + lines[2])
    with pytest.raises(SavedRunError, match=r"sessions\.jsonl, line 2"):
        _ = load_runs(tmp_path)[0].sessions


def test_missing_line_is_an_error(make: Any, tmp_path: Path) -> None:
    path = save(tmp_path, make) / "sessions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(SavedRunError, match="line 2: found session 3"):
        _ = load_runs(tmp_path)[0].sessions


def test_completed_run_that_lost_sessions_is_an_error(make: Any, tmp_path: Path) -> None:
    path = save(tmp_path, make) / "sessions.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(SavedRunError, match="holds 2 sessions"):
        _ = load_runs(tmp_path)[0].sessions


def test_run_without_header_is_an_error(make: Any, tmp_path: Path) -> None:
    (save(tmp_path, make) / "run.json").unlink()
    with pytest.raises(SavedRunError, match=r"has no run\.json"):
        load_runs(tmp_path)


def test_folder_whose_run_never_began_is_passed_over(make: Any, tmp_path: Path) -> None:
    RunDirectory(tmp_path)
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "lock").touch()
    assert len(load_runs(tmp_path)) == 0


@pytest.mark.parametrize(("change", "said"), [({"schema_version": 3}, "upgrade"), ({"plan": 1}, "is damaged: plan")])
def test_header_that_cannot_be_used_is_named(make: Any, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = save(tmp_path, make) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(SavedRunError, match=said):
        _ = load_runs(tmp_path)[0].header


def test_snapshots_are_rebuilt_from_differences(make: Any, tmp_path: Path) -> None:
    def entry(id: str, text: str) -> MemoryEntry:
        return MemoryEntry(id=id, kind="k", text=text)

    steps = [{"a": "1"}, {"a": "2", "b": "1"}, {"b": "1"}]
    expected = [Snapshot(entries={i: entry(i, x) for i, x in step.items()}) for step in steps]
    with RunDirectory(tmp_path).begin(make.header()) as writer:
        before = Snapshot()
        for t, after in enumerate(expected, start=1):
            writer.append(make.session(t, difference=before.difference(after)))
            before = after
    assert load_runs(tmp_path)[0].snapshots() == expected


def test_counts_that_an_older_version_did_not_save_are_0(make: Any, tmp_path: Path) -> None:
    usage = (Usage(role="agent", model="m", calls=2, unmetered=2),)
    with RunDirectory(tmp_path).begin(make.header(make.plan(3))) as writer:
        writer.append(make.session(1, usage=usage))
        path = writer.directory / "sessions.jsonl"
    saved = json.loads(path.read_text())
    assert saved["usage"][0].pop("unmetered") == 2
    path.write_text(json.dumps(saved) + "\n")
    assert load_runs(tmp_path)[0].sessions[0].usage == (Usage(role="agent", model="m", calls=2),)
