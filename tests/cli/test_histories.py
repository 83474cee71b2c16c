"""``memorydojo histories``, and runs and metrics of trajectories with a history."""

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memorydojo.cli.main import app
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.history import QUESTION_TYPES
from memorydojo.trajectories import load_file, pair
from memorydojo.trajectories.histories import shipped
from tests.history_tools import history, instance

runner = CliRunner()


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file of LongMemEval's form with seven histories of each type."""
    sizes = random.Random(3)
    instances = []
    for type_ in QUESTION_TYPES:
        for number in range(7):
            n = sizes.randint(38, 62)
            dates = [f"2023/05/{1 + day % 28:02} (Mon) 10:00" for day in range(n)]
            said = [
                [{"role": "user", "content": f"I like {k}."}, {"role": "assistant", "content": "Ah."}] for k in range(n)
            ]
            instances.append(
                instance(
                    question_id=f"{type_}-{number}",
                    question_type=type_,
                    answer_session_ids=["s0"],
                    haystack_session_ids=[f"s{k}" for k in range(n)],
                    haystack_dates=dates,
                    haystack_sessions=said,
                )
            )
    path = tmp_path / "lme.json"
    path.write_text(json.dumps(instances))
    return str(path)


def test_list_shows_the_shipped_histories() -> None:
    result = runner.invoke(app, ["histories", "list"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == [h.id for h in shipped()]


def test_list_reads_files_of_both_forms(file: str, tmp_path: Path) -> None:
    assert len(runner.invoke(app, ["histories", "list", "--file", file]).output.splitlines()) == 42
    pair([history(2, id="a")]).save(tmp_path / "mine.json")
    result = runner.invoke(app, ["histories", "list", "--file", str(tmp_path / "mine.json")])
    assert result.output.split()[0] == "a"


def test_show_prints_question_reference_and_sessions() -> None:
    output = runner.invoke(app, ["histories", "show", "dojo-update-1"]).output
    assert "question:  On which day of the week is my Spanish lesson?" in output
    assert "reference: Friday" in output
    assert sum("* " in line[:6] for line in output.splitlines()) == 2


def test_show_prints_a_session_whole() -> None:
    output = runner.invoke(app, ["histories", "show", "dojo-update-1", "--session", "4"]).output
    assert "user:\n  My Spanish lesson is on Tuesday" in output


def test_show_names_the_nearest_of_an_unknown_id() -> None:
    result = runner.invoke(app, ["histories", "show", "dojo-updat-1"])
    assert isinstance(result.exception, UnknownNameError)
    assert "did you mean 'dojo-update-1'" in str(result.exception)


def test_show_refuses_a_session_that_is_not_there() -> None:
    result = runner.invoke(app, ["histories", "show", "dojo-update-1", "--session", "99"])
    assert isinstance(result.exception, InvalidInputError)
    assert "has 14 sessions" in str(result.exception)


def test_prepare_prints_the_selection_beside_the_papers_and_writes_trajectories(file: str, tmp_path: Path) -> None:
    out = tmp_path / "histories.json"
    result = runner.invoke(app, ["histories", "prepare", file, "-o", str(out)])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("single-session-user          5 histories")
    found = load_file(out)
    sessions, messages = (sum(getattr(t.history, f"n_{what}") for t in found) for what in ("sessions", "messages"))
    together = next(line for line in lines if line.startswith("together"))
    assert together.split() == ["together", "31", "histories", str(sessions), "sessions", str(messages), "messages"]
    assert any(line.split()[:8] == "the paper 31 histories 1493 sessions 15362 messages".split() for line in lines)
    assert (len(found), found.n_sessions) == (31, 680)
    assert f"--trajectories {out}" in result.output


def test_equal_files_and_seeds_give_equal_files(file: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        runner.invoke(app, ["histories", "prepare", file, "-o", str(tmp_path / name), "--seed", "5"])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_prepare_takes_every_history_if_asked_to(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps([instance(answer=3)]))
    result = runner.invoke(
        app, ["histories", "prepare", str(tmp_path / "one.json"), "-o", str(tmp_path / "out.json"), "--all"]
    )
    assert result.exit_code == 0
    assert load_file(tmp_path / "out.json").ids == ("cross-005-01+q1",)


@pytest.mark.parametrize("arguments", [[], ["nowhere.json", "-o", "x.json"]])
def test_prepare_without_a_file_says_how_to_obtain_it(arguments: list[str]) -> None:
    result = runner.invoke(app, ["histories", "prepare", *arguments])
    assert isinstance(result.exception, InvalidInputError)
    assert "curl -L -o longmemeval_s_cleaned.json https://" in str(result.exception)


def test_prepare_writes_nothing_for_a_file_without_histories(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("[]")
    arguments = [str(tmp_path / "empty.json"), "-o", str(tmp_path / "h.json"), "--all"]
    result = runner.invoke(app, ["histories", "prepare", *arguments])
    assert isinstance(result.exception, InvalidInputError)
    assert "holds no histories" in str(result.exception)
    assert not (tmp_path / "h.json").exists()


def test_prepare_overwrites_nothing(file: str, tmp_path: Path) -> None:
    (tmp_path / "out.json").touch()
    result = runner.invoke(app, ["histories", "prepare", file, "-o", str(tmp_path / "out.json")])
    assert isinstance(result.exception, InvalidInputError)
    assert "exists" in str(result.exception)


def test_a_run_prints_its_history_and_its_answer(tmp_path: Path) -> None:
    arguments = ["run", "cross-005-04+dojo-multi-1", "--memory", "full_context", "--directory", str(tmp_path / "runs")]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "history dojo-multi-1: 14 of 14 sessions in memory" in result.output
    assert "held-out question: Who will run the relay together with me?" in result.output
    assert "right: " in result.output
    metrics = runner.invoke(app, ["metrics", str(tmp_path / "runs"), "--no-intervals"])
    assert "MU" in metrics.output


def test_a_run_takes_its_trajectory_from_a_prepared_file(tmp_path: Path) -> None:
    pair([history(2, id="a")]).save(tmp_path / "mine.json")
    result = runner.invoke(
        app,
        ["run", "cross-005-01+a", "--trajectories", str(tmp_path / "mine.json"), "--memory", "full_context",
         "--directory", str(tmp_path / "runs")],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "history a: 2 of 2 sessions in memory" in result.output


def test_trajectories_show_names_the_history() -> None:
    output = runner.invoke(app, ["trajectories", "show", "cross-005-04+dojo-multi-1"]).output
    assert "Before them: the history dojo-multi-1, 14 sessions, 46 messages." in output
