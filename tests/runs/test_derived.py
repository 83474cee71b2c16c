"""Rows that are kept beside the runs are those that the runs give, whatever happens to the runs."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from memorydojo.errors import SavedRunError
from memorydojo.judging import Facts, OverlapJudge, label_run
from memorydojo.runs import Run, RunDirectory, derived, load_runs
from memorydojo.shipped import objectives

Change = Callable[[Run], Any]


@pytest.fixture
def directory(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three labelled runs whose rows are worth keeping at once."""
    monkeypatch.setattr(derived, "WORTH_KEEPING", 1)
    monkeypatch.setattr(derived, "SETTLED_NS", 0)
    store = RunDirectory(tmp_path / "runs")
    for number in range(3):
        header = make.header(make.plan(trajectory_id=f"ws-{number}", t0=None if number == 2 else 1))
        sessions = [make.session(t, utility=number == 0) for t in (1, 2, 3)]
        with store.begin(header) as writer:
            for session in sessions:
                writer.append(session)
            writer.end(make.end())
            writer.save_labels(label_run(Facts(header, sessions), judge=OverlapJudge(), objectives=objectives))
    return store.path


def kept(directory: Path) -> pd.DataFrame:
    return load_runs(directory).session_table()


def anew(directory: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    with monkeypatch.context() as patch:
        patch.setattr(derived, "WORTH_KEEPING", 10**9)
        return load_runs(directory).session_table()


def file_of(directory: Path) -> Path:
    return directory / "derived" / "session-table.overlap.jsonl"


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a run was read")

    monkeypatch.setattr(Run, "_read_lines", fail)


def test_the_table_is_the_same_with_and_without_kept_rows(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = anew(directory, monkeypatch)
    assert not file_of(directory).exists()
    pd.testing.assert_frame_equal(kept(directory), expected)
    assert file_of(directory).exists()
    pd.testing.assert_frame_equal(kept(directory), expected)


def test_no_run_is_read_whose_rows_are_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept(directory)
    refuse_to_read(monkeypatch)
    assert kept(directory).equals(first)


def test_a_part_of_the_runs_gets_its_rows_in_its_order(directory: Path) -> None:
    runs = load_runs(directory)
    whole = kept(directory)
    part = runs.only([runs[2].id, runs[0].id]).session_table()
    expected = pd.concat([whole[whole["run_id"] == runs[n].id] for n in (2, 0)], ignore_index=True)
    pd.testing.assert_frame_equal(part, expected)
    assert len(kept(directory)) == 9


def _rewrite(path: Path, old: str, new: str) -> None:
    assert len(old) == len(new)
    text = path.read_text()
    assert old in text
    state = path.stat()
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


CHANGES: dict[str, Change] = {
    "labels of another opinion": lambda run: run.save_labels(run.labels().model_copy(update={"inserted": True})),
    "a session of the same length and time": lambda run: _rewrite(
        run.directory / "sessions.jsonl", '"utility": true, "utility_error"', '"utility": null, "utility_error"'
    ),
    "a header of the same length and time": lambda run: _rewrite(run.directory / "run.json", '"seed": 0', '"seed": 7'),
    "labels that are gone": lambda run: (run.directory / "labels" / "overlap.json").unlink(),
    "an end that is gone": lambda run: (run.directory / "end.json").unlink(),
    "sessions that are gone": lambda run: (run.directory / "sessions.jsonl").unlink(),
    "a header that is gone": lambda run: (run.directory / "run.json").unlink(),
    "a run that is gone": lambda run: shutil.rmtree(run.directory),
    "a run that was copied": lambda run: shutil.copytree(run.directory, run.directory.with_name("copy")),
}


def _result(make_table: Callable[[], pd.DataFrame]) -> Any:
    try:
        return make_table().to_json(orient="split")
    except SavedRunError as error:
        return str(error)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_gives_what_reading_anew_gives(
    directory: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    before = _result(lambda: kept(directory))
    CHANGES[change](load_runs(directory)[0])
    found = _result(lambda: kept(directory))
    assert found == _result(lambda: anew(directory, monkeypatch))
    if change not in ("labels that are gone", "an end that is gone"):  # all that they say can be made out again
        assert found != before


def test_rows_of_other_code_are_made_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(directory)
    monkeypatch.setattr(derived, "_code", lambda: "another")
    refuse_to_read(monkeypatch)
    with pytest.raises(AssertionError, match="a run was read"):
        kept(directory)


@pytest.mark.parametrize("damage", [b"", b"\n", b"nonsense", b'{"format": 1}\n', None])
def test_a_damaged_file_is_made_again(directory: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None) -> None:
    kept(directory)
    path = file_of(directory)
    # The last case is a row with another value, in a file that is sound otherwise.
    changed = path.read_bytes().replace(b'"utility":true', b'"utility":null')
    assert changed != path.read_bytes()
    path.write_bytes(changed if damage is None else damage)
    pd.testing.assert_frame_equal(kept(directory), anew(directory, monkeypatch))


def test_rows_of_files_that_have_just_changed_are_not_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "SETTLED_NS", 10**12)
    assert len(kept(directory)) == 9
    assert not file_of(directory).exists()


def test_rows_of_an_interrupted_run_are_not_kept(directory: Path) -> None:
    run = load_runs(directory)[0]
    (run.directory / "end.json").unlink()
    kept(directory)
    names = [json.loads(line)["run"] for line in file_of(directory).read_text().splitlines()[1:]]
    assert names == [other.id for other in load_runs(directory)[1:]]


def test_a_torn_last_line_warns_each_time(directory: Path) -> None:
    with (load_runs(directory)[0].directory / "sessions.jsonl").open("ab") as file:
        file.write(b'{"session": 4')
    for _ in range(2):
        with pytest.warns(UserWarning, match="the last line is incomplete"):
            kept(directory)


def test_a_directory_that_cannot_be_written_is_read_all_the_same(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "derived").write_text("a file where the folder would be")
    pd.testing.assert_frame_equal(kept(directory), anew(directory, monkeypatch))


def test_few_runs_leave_no_file_behind(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anew(directory, monkeypatch)
    assert not (directory / "derived").exists()
