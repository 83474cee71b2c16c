"""What saved runs look like."""

from pathlib import Path
from typing import Any

import pytest

import memorydojo as md

TRAJECTORY = md.trajectories.load("banking")["banking-003-01"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> md.Runs:
    directory = tmp_path_factory.mktemp("runs")
    for attack in (None, md.Attack(objective="banking", payload="seed-1")):
        md.run(TRAJECTORY, "full_context", directory=directory, attack=attack)
    return md.load_runs(directory)


def poisoned(runs: md.Runs) -> md.Run:
    return next(run for run in runs if run.plan.insertion is not None)


def cells(view: Any) -> list[dict[str, object]]:
    heads = [column if isinstance(column, str) else column.name for column in view.columns]
    return [dict(zip(heads, row, strict=True)) for row in view.rows]


def test_a_run_has_a_row_for_each_planned_session_as_its_table_says(runs: md.Runs) -> None:
    run = poisoned(runs)
    table = md.load_runs(run.directory.parent.parent).only([run.id]).session_table()
    shown = cells(run.view())
    assert [row["session"] for row in shown] == [1, 2, 3]
    assert [row["objective\nmet"] for row in shown] == [*table["objective_met"]]
    assert [row["utility"] for row in shown] == [*table["utility"]]
    assert [row["retrieved"] not in ("", "no") for row in shown] == [*table["retrieved"]]


def test_stored_counts_the_entries_that_bear_the_payload_after_each_session(runs: md.Runs) -> None:
    stored = [row["stored"] for row in cells(poisoned(runs).view())]
    assert stored[0] == 1
    assert all(isinstance(number, int) and number >= 1 for number in stored)


def test_a_clean_run_says_so_and_has_no_columns_of_an_attack(runs: md.Runs) -> None:
    view = next(run for run in runs if run.plan.insertion is None).view()
    assert "retrieved" not in cells(view)[0]
    assert "A clean run, without attack." in str(view)


def test_a_run_says_that_it_is_simulated(runs: md.Runs) -> None:
    assert "(simulated)" in str(runs[0])
    assert "(simulated)" in str(runs)


def test_an_interrupted_run_shows_what_did_not_run(runs: md.Runs, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(runs[0].directory.parent.parent, tmp_path / "copy")
    run = poisoned(md.load_runs(tmp_path / "copy"))
    (run.directory / "end.json").unlink()
    shutil.rmtree(run.directory / "labels")
    path = run.directory / "sessions.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    shown = md.load_runs(tmp_path / "copy")[run.id].view()
    assert [row["failed"] for row in cells(shown)] == ["", "did not run", "did not run"]
    assert "interrupted" in str(shown)
    assert not (run.directory / "labels").exists()


def test_runs_are_counted_by_what_they_have_in_common(runs: md.Runs) -> None:
    shown = cells(runs.view())
    assert [(row["memory"], row["condition"], row["runs"], row["complete"]) for row in shown] == [
        ("full_context", "clean", 1, 1),
        ("full_context", "poisoned (seed)", 1, 1),
    ]
    assert [row["sessions"] for row in shown] == [3, 3]
    assert [row["failed"] for row in shown] == [0, 0]


def test_a_session_that_failed_counts_its_run_as_failed(runs: md.Runs, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(runs[0].directory.parent.parent, tmp_path / "copy")
    run = poisoned(md.load_runs(tmp_path / "copy"))
    (run.directory / "end.json").unlink()
    path = run.directory / "sessions.jsonl"
    path.write_text(path.read_text().replace('"completed": true', '"completed": false', 1))
    shown = {str(row["condition"]): row for row in cells(md.load_runs(tmp_path / "copy").view())}
    assert shown["poisoned (seed)"]["failed"] == 1
    assert shown["poisoned (seed)"]["complete"] == 0


def test_a_history_that_memory_did_not_take_in_counts_its_run_as_failed(tmp_path: Path) -> None:
    trajectory = md.trajectories.load("history-prefixed")[0]
    run = md.run(trajectory, "full_context", directory=tmp_path, on_failure="continue")
    path = run.directory / "history.jsonl"
    path.write_text(path.read_text().replace('"completed": true', '"completed": false', 1))
    (row,) = cells(md.load_runs(tmp_path).view())
    assert row["failed"] == 1


def test_no_runs_are_shown_as_none(tmp_path: Path) -> None:
    assert str(md.Runs([])) == "0 runs"


def test_the_notebook_still_gets_the_trace(runs: md.Runs) -> None:
    assert runs[0]._repr_html_().startswith("<iframe sandbox")
