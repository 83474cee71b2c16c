"""Collections, their files, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.trajectories import Collection, load, load_file, names
from memorydojo.trajectory import Flag, Session, Trajectory

# Lone surrogates are no text: they cannot be written to a file.
texts = st.text(st.characters(exclude_categories=["Cs"]))
flags = st.frozensets(st.sampled_from(["drift", "stale-success"]))
sessions = st.builds(Session, domain=texts, task_id=texts, flags=flags)
trajectories = st.lists(
    st.builds(
        Trajectory,
        id=texts,
        collection=st.just("mine"),
        sessions=st.lists(sessions, min_size=1, max_size=4).map(tuple),
    ),
    max_size=5,
    unique_by=lambda trajectory: trajectory.id,
).map(tuple)
collections = st.builds(
    Collection,
    name=st.just("mine"),
    trajectories=trajectories,
    seed=st.none() | st.integers(),
    agentdojo=texts,
    benchmark=texts,
)


def saved(tmp_path: Path, **changes: Any) -> Path:
    """A good file with some fields changed; None leaves a field out."""
    data = {
        "format": "memorydojo-trajectories",
        "schema_version": 1,
        "name": "mine",
        "seed": None,
        "agentdojo": "0.1.35",
        "benchmark": "v1.2.2",
        "trajectories": [{"id": "a-001", "sessions": [{"domain": "slack", "task_id": "user_task_1"}]}],
    }
    data |= changes
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@given(collections)
def test_what_is_written_is_read_back(collection: Collection) -> None:
    from memorydojo.trajectories.collections import loads

    assert loads(collection.dumps(), "here") == collection


@given(collections)
def test_a_file_has_one_trajectory_a_line(collection: Collection) -> None:
    assert len(collection.dumps().split("\n")) == 11 + max(len(collection), 1)


@given(collections)
def test_a_collection_is_a_sequence_of_its_trajectories(collection: Collection) -> None:
    assert list(collection) == [collection[n] for n in range(len(collection))] == list(collection.trajectories)
    assert [collection[i] for i in collection.ids] == list(collection)
    assert all(t in collection and t.id in collection.ids for t in collection)
    assert collection.n_sessions == sum(len(t.sessions) for t in collection)


@given(collections, st.slices(5))
def test_a_slice_is_a_collection(collection: Collection, part: slice) -> None:
    assert isinstance(collection[part], Collection)
    assert collection[part].trajectories == collection.trajectories[part]
    assert collection[part].name == collection.name


@given(collections, st.lists(st.sampled_from(["drift", "stale-success"]), min_size=1))
def test_without_leaves_out_exactly_the_trajectories_with_a_flag(collection: Collection, unwanted: list[Flag]) -> None:
    kept = collection.without(*unwanted)
    for trajectory in collection:
        has_one = any(flag in session.flags for session in trajectory.sessions for flag in unwanted)
        assert (trajectory in kept) is not has_one


@given(collections)
def test_without_arguments_leaves_out_every_flag(collection: Collection) -> None:
    assert collection.without() == collection.without("drift", "stale-success")


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown flag 'drifts'; did you mean 'drift'"):
        load("slack").without("drifts")  # type: ignore[arg-type]


def test_an_unknown_trajectory_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown trajectory in collection 'workspace' 'workspace-005-3'; did"):
        load("workspace")["workspace-005-3"]


def test_a_position_out_of_range_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        load("slack")[22]


def test_two_trajectories_with_one_id_are_refused() -> None:
    one = load("slack")[0]
    with pytest.raises(InvalidInputError, match="two trajectories with the id 'slack-003-01'"):
        Collection("mine", (one, one))


def test_an_unknown_collection_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown collection 'same_domain'; did you mean 'same-domain'"):
        load("same_domain")


def test_every_name_loads() -> None:
    assert [load(name).name for name in names()] == list(names())


def test_loading_does_not_import_agentdojo() -> None:
    code = "import sys, memorydojo.trajectories as t; t.load('same-domain'); sys.exit('agentdojo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_saved_collection_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "slack.json"
    load("same-domain").save(path)
    assert load_file(path) == load("same-domain")


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=r"mine\.json exists"):
        load("slack").save(path)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match=r"cannot write .*file/mine\.json: "):
        load("slack").save(tmp_path / "file" / "mine.json")


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    load("slack").save(tmp_path / "new" / "mine.json")
    assert load_file(tmp_path / "new" / "mine.json").ids == load("slack").ids


def test_a_users_file_gets_its_own_name(tmp_path: Path) -> None:
    collection = load_file(saved(tmp_path))
    assert collection[0].collection == "mine"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot read .*none\.json: No such file"):
        load_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "is no collection file"),
        (b'{"format": "other"}', "is no collection file"),
    ],
)
def test_a_file_that_is_no_collection_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"mine\.json.*{message}"):
        load_file(path)


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"mine\.json has schema version 3.*upgrade memorydojo"):
        load_file(saved(tmp_path, schema_version=3))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schema_version", "1", '"schema_version" must be a whole number'),
        ("schema_version", True, '"schema_version" must be a whole number'),
        ("name", 5, '"name" must be a text, not 5'),
        ("seed", "x", '"seed" must be a whole number or null'),
        ("seed", False, '"seed" must be a whole number or null'),
        ("benchmark", None, '"benchmark" must be a text'),
        ("trajectories", {}, '"trajectories" must be a list'),
        ("extra", 1, "unknown fields 'extra'"),
    ],
)
def test_a_bad_header_field_is_named(tmp_path: Path, field: str, value: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"mine\.json: {message}"):
        load_file(saved(tmp_path, **{field: value}))


def test_a_missing_header_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"format": "memorydojo-trajectories", "schema_version": 1, "name": "mine"}', encoding="utf-8")
    with pytest.raises(InvalidInputError, match='the field "seed" is missing'):
        load_file(path)


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        (5, "trajectory 1: must be an object"),
        ({"id": "x", "sessions": []}, r"trajectory 1 \('x'\), field sessions: "),
        ({"sessions": []}, "trajectory 1, field id: "),
        ({"id": "x", "sessions": [{"domain": "slack"}]}, r"trajectory 1 \('x'\), field sessions\[1\]\.task_id: "),
        (
            {"id": "x", "sessions": [{"domain": "slack", "task_id": "t", "flags": ["odd"]}]},
            r"trajectory 1 \('x'\), field sessions\[1\]\.flags",
        ),
        ({"id": "x", "sessions": [], "collection": "y"}, r'trajectory 1 \(\'x\'\): the field "collection"'),
        ({"id": "x", "sesions": []}, r"trajectory 1 \('x'\), field sessions: it is missing; sesions: there is no such"),
    ],
)
def test_a_bad_trajectory_is_named_with_its_field(tmp_path: Path, trajectory: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"mine\.json, {message}"):
        load_file(saved(tmp_path, trajectories=[trajectory]))


def test_two_trajectories_with_one_id_in_a_file_are_named(tmp_path: Path) -> None:
    twice = [{"id": "x", "sessions": [{"domain": "slack", "task_id": "t"}]}] * 2
    with pytest.raises(InvalidInputError, match=r"mine\.json: .*two trajectories with the id 'x'"):
        load_file(saved(tmp_path, trajectories=twice))
