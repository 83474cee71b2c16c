import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memorydojo as md
from memorydojo.cli.main import app
from memorydojo.errors import InvalidInputError, UnknownNameError

SEARCH = ["optimize", "--memory", "full_context", "--objective", "banking", "--trajectories", "1", "--rounds", "1"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("searches") / "one"
    done = CliRunner().invoke(app, [*SEARCH, "--directory", str(place), "--workers", "2"])
    assert done.exit_code == 0, done.output
    assert "(simulated)" in done.output
    assert "next: memorydojo optimize transfer" in done.output
    return place


def test_show_prints_the_saved_search(directory: Path) -> None:
    done = CliRunner().invoke(app, ["optimize", "show", str(directory)])
    assert done.exit_code == 0
    assert "memory-seed" in done.output


def test_show_writes_a_page(directory: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["optimize", "show", str(directory), "-o", str(tmp_path / "a.html")])
    assert done.exit_code == 0
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


def test_show_refuses_a_file_of_an_unknown_kind(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.html"):
        CliRunner().invoke(
            app, ["optimize", "show", str(directory), "-o", str(tmp_path / "a.doc")], catch_exceptions=False
        )


@pytest.mark.slow
def test_transfer_prints_both_sides_with_an_interval(directory: Path) -> None:
    done = CliRunner().invoke(app, ["optimize", "transfer", str(directory), "--trajectories", "2"])
    assert done.exit_code == 0, done.output
    assert "paired by trajectory (simulated)" in done.output
    assert "BRT" in done.output


def test_the_selected_payload_is_taken_by_run(directory: Path, tmp_path: Path) -> None:
    file = str(directory / "selected.json")
    arguments = ["--memory", "full_context", "--objective", "banking", "--payload-file", file]
    done = CliRunner().invoke(app, ["run", "banking-003-01", *arguments, "--directory", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output


def test_the_output_is_the_payload_file_that_a_sweep_says_is_missing(directory: Path, tmp_path: Path) -> None:
    output = tmp_path / "optimized" / "vector" / "banking.json"
    shutil.copytree(directory, output.with_suffix(""))  # the search is where the output alone puts it
    done = CliRunner().invoke(app, [*SEARCH, "--output", str(output)])
    assert done.exit_code == 0, done.output
    found = md.Payload.from_file(output, objective="banking")
    assert found == md.Payload.from_file(directory / "selected.json")
    assert f"the payload is in {output}" in done.stdout
    plan = md.SweepPlan.model_validate(
        {
            "trajectories": ["banking-003-01"],
            "memories": ["vector"],
            "objectives": "own-domain",
            "payloads": [{"path": str(tmp_path / "optimized/{memory}/{objective}.json")}],
        }
    )
    assert [p.insertion.payload for p in md.planning.expand(plan).plans.values() if p.insertion] == [found]


def test_a_budget_ends_with_1_and_says_how_to_go_on(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*SEARCH, "--directory", str(tmp_path / "s"), "--max-calls", "0"])
    assert done.exit_code == 1
    assert "larger budget" in done.output


def test_what_is_missing_is_named() -> None:
    done = CliRunner().invoke(app, ["optimize", "--memory", "vector"])
    assert done.exit_code == 2
    assert "--objective, --directory" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--strategy", "nothing"], UnknownNameError),
        (["--strategy", "offline", "--optimizer-model", "m"], InvalidInputError),
        (["--strategy", "os:getcwd"], InvalidInputError),
        (["--replay", "perhaps"], UnknownNameError),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, more: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        CliRunner().invoke(app, [*SEARCH, "--directory", str(tmp_path / "s"), *more], catch_exceptions=False)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("workers", [1, 3])
def test_so_many_runs_go_at_once_as_workers_were_asked_for(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memorydojo.optimizer import _cli

    asked: list[int] = []

    class Noting(ThreadPoolExecutor):
        def __init__(self, most: int) -> None:
            asked.append(most)
            super().__init__(most)

    monkeypatch.setattr(_cli, "ThreadPoolExecutor", Noting)
    arguments = [*SEARCH, "--rounds", "0", "--directory", str(tmp_path / "s"), "--workers", str(workers)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert asked == [workers]
