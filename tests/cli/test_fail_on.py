"""``memorydojo metrics --fail-on``: when it ends with 1, and what it says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

from memorydojo.cli.metrics import metrics

Call = Callable[..., Result]


@pytest.fixture
def call() -> Call:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(metrics)

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def _run(name: str, memory: str, *, met: int, later: int, poisoned: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "run_id": name,
            "session": t + 1,
            "n_sessions": later + 1,
            "insertion_session": 1 if poisoned else None,
            "domain": "travel",
            "objective_domain": "travel" if poisoned else None,
            "inserted": poisoned,
            "retrieved": False,
            "retrieved_original": False,
            "retrieved_descendant": False,
            "objective_met": poisoned and 0 < t <= met,
            "utility": True,
            "completed": True,
            "memory": memory,
            "trajectory_id": name,
            "simulated": True,
        }
        for t in range(later + 1)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """BRT is 1/20 with one memory and 4/20 with another; nothing is ever retrieved."""
    path = tmp_path / "sessions.csv"
    rows = _run("a", "mem0", met=1, later=20) + _run("b", "vector", met=4, later=20)
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("BRT>0.2", 0),
        ("BRT>=0.2", 1),
        ("BRT > 0.05", 1),
        ("BRT<0.05", 0),
        ("BRT<=0.05", 1),
        ("ISR<1", 0),
        ("TU<=0.99", 0),
        ("BR>0.5", 1),
    ],
)
def test_it_fails_exactly_when_a_group_meets_the_condition(call: Call, table: Path, condition: str, code: int) -> None:
    assert call(table, "--by", "memory", "--fail-on", condition).exit_code == code


def test_it_names_the_groups_and_no_other(call: Call, table: Path) -> None:
    result = call(table, "--by", "memory", "--fail-on", "BRT>0.05")
    assert result.stderr == "--fail-on BRT>0.05: holds for memory=vector: BRT is 0.2000\n"


def test_each_condition_is_looked_at(call: Call, table: Path) -> None:
    result = call(table, "--fail-on", "ISR<0.5", "--fail-on", "BRT>=0.1")
    assert result.exit_code == 1
    assert result.stderr == "--fail-on BRT>=0.1: holds for all runs: BRT is 0.1250\n"


def test_what_is_undefined_is_said_and_meets_no_condition(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    rows = _run("a", "mem0", met=0, later=2) + _run("b", "mem0", met=0, later=2, poisoned=False)
    pd.DataFrame(rows).to_csv(path, index=False)
    result = call(path, "--fail-on", "BRT>0.5")
    assert result.exit_code == 0
    assert "not checked for condition=clean, where BRT has no denominator" in result.stderr


def test_a_metric_that_is_undefined_everywhere_fails(call: Call, table: Path) -> None:
    result = call(table, "--fail-on", "BRT_given_R>0.5")
    assert result.exit_code == 1
    assert "could be checked for no group, which counts as a failure" in result.stderr


def test_a_metric_may_be_named_as_the_tables_print_it(call: Call, table: Path) -> None:
    result = call(table, "--fail-on", "BRT given R > 0.5")
    assert result.exit_code == 1
    assert "--fail-on BRT_given_R>0.5: could be checked for no group" in result.stderr


def test_json_on_the_standard_output_stays_whole(call: Call, table: Path) -> None:
    result = call(table, "--format", "json", "--fail-on", "BRT>0.1")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[0]["BRT"] == 0.125


def test_the_file_is_written_before_it_fails(call: Call, table: Path, tmp_path: Path) -> None:
    assert call(table, "--output", tmp_path / "m.json", "--fail-on", "BRT>0.1").exit_code == 1
    assert json.loads((tmp_path / "m.json").read_text())[0]["BRT"] == 0.125


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("BRT", "is no condition"),
        ("BRT=0.1", "is no condition"),
        ("BRT>5", "is no fraction from 0 to 1"),
        ("BRT>nan", "is no fraction from 0 to 1"),
        ("BRT>5%", "is no fraction from 0 to 1"),
        ("BRTT>0.1", "did you mean"),
        ("BRT given>0.1", "did you mean"),
        ("BRT BR>0.1", "unknown metric"),
        ("BRT>1", "can never hold"),
        ("BRT<0", "can never hold"),
    ],
)
def test_what_could_check_nothing_is_refused(call: Call, table: Path, condition: str, said: str) -> None:
    result = call(table, "--fail-on", condition)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("option", [["--funnel"], ["--cost"], ["--compare", "memory=mem0,vector"]])
def test_it_goes_with_a_table_of_metrics_only(call: Call, table: Path, option: list[str]) -> None:
    result = call(table, *option, "--fail-on", "BRT>0.1")
    assert result.exit_code == 2
    assert f"{option[0]} prints no table of metrics" in " ".join(result.stderr.split())


def test_distances_are_checked_bin_by_bin(call: Call, table: Path) -> None:
    result = call(table, "--distance", "--by", "memory", "--fail-on", "BRT>0.3")
    assert result.exit_code == 1
    assert "holds for memory=vector distance=" in result.stderr
