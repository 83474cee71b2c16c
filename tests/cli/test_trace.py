from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import memorydojo as md
from memorydojo.cli.main import app
from memorydojo.errors import InvalidInputError, SavedRunError
from memorydojo.runs import Run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A poisoned and a clean run of the baseline that stores whole sessions."""
    directory = tmp_path_factory.mktemp("runs")
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    for attack in (md.Attack(objective="banking", payload="seed-1"), None):
        md.run(trajectory, "full_context", directory=directory, attack=attack)
    return directory


def trace(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["trace", *map(str, arguments)], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def run_in(runs: Path) -> Run:
    return md.load_runs(runs)[0]


def test_a_run_becomes_one_file(runs: Path, tmp_path: Path) -> None:
    assert "wrote" in trace(run_in(runs).directory, "-o", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="ascii")
    assert text.startswith("<!DOCTYPE html>")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_a_directory_becomes_a_table_and_a_trace_for_each_run(runs: Path, tmp_path: Path) -> None:
    assert "wrote 2 traces" in trace(runs, "-o", tmp_path / "pages")
    names = {path.name for path in (tmp_path / "pages").iterdir()}
    assert names == {"index.html", *(f"{run.id}.html" for run in md.load_runs(runs))}


def test_pages_may_be_written_again(runs: Path, tmp_path: Path) -> None:
    trace(runs, "-o", tmp_path / "pages")
    first = {path.name: path.read_bytes() for path in (tmp_path / "pages").iterdir()}
    trace(runs, "-o", tmp_path / "pages")
    assert {path.name: path.read_bytes() for path in (tmp_path / "pages").iterdir()} == first


def test_what_is_no_trace_is_not_replaced(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "thesis.html"
    other.write_text("years of work")
    with pytest.raises(InvalidInputError, match="something else than a trace"):
        trace(run_in(runs).directory, "-o", other)
    assert other.read_text() == "years of work"


def test_nothing_is_written_if_one_page_is_in_the_way(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("years of work")
    with pytest.raises(InvalidInputError, match="something else than a trace"):
        trace(runs, "-o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_one_file_for_many_runs_is_an_error_that_names_a_run(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"holds 2 runs, and a file shows one"):
        trace(runs, "-o", tmp_path / "a.html")


def test_a_file_that_is_no_page_is_an_error_that_says_how_pages_end(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("years of work")
    with pytest.raises(InvalidInputError, match=r"README\.md is no directory; with -o give a file that ends in \.html"):
        trace(run_in(runs).directory, "-o", tmp_path / "README.md")


def test_the_judge_that_the_help_names_is_there(runs: Path, tmp_path: Path) -> None:
    assert "overlap, the offline judge" in " ".join(trace("--help").replace("│", " ").split())
    trace(run_in(runs).directory, "-o", tmp_path / "a.html", "--judge", "overlap")


def test_an_unknown_judge_is_told_with_the_names_that_are_there(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SavedRunError, match=r"it has: overlap, the offline judge\); name one that it has"):
        trace(run_in(runs).directory, "-o", tmp_path / "a.html", "--judge", "offline")


def test_many_runs_need_a_place(runs: Path) -> None:
    with pytest.raises(InvalidInputError, match="give a directory for their pages"):
        trace(runs)


def test_a_missing_directory_is_made(runs: Path, tmp_path: Path) -> None:
    trace(run_in(runs).directory, "-o", tmp_path / "no" / "a.html")
    assert (tmp_path / "no" / "a.html").exists()


def test_labels_of_a_judge_that_did_not_judge_are_an_error(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SavedRunError, match="no labels of the judge 'gpt'"):
        trace(run_in(runs).directory, "-o", tmp_path / "a.html", "--judge", "gpt")
    assert not (tmp_path / "a.html").exists()


def test_show_opens_the_page_in_a_browser(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = run_in(runs).show(tmp_path / "a.html")
    assert opened == [path.as_uri()]
    assert path.exists()


def test_a_run_shows_itself_in_a_sandboxed_frame(runs: Path) -> None:
    html = run_in(runs)._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts" ')
    assert "<script" not in html


def test_making_a_page_writes_no_labels_and_changes_no_fact(runs: Path, tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    trace(runs, "-o", tmp_path / "pages")
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == files
