"""Exported traces are read by AgentDojo's own loader."""

import json
from pathlib import Path

import pytest
from agentdojo.benchmark import load_task_results

import memorydojo as md
from memorydojo.errors import InvalidInputError
from memorydojo.export import write_agentdojo
from memorydojo.export.agentdojo import MANIFEST
from memorydojo.runs import Runs


@pytest.fixture(scope="module")
def exported(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agentdojo(runs, tmp_path_factory.mktemp("export") / "traces")


def test_agentdojo_reads_every_session(exported: Path, runs: Runs) -> None:
    rows = {(row["run_id"], row["session"]): row for row in runs.session_table().to_dict("records")}
    for run in runs:
        attack, objective = ("memorydojo", "banking") if run.plan.insertion else ("none", "none")
        for result in run.sessions:
            logdir = exported / run.id / f"session-{result.session:04d}"
            found = load_task_results("simulated-full_context", "banking", result.task_id, attack, objective, logdir)
            row = rows[run.id, result.session]
            assert found.utility == row["utility"]
            assert found.security == (row["objective_met"] if run.plan.insertion else True)
            assert found.error is None
            assert [m["role"] for m in found.messages] == [m.role for m in result.messages]
            first = found.messages[0]["content"]
            assert first is not None
            assert first[0]["content"] == result.prompt
            payload = [run.plan.insertion.payload.text] if run.plan.insertion and result.payload_inserted else []
            assert [*found.injections.values()] == payload


def test_calls_are_beside_their_results(exported: Path, runs: Runs) -> None:
    run = runs[0]
    file = next((exported / run.id / "session-0001").rglob("*.json"))
    messages = json.loads(file.read_text())["messages"]
    calls = [call for m in messages if m["role"] == "assistant" for call in m["tool_calls"] or []]
    assert [m["tool_call"] for m in messages if m["role"] == "tool"] == calls
    assert calls


def test_every_trace_says_that_it_is_simulated(exported: Path) -> None:
    assert json.loads((exported / MANIFEST).read_text())["simulated"] is True
    files = [path for path in exported.rglob("*.json") if path.name != MANIFEST]
    assert len(files) == 10
    assert all(json.loads(path.read_text())["memorydojo"]["simulated"] for path in files)


def test_hostile_names_stay_inside_the_directory(hostile: Path, tmp_path: Path) -> None:
    target = write_agentdojo(md.load_runs(hostile), tmp_path / "out")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 4
    for path in files:
        assert path.is_relative_to(target)
        assert str(path).isprintable()
        assert path.read_bytes().isascii()
    trace = json.loads(next(p for p in files if p.name != MANIFEST).read_text())
    assert "</script>" in trace["messages"][1]["content"][0]["content"]


def test_an_export_is_replaced_and_nothing_else_is(exported: Path, runs: Runs) -> None:
    before = sorted(path.relative_to(exported) for path in exported.rglob("*"))
    write_agentdojo(runs, exported)
    assert sorted(path.relative_to(exported) for path in exported.rglob("*")) == before
    assert [path.name for path in exported.parent.iterdir()] == ["traces"]
    (exported / "notes.txt").write_text("years of work")
    with pytest.raises(InvalidInputError, match="something else"):
        write_agentdojo(runs, exported)
    assert (exported / "notes.txt").read_text() == "years of work"
    (exported / "notes.txt").unlink()
