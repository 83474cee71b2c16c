"""``memorydojo trajectories``: what it prints and how it ends."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorydojo.cli.trajectories import app
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.trajectories import Collection, load
from memorydojo.trajectories.collections import SHIPPED, shipped_text
from memorydojo.trajectory import Session, Trajectory

runner = CliRunner()


def written(tmp_path: Path, *tasks: str, trajectory_id: str = "a") -> str:
    sessions = tuple(Session(domain="workspace", task_id=task) for task in tasks)
    trajectory = Trajectory(id=trajectory_id, collection="mine", sessions=sessions)
    Collection("mine", (trajectory,)).save(tmp_path / "mine.json")
    return str(tmp_path / "mine.json")


def test_list_as_json_holds_every_trajectory() -> None:
    found = json.loads(runner.invoke(app, ["list", "--json"]).output)
    assert [one["name"] for one in found] == [*SHIPPED, "history-prefixed", "workspace", "travel", "banking", "slack"]
    for one in found:
        collection = load(one["name"])
        assert [trajectory["id"] for trajectory in one["trajectories"]] == [*collection.ids]
        assert sum(trajectory["sessions"] for trajectory in one["trajectories"]) == one["sessions"]
        assert one["flagged"] == len(collection) - len(collection.without())


def test_list_shows_every_collection() -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines] == [
        *SHIPPED,
        "history-prefixed",
        "workspace",
        "travel",
        "banking",
        "slack",
    ]
    assert lines[1] == (
        "cross-domain      31 trajectories  680 sessions  lengths 5x5, 5x10, 5x15, 5x20, 5x30, 3x40, 2x50, 1x60"
    )


def test_show_prints_the_sessions_with_their_flags() -> None:
    result = runner.invoke(app, ["show", "travel-020-01"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "Trajectory travel-020-01 (same-domain, 20 sessions)"
    assert sum("user_task_" in line for line in lines) == 20
    assert sum(line.endswith("drift │") for line in lines) == 3


def test_show_finds_cross_domain_trajectories() -> None:
    assert "cross-domain, 60 sessions" in runner.invoke(app, ["show", "cross-060-01"]).output


def test_show_names_the_nearest_of_an_unknown_id() -> None:
    result = runner.invoke(app, ["show", "cross-60-01"])
    assert isinstance(result.exception, UnknownNameError)
    assert "'cross-060-01'" in str(result.exception)


def test_show_reads_a_users_file_and_makes_its_text_plain(tmp_path: Path) -> None:
    path = written(tmp_path, "user_task_0\x1b[31m", trajectory_id="a\u202eb")
    result = runner.invoke(app, ["show", "a\u202eb", "--file", path])
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "a\\u202eb" in result.output


def test_validate_ends_with_0_for_a_good_file(tmp_path: Path) -> None:
    result = runner.invoke(app, ["validate", written(tmp_path, "user_task_0", "user_task_3")])
    assert result.exit_code == 0
    assert result.output == ("mine: 1 trajectory, 2 sessions, 1 ordered pair, 0 flagged sessions: all hold\n")


def test_validate_ends_with_1_and_names_the_first_bad_pair(tmp_path: Path) -> None:
    result = runner.invoke(app, ["validate", written(tmp_path, "user_task_35", "user_task_38")])
    assert result.exit_code == 1
    assert result.output.splitlines()[1] == (
        "  trajectory a, sessions 1 and 2: workspace user_task_38 does not pass after user_task_35: "
        "its ground truth fails: ValueError: File with ID '11' not found."
    )


def test_validate_shortens_a_long_list(tmp_path: Path) -> None:
    result = runner.invoke(app, ["validate", written(tmp_path, *(f"odd_{n}" for n in range(23)))])
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "  and 3 more"


def test_validate_makes_hostile_text_plain(tmp_path: Path) -> None:
    result = runner.invoke(app, ["validate", written(tmp_path, "x\x1b[2J")])
    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_validate_refuses_what_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("[]")
    result = runner.invoke(app, ["validate", str(tmp_path / "odd.json")])
    assert isinstance(result.exception, InvalidInputError)


def test_build_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "cross-domain.json").write_text("mine")
    result = runner.invoke(app, ["build", "--out", str(tmp_path)])
    assert isinstance(result.exception, InvalidInputError)
    assert "cross-domain.json exists" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["cross-domain.json"]


def test_build_needs_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = runner.invoke(app, ["build", "--out", str(tmp_path / "file")])
    assert isinstance(result.exception, InvalidInputError)


def test_build_without_a_directory_is_a_usage_error() -> None:
    assert runner.invoke(app, ["build"]).exit_code == 2


@pytest.mark.slow
def test_build_writes_the_shipped_files_by_default(tmp_path: Path) -> None:
    result = runner.invoke(app, ["build", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0
    for name in SHIPPED:
        assert (tmp_path / "new" / f"{name}.json").read_bytes() == shipped_text(name).encode()


@pytest.mark.slow
def test_validate_checks_everything_shipped_by_default() -> None:
    result = runner.invoke(app, ["validate"])
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.output.splitlines()] == list(SHIPPED)
    assert load("same-domain").n_sessions == 802


def test_validate_ends_with_1_where_there_is_nothing_to_validate(tmp_path: Path) -> None:
    Collection("mine", ()).save(tmp_path / "mine.json")
    result = runner.invoke(app, ["validate", str(tmp_path / "mine.json")])
    assert result.exit_code == 1
    assert "there is nothing to validate" in result.output
    assert "all hold" not in result.output
