"""The session table: what is accepted, what is refused and how files come back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorydojo.errors import InvalidInputError
from memorydojo.runs.table import (
    SESSION_TABLE,
    check_session_table,
    empty_session_table,
    met_columns,
    read_session_table,
)


def _table() -> pd.DataFrame:
    """One poisoned run of four sessions and one clean run of two."""
    poisoned: dict[str, list[Any]] = {
        "run_id": ["p"] * 4,
        "session": [1, 2, 3, 4],
        "n_sessions": [4] * 4,
        "insertion_session": [1] * 4,
        "domain": ["travel"] * 4,
        "objective_domain": ["travel"] * 4,
        "inserted": [True] * 4,
        "retrieved": [False, True, True, False],
        "retrieved_original": [False, True, False, False],
        "retrieved_descendant": [False, False, True, False],
        "objective_met": [False, False, True, False],
        "utility": [True, True, False, False],
        "completed": [True, True, True, False],
        "trajectory_id": ["001"] * 4,
        "objective": ["hotel"] * 4,
        "simulated": [True] * 4,
        "memory_correct": [True] * 4,
        "met_hotel": [False, False, True, False],
        "defense": ["None"] * 4,
        "temperature": [0.5] * 4,
    }
    clean = {name: values[:2] for name, values in poisoned.items()}
    false = ("inserted", "retrieved", "retrieved_original", "retrieved_descendant", "objective_met", "met_hotel")
    null = ("insertion_session", "objective_domain", "objective", "memory_correct", "defense")
    clean |= {"run_id": ["c"] * 2, "n_sessions": [2, 2]}
    clean |= {name: [False] * 2 for name in false} | {name: [None] * 2 for name in null}
    return check_session_table(pd.DataFrame({name: [*poisoned[name], *clean[name]] for name in poisoned}))


def test_a_table_has_the_declared_dtypes() -> None:
    table = _table()
    kinds = {"integer": ("int64", "Int64"), "boolean": ("bool", "boolean")}
    for column in SESSION_TABLE:
        if column.name in table and column.kind != "text":
            assert str(table[column.name].dtype) == kinds[column.kind][column.nullable], column.name
    assert str(table["met_hotel"].dtype) == "boolean"


def test_checking_twice_changes_nothing() -> None:
    pd.testing.assert_frame_equal(check_session_table(_table()), _table())


def test_the_empty_table_is_a_table_with_every_declared_column() -> None:
    empty = empty_session_table()
    assert list(empty.columns) == [column.name for column in SESSION_TABLE]
    pd.testing.assert_frame_equal(check_session_table(empty), empty)


def test_the_order_of_rows_and_columns_is_kept_and_the_index_replaced() -> None:
    turned = _table().iloc[::-1, ::-1]
    checked = check_session_table(turned)
    assert list(checked.columns) == list(turned.columns)
    assert list(checked["session"]) == list(turned["session"])
    assert list(checked.index) == list(range(6))


def test_met_columns_are_found_by_objective() -> None:
    assert met_columns(_table()) == {"hotel": "met_hotel"}


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_a_table_comes_back_from_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    if suffix == ".csv":
        _table().to_csv(path, index=False)
    else:
        _table().to_json(path, orient="records", lines=suffix == ".jsonl")
    back = read_session_table(path)
    pd.testing.assert_frame_equal(back, _table())
    assert back["trajectory_id"].iloc[0] == "001"
    assert back["defense"].iloc[0] == "None"


def test_parquet_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path) -> pd.DataFrame:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", missing)
    with pytest.raises(InvalidInputError, match=r"pip install 'memorydojo\[parquet\]'"):
        read_session_table(tmp_path / "table.parquet")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", "", "use a file that ends in"),
        ("t.csv", "", "cannot read"),
        ("t.csv", "a,b\n1,2\n", "lacks 13 columns"),
        ("t.json", '{"a": 1', "cannot read"),
        ("t.jsonl", '{"run_id": "a"}\n{"run_', "cannot read"),
        ("t.json", "[]", "lacks 13 columns"),
        ("t.json", '{"a": 1}', "no list of rows"),
        ("t.jsonl", "[1]", "no list of rows"),
    ],
)
def test_a_file_that_holds_no_table_is_refused_by_name(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=message) as error:
        read_session_table(path)
    assert name in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"none\.csv"):
        read_session_table(tmp_path / "none.csv")


_BOOLEANS: dict[str, Any] = {
    "words": ["True", "false", "TRUE"],
    "digits": ["1", "0", "1"],
    "integers": [1, 0, 1],
    "floats": [1.0, 0.0, 1.0],
    "objects": np.array([True, False, np.True_], dtype=object),
    "nullable": pd.array([True, False, True], dtype="boolean"),
    "categories": pd.Categorical([True, False, True]),
}


@pytest.mark.parametrize("form", _BOOLEANS)
def test_booleans_are_read_from_what_files_make_of_them(form: str) -> None:
    table = _table().iloc[:3].assign(n_sessions=3)
    table["utility"] = pd.Series(_BOOLEANS[form])
    checked = check_session_table(table)
    assert checked["utility"].dtype == bool
    assert list(checked["utility"]) == [True, False, True]


@pytest.mark.parametrize("value", ["yes", "", 2, 0.5, float("inf"), None, "nan", [True], pd.Timestamp(0)])
def test_other_values_are_no_booleans(value: Any) -> None:
    table = _table().astype({"utility": object})
    table.at[2, "utility"] = value
    with pytest.raises(InvalidInputError, match=r"run 'p', session 3: column 'utility' .*must be True or False"):
        check_session_table(table)


_INTEGERS: dict[str, Any] = {
    "floats": [1.0, 1.0, 1.0, 1.0, np.nan, np.nan],
    "objects": np.array([1, 1, 1, 1, None, None], dtype=object),
    "text": ["1", "1", "1.0", "1", None, None],
    "nullable": pd.array([1, 1, 1, 1, None, None], dtype="Int32"),
    "unsigned": pd.array([1, 1, 1, 1, None, None], dtype="UInt8"),
}


@pytest.mark.parametrize("form", _INTEGERS)
def test_integers_are_read_from_what_files_make_of_them(form: str) -> None:
    table = _table()
    table["insertion_session"] = pd.Series(_INTEGERS[form])
    pd.testing.assert_frame_equal(check_session_table(table), _table())


@pytest.mark.parametrize("value", [1.5, True, "one", float("inf"), -float("inf"), 2**70, 1j, None])
def test_other_values_are_no_integers(value: Any) -> None:
    table = _table().astype({"n_sessions": object})
    table.at[1, "n_sessions"] = value
    with pytest.raises(InvalidInputError, match=r"run 'p', session 2: column 'n_sessions' .*whole number"):
        check_session_table(table)


def test_whole_numbers_serve_as_text_and_other_values_do_not() -> None:
    assert list(check_session_table(_table().assign(trajectory_id=7))["trajectory_id"]) == ["7"] * 6
    for value in (1.5, True, ["a"]):
        table = _table().astype({"domain": object})
        table["domain"] = pd.Series([value] * 6)
        with pytest.raises(InvalidInputError, match=r"column 'domain'.*must be text"):
            check_session_table(table)


def test_null_is_refused_where_it_means_nothing() -> None:
    for name in ("run_id", "domain", "trajectory_id", "simulated", "inserted"):
        table = _table().astype({name: object})
        table.loc[table["run_id"] == "c", name] = None
        with pytest.raises(InvalidInputError, match=f"column '{name}' holds no value"):
            check_session_table(table)


def _changed(row: int | list[int], **values: Any) -> pd.DataFrame:
    table = _table()
    for name, value in values.items():
        table.loc[row, name] = value
    return table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (_changed(1, retrieved=False), "run 'p', session 2: column 'retrieved': .*retrieved_original or"),
        (_changed(3, retrieved=True), "run 'p', session 4: column 'retrieved': .*retrieved_original or"),
        (_changed(0, retrieved=True, retrieved_original=True), "'p', session 1: .*at or before the insertion session"),
        (_changed(5, retrieved=True, retrieved_original=True), "run 'c', session 2: .*without attack"),
        (_changed(5, retrieved_descendant=True), "column 'retrieved_descendant': .*without attack"),
        (_changed([4, 5], inserted=True), "run 'c', session 1: column 'inserted': .*without attack"),
        (_changed([0, 1, 2, 3], insertion_session=4), "'insertion_session': .*less than n_sessions"),
        (_changed([0, 1, 2, 3], insertion_session=0), "'insertion_session': it must be at least 1"),
        (_changed(2, inserted=False), "run 'p', session 3: column 'inserted': it differs within the run"),
        (_changed(2, insertion_session=2), "session 3: column 'insertion_session': it differs"),
        (_changed(2, insertion_session=pd.NA), "session 3: column 'insertion_session': it differs"),
        (_changed(2, objective_domain="slack"), "session 3: column 'objective_domain': it differs"),
        (_changed(2, memory_correct=False), "session 3: column 'memory_correct': it differs"),
        (_changed(2, simulated=False), "session 3: column 'simulated': it differs"),
        (_changed(2, defense=None), "session 3: column 'defense': it differs"),
        (_changed(2, n_sessions=5), "session 3: column 'n_sessions': it differs"),
        (_changed(2, met_hotel=pd.NA), "session 3: column 'met_hotel': it is null in some rows"),
        (_changed(2, objective_met=False), "session 3: column 'objective_met': it differs from 'met_hotel'"),
        (_changed(2, session=2), "run 'p', session 2: column 'session': this session has more than one row"),
        (_changed(2, session=0), "run 'p', session 0: column 'session': it must be from 1 to n_sessions"),
        (_changed(2, session=5), "run 'p', session 5: column 'session': it must be from 1 to n_sessions"),
        (_table().drop(index=2), "run 'p': 4 sessions are planned .*session 3 has no row"),
        (_table().drop(index=3), "run 'p': 4 sessions are planned .*session 4 has no row"),
        (_table().assign(n_sessions=10**12), "session 5 has no row"),
        (pd.concat([_table(), _table().iloc[:1]]), "this session has more than one row"),
        (_table().drop(columns=["utility", "session"]), "lacks 2 columns: 'session' .*'utility'"),
        (_table().rename(columns={"temperature": "utility"}), "more than one column named 'utility'"),
    ],
)
def test_a_broken_rule_names_the_place_and_the_rule(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_session_table(table)


def test_an_objective_that_was_not_evaluated_in_a_run_is_null_in_all_of_it() -> None:
    assert check_session_table(_changed([4, 5], met_hotel=pd.NA))["met_hotel"].isna().sum() == 2


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_any_single_flip_of_a_retrieval_is_found(data: st.DataObject) -> None:
    table = _table()
    name = data.draw(st.sampled_from(["retrieved", "retrieved_original", "retrieved_descendant"]))
    row = data.draw(st.integers(0, len(table) - 1))
    flipped = table.copy()
    flipped.loc[row, name] = not flipped.loc[row, name]
    allowed = bool(flipped.loc[row, "retrieved"]) and bool(table.loc[row, "retrieved"]) and name != "retrieved"
    still_either = bool(flipped.loc[row, "retrieved_original"]) or bool(flipped.loc[row, "retrieved_descendant"])
    if allowed and still_either:
        check_session_table(flipped)
    else:
        with pytest.raises(InvalidInputError):
            check_session_table(flipped)


def test_json_lines_of_another_tool_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [json.loads(line) for line in _table().to_json(orient="records", lines=True).splitlines()]
    for row in rows:
        row["utility"] = int(row["utility"])
        row.pop("temperature")
    path.write_text("\n".join(json.dumps(row) for row in rows))
    pd.testing.assert_frame_equal(read_session_table(path), _table().drop(columns="temperature"))
