from pathlib import Path

import pytest
from typer.testing import CliRunner

import memorydojo as md
from memorydojo.cli.main import app
from memorydojo.errors import InvalidInputError, MemoryDojoError
from memorydojo.runs.table import read_session_table


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    md.run(trajectory, "full_context", directory=directory, attack=md.Attack(objective="banking", payload="seed-1"))
    return directory


def export(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    if isinstance(result.exception, MemoryDojoError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_the_suffix_says_the_format(runs: Path, tmp_path: Path, name: str) -> None:
    assert "1 run; all simulated" in export(runs, "-o", tmp_path / name)
    assert len(read_session_table(tmp_path / name)) == 2


def test_inspect_and_agentdojo_are_written(runs: Path, tmp_path: Path) -> None:
    export(runs, "--format", "inspect", "-o", tmp_path / "t.eval")
    export(runs, "--format", "agentdojo", "-o", tmp_path / "traces")
    assert (tmp_path / "t.eval").read_bytes().startswith(b"PK")
    assert len([*(tmp_path / "traces").rglob("banking.json")]) == 2


@pytest.mark.parametrize("table", ["usage", "labels"])
def test_other_tables_can_be_chosen(runs: Path, tmp_path: Path, table: str) -> None:
    export(runs, "-o", tmp_path / "t.csv", "--table", table)
    assert (tmp_path / "t.csv").read_text().startswith("run_id,session,")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "t.xyz"], "say which"),
        (["-o", "t.csv", "--format", "excel"], "excel"),
        (["-o", "t.csv", "--format", "inspect"], "must end in .eval"),
        (["-o", "t.csv", "--table", "runs"], "runs"),
        (["-o", "t.eval", "--table", "usage"], "no tables"),
    ],
)
def test_wrong_use_is_explained(runs: Path, arguments: list[str], message: str) -> None:
    output = " ".join(export(runs, *arguments, code=2).replace("│", " ").split())
    assert message in output


def test_other_files_are_not_replaced(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.csv").write_text("years,of,work\n")
    with pytest.raises(InvalidInputError, match="something else"):
        export(runs, "-o", tmp_path / "thesis.csv")
    assert (tmp_path / "thesis.csv").read_text() == "years,of,work\n"
