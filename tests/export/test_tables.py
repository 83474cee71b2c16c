"""Tables come back from their files equal, dtypes included."""

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memorydojo as md
from memorydojo.cost import usage_table
from memorydojo.errors import InvalidInputError, MissingPackageError, SavedRunError, UnknownNameError
from memorydojo.export import labels_table, write_table
from memorydojo.judging.labels import POISON
from memorydojo.runs import Runs
from memorydojo.runs.table import read_session_table

SUFFIXES = ("csv", "jsonl", "parquet")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_session_table_comes_back_equal(runs: Runs, tmp_path: Path, suffix: str) -> None:
    table = runs.session_table()
    back = read_session_table(write_table(table, tmp_path / f"t.{suffix}"))
    pd.testing.assert_frame_equal(back, table)
    assert {str(dtype) for dtype in table.dtypes} >= {"bool", "boolean", "Int64", "int64"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_metrics_of_an_export_are_those_of_the_runs(runs: Runs, tmp_path: Path, suffix: str) -> None:
    table = runs.session_table()
    back = read_session_table(write_table(table, tmp_path / f"t.{suffix}"))
    pd.testing.assert_frame_equal(
        md.metrics.summarize(back, by="condition", replicates=20),
        md.metrics.summarize(table, by="condition", replicates=20),
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hostile_names_come_back_as_they_are(hostile: Path, tmp_path: Path, suffix: str) -> None:
    table = md.load_runs(hostile).session_table()
    back = read_session_table(write_table(table, tmp_path / f"t.{suffix}"))
    assert back["memory"].tolist() == [name.replace("\ud83d", "\ufffd") for name in table["memory"]]
    pd.testing.assert_frame_equal(back[["session", "retrieved"]], table[["session", "retrieved"]])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nulls_and_booleans_of_any_table_come_back(run_rows: Any, tmp_path: Path, suffix: str) -> None:
    rows = [
        *run_rows("a", ["workspace"] * 2, met_travel=None, defense="None", simulated=True, memory_correct=True),
        *run_rows("b", ["slack"] * 2, t0=None, objective_domain=None, met_travel=True, defense=None, simulated=True),
    ]
    table = md.runs.table.check_session_table(pd.DataFrame(rows))
    pd.testing.assert_frame_equal(read_session_table(write_table(table, tmp_path / f"t.{suffix}")), table)


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path, lines=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_usage_and_labels_are_tables_too(runs: Runs, hostile: Path, tmp_path: Path, suffix: str) -> None:
    labels = labels_table(runs)
    back = _read(write_table(labels, tmp_path / f"t.{suffix}"))
    pd.testing.assert_frame_equal(back[list(labels.columns)], labels, check_dtype=False, check_column_type=False)
    usage = usage_table(md.load_runs(hostile))
    back = _read(write_table(usage, tmp_path / f"u.{suffix}"))
    assert len(usage) == 3
    assert back[["session", "calls", "input_tokens"]].values.tolist() == (
        usage[["session", "calls", "input_tokens"]].values.tolist()
    )


def test_labels_are_those_of_the_runs(runs: Runs) -> None:
    table = labels_table(runs)
    run = next(run for run in runs if run.plan.insertion)
    labels = run.labels()
    mine = table[table["run_id"] == run.id]
    assert (mine["what"] == "entry").sum() == len(labels.entries)
    assert (mine["what"] == "item").sum() == sum(len(session.items) for session in labels.sessions)
    assert mine["label"].isin(POISON).any()
    assert mine["simulated"].all()
    sessions = run.sessions
    retrieved = mine[(mine["what"] == "item") & mine["label"].isin(POISON)]["session"].unique().tolist()
    table = runs.session_table()
    assert table[(table["run_id"] == run.id) & table["retrieved"]]["session"].tolist() == retrieved
    assert len(sessions) == 3


def test_json_lines_are_ascii_and_one_a_line(hostile: Path, tmp_path: Path) -> None:
    data = write_table(md.load_runs(hostile).session_table(), tmp_path / "t.jsonl").read_bytes()
    assert data.isascii()
    assert len([json.loads(line) for line in data.splitlines()]) == 3


def test_parquet_says_that_runs_are_simulated(runs: Runs, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = write_table(runs.session_table(), tmp_path / "t.parquet")
    assert json.loads(pq.read_schema(path).metadata[b"memorydojo"])["simulated"] is True


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_is_replaced_and_nothing_else_is(runs: Runs, tmp_path: Path, suffix: str) -> None:
    table, path = runs.session_table(), tmp_path / f"t.{suffix}"
    write_table(table, path)
    write_table(table, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    path.write_text("years of work\n1\n")
    with pytest.raises(InvalidInputError, match="something else"):
        write_table(table, path)
    assert path.read_text() == "years of work\n1\n"


def test_what_was_there_stays_when_writing_fails(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_table(runs.session_table(), tmp_path / "t.csv")
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(SavedRunError, match="No space left"):
        write_table(runs.session_table(), path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_directory_that_is_not_there_is_made(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "of" / "t.csv"
    write_table(runs.session_table(), path)
    assert path.exists()
    with pytest.raises(SavedRunError, match=r"t\.csv"):
        write_table(runs.session_table(), path / "t.csv")


def test_what_cannot_be_written_is_refused(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = runs.session_table()
    with pytest.raises(UnknownNameError, match=r"\.csv"):
        write_table(table, tmp_path / "t.xlsx")
    with pytest.raises(InvalidInputError, match="no session table"):
        write_table(md.metrics.summarize(table, by="memory", intervals=False), tmp_path / "t.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"memorydojo\[parquet\]"):
        write_table(table, tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "write", [md.export.write_inspect, md.export.write_agentdojo, lambda runs, _: md.export.labels_table(runs)]
)
def test_the_path_of_a_directory_is_no_runs(write: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"give memorydojo\.load_runs\(path\)"):
        write("runs/demo", tmp_path / "x.eval")
