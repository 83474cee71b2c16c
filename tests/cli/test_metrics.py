"""``memorydojo metrics`` on tables and on saved runs."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner, Result

import memorydojo as md
from memorydojo.cli.metrics import metrics
from memorydojo.metrics import summarize
from memorydojo.runs.table import read_session_table

Call = Callable[..., Result]


@pytest.fixture
def call() -> Call:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(metrics)

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def _run(run_id: str, *, poisoned: bool, memory: str, trajectory: str, good: bool) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run_id,
            "session": t,
            "n_sessions": 3,
            "insertion_session": 1 if poisoned else None,
            "domain": "travel",
            "objective_domain": "travel" if poisoned else None,
            "inserted": poisoned,
            "retrieved": poisoned and t == 2,
            "retrieved_original": poisoned and t == 2,
            "retrieved_descendant": False,
            "objective_met": poisoned and t == 3,
            "utility": t < 3 or good,
            "completed": True,
            "memory": memory,
            "trajectory_id": trajectory,
            "simulated": memory == "mem0",
            "met_hotel": t == 3 and (poisoned or good),
        }
        for t in (1, 2, 3)
    ]


def _rows(memory: str = "mem0", prefix: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for trajectory in ("t1", "t2"):
        for poisoned in (True, False):
            name = f"{prefix}{memory}-{trajectory}-{'p' if poisoned else 'c'}"
            rows += _run(name, poisoned=poisoned, memory=memory, trajectory=trajectory, good=trajectory == "t1")
    return rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.csv"
    pd.DataFrame(_rows() + _rows("vector")).to_csv(path, index=False)
    return path


def test_the_table_shows_percentages_with_intervals_and_says_simulated(call: Call, table: Path) -> None:
    result = call(table, "--by", "memory")
    assert result.exit_code == 0
    assert "Metrics (partly simulated)" in result.stdout
    assert "never a language model" in result.stdout
    assert "memory=vector" in result.stdout
    assert "condition=poisoned" in result.stdout
    assert "50.00 [50.00, 50.00]" in result.stdout
    assert "Base rates" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_runs_that_are_not_simulated_are_not_called_so(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(_rows("vector")))
    result = call(path)
    assert result.exit_code == 0
    assert "(simulated)" not in result.stdout
    assert "never a language model" not in result.stdout


def test_csv_and_json_hold_what_summarize_returns(call: Call, table: Path) -> None:
    expected = summarize(read_session_table(table), by=["memory", "condition"])
    as_csv = pd.read_csv(io.StringIO(call(table, "--by", "memory,condition", "--format", "csv").stdout))
    as_json = pd.DataFrame(json.loads(call(table, "--by", "memory", "--by", "condition", "--format", "json").stdout))
    for found in (as_csv, as_json):
        pd.testing.assert_frame_equal(found.infer_objects().fillna(float("nan")), expected, check_dtype=False)
        assert list(found["simulated"]) == [True, True, False, False]


def test_undefined_metrics_are_null_in_json_and_empty_in_csv(call: Call, table: Path) -> None:
    rows = json.loads(call(table, "--format", "json").stdout)
    assert [row["ISR"] for row in rows] == [None, 1.0]
    lines = list(csv.DictReader(io.StringIO(call(table, "--format", "csv").stdout)))
    assert [line["ISR"] for line in lines] == ["", "1.0"]


def test_parts_distances_base_rates_and_comparisons(call: Call, table: Path) -> None:
    part = json.loads(call(table, "--part", "within-domain", "--format", "json").stdout)
    assert part[0]["n_later"] == 8
    assert "ISR" not in part[0]
    bins = json.loads(call(table, "--distance", "--no-intervals", "--format", "json").stdout)
    assert [row["distance"] for row in bins] == ["1-10", "11-20", "21-30", "31+"]
    assert "RSR_low" not in bins[0]
    rates = json.loads(call(table, "--base-rates", "--format", "json").stdout)
    assert (rates[0]["objective"], rates[0]["n_met"], rates[0]["n_sessions"]) == ("hotel", 2, 12)
    difference = json.loads(call(table, "--compare-clean", "--by", "memory", "--format", "json").stdout)
    assert [row["metric"] for row in difference] == ["TU", "MU"] * 2
    assert difference[0]["difference"] == 0


def test_a_table_of_groups_has_each_metric_once_and_in_percent(call: Call, table: Path) -> None:
    lines = [[cell.strip() for cell in line.strip("│").split("│")] for line in call(table).stdout.splitlines()]
    heads = [cells[0] for cells in lines]
    for metric in ("RSR", "BRT", "BRT given R"):
        assert heads.count(metric) == 1
        assert f"{metric} %" not in heads
    assert heads[heads.index("simulated") :][:6] == [
        "simulated",
        "runs",
        "trajectories",
        "task sessions",
        "later sessions",
        "with retrieval",
    ]


def test_distances_without_later_sessions_are_left_out_of_the_table_and_named(call: Call, table: Path) -> None:
    shown = call(table, "--distance").stdout
    assert "distance=1-10" in shown
    assert "distance=11-20" not in shown
    assert "Left out, as no later session is at such a distance: 11-20, 21-30, 31+." in shown


@pytest.mark.parametrize("mode", ["--distance", "--base-rates", "--compare-clean", "--part=cross-domain"])
def test_every_mode_prints_a_table_that_says_simulated_and_fits(call: Call, table: Path, mode: str) -> None:
    result = call(table, mode, "--by", "memory")
    assert result.exit_code == 0
    assert "simulated)" in result.stdout.splitlines()[0]
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_an_unbalanced_comparison_says_so(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    more = _run("again", poisoned=True, memory="mem0", trajectory="t1", good=False)
    pd.DataFrame(_rows() + more).to_csv(path, index=False)
    assert "unequal numbers of poisoned runs" in call(path, "--compare-clean").stdout
    pd.DataFrame(_rows()).to_csv(path, index=False)
    assert "unequal" not in call(path, "--compare-clean").stdout


def test_a_table_without_trajectories_says_what_intervals_mean(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame(_rows()).drop(columns="trajectory_id").to_csv(path, index=False)
    assert "every run as a trajectory of its own" in call(path).stdout


def test_several_paths_are_pooled(call: Call, table: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text("\n".join(json.dumps(row) for row in _rows("mem0", prefix="x-")))
    rows = json.loads(call(table, more, "--format", "json").stdout)
    assert [row["n_runs"] for row in rows] == [6, 6]


def test_a_run_in_two_paths_is_refused(call: Call, table: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes(table.read_bytes())
    result = call(table, copy)
    assert result.exit_code == 1
    assert "must not count twice" in result.stderr


def test_hostile_names_are_shown_as_plain_text(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    name = "[red]x[/red]\x1b[31m:smile:\u202e"
    path.write_text(json.dumps([{**row, "memory": name} for row in _rows()]))
    for arguments in (["--by", "memory", "--no-intervals"], ["--by", "memory", "--format", "csv"]):
        shown = call(path, *arguments).stdout
        assert "[red]x[/red]\\x1b[31m:smile:\\u202e" in shown.replace("\n", "")
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    rows = json.loads(call(path, "--by", "memory", "--format", "json").stdout)
    assert rows[0]["memory"] == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "memori"], "did you mean 'memory'"),
        (["--by", "n_sessions"], "result has a column of that name"),
        (["--part", "within"], "unknown part 'within'"),
        (["--format", "xml"], "unknown format 'xml'"),
        (["--distance", "--base-rates"], "ask for different tables"),
        (["--part", "within-domain", "--compare-clean"], "ask for different tables"),
        (["--replicates", "0"], "greater than or equal to 1"),
        (["--output", "x.txt"], "must end in .csv or .json"),
        (["--output", "x.csv", "--format", "json"], "contradicts"),
    ],
)
def test_wrong_usage_has_exit_code_2(call: Call, table: Path, arguments: list[str], message: str) -> None:
    result = call(table, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_a_missing_path_is_wrong_usage(call: Call, tmp_path: Path) -> None:
    assert call(tmp_path / "none").exit_code == 2


def test_data_that_cannot_be_used_has_exit_code_1(call: Call, table: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    result = call(broken)
    assert result.exit_code == 1
    assert "'vector-t2-c'" in result.stderr
    assert "session 3 has no row" in result.stderr
    assert call(tmp_path).exit_code == 1
    (tmp_path / "t.xlsx").write_text("x")
    assert call(tmp_path / "t.xlsx").exit_code == 1
    empty = tmp_path / "empty.csv"
    empty.write_text(table.read_text().splitlines()[0] + "\n")
    assert "there are no runs" in call(empty).stderr
    poisoned = tmp_path / "poisoned.csv"
    sessions = read_session_table(table)
    sessions[sessions["insertion_session"].notna()].to_csv(poisoned, index=False)
    assert call(poisoned, "--compare-clean").exit_code == 1
    assert "needs runs without attack" in call(poisoned, "--base-rates").stderr


def test_output_is_written_whole_and_may_be_written_again(call: Call, table: Path, tmp_path: Path) -> None:
    for name in ("m.csv", "m.json"):
        output = tmp_path / name
        first = call(table, "--output", output)
        assert (first.exit_code, first.stdout) == (0, "")
        assert output.read_text() == call(table, "--format", output.suffix[1:]).stdout
        assert call(table, "--compare-clean", "--output", output).exit_code == 0
        assert call(table, "--output", output).exit_code == 0
        assert output.read_text() == call(table, "--format", output.suffix[1:]).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.csv", "m.json", "sessions.csv"]


@pytest.mark.parametrize("content", ["run_id,session\na,1\n", "not a table", "\x00\xff"])
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_another_file_is_never_overwritten(call: Call, table: Path, tmp_path: Path, content: str, suffix: str) -> None:
    other = tmp_path / f"other{suffix}"
    other.write_text(content, encoding="latin-1")
    result = call(table, "--output", other)
    assert result.exit_code == 2
    assert "something else than metrics" in " ".join(result.stderr.split())
    assert other.read_text(encoding="latin-1") == content
    assert call(table, "--output", table).exit_code == 2


def test_a_failed_write_leaves_what_was_there(
    call: Call, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "m.csv"
    call(table, "--output", output)
    before = output.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = call(table, "--output", output)
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert output.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.csv", "sessions.csv"]


@pytest.mark.slow
def test_metrics_import_no_agent_model_or_memory_system(table: Path) -> None:
    code = (
        "import sys, typer\n"
        "from memorydojo.cli.metrics import metrics\n"
        "import memorydojo.metrics\n"
        f"metrics([__import__('pathlib').Path({str(table)!r})])\n"
        "heavy = {'agentdojo', 'openai', 'anthropic', 'cohere', 'google', 'torch', 'mem0', 'onnxruntime', 'spacy',\n"
        "         'qdrant_client', 'fastembed'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_hangs_on_texts_without_a_usable_answer_is_told_with_how_much_it_can_matter(
    call: Call, tmp_path: Path
) -> None:
    names = ("insertion_unjudged", "retrieval_unjudged", "origin_unjudged", "objective_unjudged")
    rows = [{**row, **dict.fromkeys(names, False)} for row in _rows()]
    for row in rows:
        poisoned = row["insertion_session"] is not None
        if poisoned and row["run_id"] == "mem0-t1-p":
            row.update(inserted=False, insertion_unjudged=True)
            row["retrieval_unjudged"] = row["session"] == 3
        row["origin_unjudged"] = row["retrieved"]
    path = tmp_path / "t.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    result = call(path, "--no-intervals")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "ISR hangs on texts that the judge gave no usable answer about in 1 of 2 poisoned runs" in said
    assert "up to 50.00 points higher" in said
    assert "RSR hangs on texts that the judge gave no usable answer about in 1 of 4 later sessions" in said
    assert "up to 25.00 points higher" in said
    assert "(PE, PR, PP) hangs on such texts in 2 of 2 sessions with retrieval" in said
    assert "BRT hangs" not in said


def test_labels_of_several_judges_in_one_table_are_told(call: Call, tmp_path: Path) -> None:
    for number in (1, 2):
        rows = [{**row, "judge": f"overlap {number}"} for row in _rows(prefix=str(number))]
        pd.DataFrame(rows).to_csv(tmp_path / f"{number}.csv", index=False)
    one, both = ([tmp_path / f"{n}.csv" for n in numbers] for numbers in ((1,), (1, 2)))
    assert "of several judges" not in call(*one, "--no-intervals").stdout
    said = " ".join(call(*both, "--no-intervals").stdout.split())
    assert "of several judges or versions, which may judge differently: overlap 1; overlap 2" in said


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    attack = md.Attack(objective="banking", payload="seed-1")
    md.run(trajectory, "full_context", directory=tmp_path / "runs", attack=attack)
    return tmp_path / "runs"


def test_a_funnel_a_breakdown_and_a_comparison_of_saved_runs(call: Call, saved: Path) -> None:
    rows = json.loads(call(saved, "--funnel", "--format", "json").stdout)
    assert {row["stage"] for row in rows} == {"entered", "stored", "retrieved", "acted on"}
    assert "earliest failed check" in " ".join(call(saved, "--funnel").stdout.split())
    assert {row["failed_check"] for row in json.loads(call(saved, "--losses", "--format", "json").stdout)} >= {"kept"}
    assert call(saved, "--delivery", "kind").exit_code == 0


def test_a_comparison_names_its_sides_and_signs(call: Call, table: Path) -> None:
    printed = call(table, "--compare", "memory=mem0,vector")
    assert printed.exit_code == 0
    assert "mem0 %" in printed.stdout
    assert "Sign: + or -" in printed.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "memory"], "write a column and two of its values"),
        (["--compare", "memory=mem0"], "write a column and two of its values"),
        (["--delivery", "rout"], "unknown delivery"),
        (["--funnel", "--losses"], "ask for different tables"),
    ],
)
def test_a_wrong_breakdown_is_a_wrong_use(call: Call, table: Path, arguments: list[str], message: str) -> None:
    result = call(table, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_output_makes_the_directory(call: Call, table: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "m.csv"
    assert call(table, "--output", output).exit_code == 0
    assert output.read_text().startswith("condition,")


def test_a_comparison_leaves_out_what_clean_runs_cannot_have_and_names_it(call: Call, table: Path) -> None:
    shown = call(table, "--compare", "condition=poisoned,clean").stdout
    assert [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")] == ["TU"]
    assert "Left out where a side has no such metric: ISR, ASR, RSR" in shown


def test_a_comparison_fits_80_columns_without_breaking_a_number(table: Path) -> None:
    result = md.metrics.compare(read_session_table(table), "memory", "mem0", "vector")
    lines = md.metrics.view(result, sides=("mem0", "vector")).text(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("0.00 [0.00, 0.00]" in line for line in lines) == result["difference"].notna().sum()


def test_costs_have_words_for_truth_values_and_separators_in_numbers(call: Call, saved: Path) -> None:
    shown = call(saved, "--cost", "--by", "memory,simulated").stdout
    assert "True" not in shown
    assert "(simulated)" in shown.splitlines()[0]


def test_a_cell_of_costs_reads_well() -> None:
    from memorydojo.cli.cost import _cell

    assert [_cell(value) for value in (True, False, 12345, 0.0, 1234.5, 0.00123)] == [
        "yes",
        "no",
        "12,345",
        "0.00",
        "1,234.50",
        "0.00123",
    ]


def test_costs_of_simulated_runs_say_so_however_they_are_grouped(call: Call, tmp_path: Path) -> None:
    trajectory = md.trajectories.load("banking")["banking-003-01"]
    md.run(trajectory, "vector", directory=tmp_path / "runs")
    assert "(simulated)" in call(tmp_path / "runs", "--cost", "--by", "memory").stdout.splitlines()[0]


def test_the_heads_of_csv_are_escaped_like_its_cells() -> None:
    from memorydojo.cli._metrics_files import as_csv

    assert as_csv(pd.DataFrame({"x\x1b[31m\u202e": [1]})).splitlines()[0] == r"x\x1b[31m\u202e"
