"""What a sweep planned and did not begin is known, though no table can hold it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import memorydojo as md
from memorydojo.cli.main import app
from memorydojo.runs import run_id
from memorydojo.runs.model import RunPlan
from memorydojo.runs.planned import all_complete, not_begun, plan_runs


def plans() -> list[RunPlan]:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 6))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    return [md.plan_run(trajectory, memory) for memory in ("full_context", "vector")]


def interrupted(directory: Path) -> None:
    """A sweep of two runs of which one has begun."""
    first, second = plans()
    md.sweep([first], directory=directory)
    plan_runs(directory, [run_id(first), run_id(second)])


def test_a_sweep_that_has_come_to_its_end_leaves_nothing_behind(tmp_path: Path) -> None:
    runs = md.sweep(plans(), directory=tmp_path)
    assert not (tmp_path / "planned").exists()
    assert md.load_runs(tmp_path).not_begun == runs.not_begun == ()


def test_an_interrupted_sweep_says_how_many_runs_are_missing(tmp_path: Path) -> None:
    interrupted(tmp_path)
    runs = md.load_runs(tmp_path)
    assert [name.split("--")[1] for name in runs.not_begun] == ["vector"]
    assert "1 more run that a sweep planned has not begun." in str(runs)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_metrics_say_that_runs_are_in_no_number(tmp_path: Path, form: str) -> None:
    interrupted(tmp_path)
    done = CliRunner().invoke(app, ["metrics", str(tmp_path), "--format", form])
    said = " ".join((done.stderr if form != "table" else done.output).split())
    assert "1 run that a sweep planned here has not begun and is in no number" in said


def test_the_same_sweep_again_completes_what_was_planned(tmp_path: Path) -> None:
    interrupted(tmp_path)
    md.sweep(plans(), directory=tmp_path)
    assert md.load_runs(tmp_path).not_begun == ()
    assert not (tmp_path / "planned").exists()


def test_a_sweep_that_dies_before_its_first_run_leaves_what_it_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorydojo.running.sweep.executed", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        md.sweep(plans(), directory=tmp_path)
    assert len(md.load_runs(tmp_path).not_begun) == 2


def test_several_sweeps_of_a_directory_are_kept_apart(tmp_path: Path) -> None:
    plan_runs(tmp_path, ["a", "b"])
    plan_runs(tmp_path, ["b", "c"])
    assert not_begun(tmp_path) == ["a", "b", "c"]
    all_complete(tmp_path, ["b", "a"])
    assert not_begun(tmp_path) == ["b", "c"]
    all_complete(tmp_path, ["b", "c"])
    all_complete(tmp_path, ["b", "c"])
    assert not_begun(tmp_path) == []


def test_a_complete_sweep_that_is_asked_for_again_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    md.sweep(plans(), directory=tmp_path)
    monkeypatch.setattr("memorydojo.running.sweep.plan_runs", None)
    assert len(md.sweep(plans(), directory=tmp_path)) == 2


def test_a_list_that_a_kill_left_is_removed_by_the_next_call(tmp_path: Path) -> None:
    md.sweep(plans(), directory=tmp_path)
    plan_runs(tmp_path, map(run_id, plans()))
    md.sweep(plans(), directory=tmp_path)
    assert not (tmp_path / "planned").exists()


def test_a_damaged_file_is_passed_over(tmp_path: Path) -> None:
    plan_runs(tmp_path, ["a"])
    (tmp_path / "planned" / "torn.json").write_text('{"runs": ["b"')
    (tmp_path / "planned" / "other.json").write_text("[1]")
    assert not_begun(tmp_path) == ["a"]


def test_what_is_counted_together_is_named(tmp_path: Path) -> None:
    md.sweep(plans(), directory=tmp_path)
    together = " ".join(CliRunner().invoke(app, ["metrics", str(tmp_path)]).output.split())
    assert "Counted together: memory (full_context, vector). --by memory tells them apart." in together
    assert "Counted together" not in CliRunner().invoke(app, ["metrics", str(tmp_path), "--by", "memory"]).output
