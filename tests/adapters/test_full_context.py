from collections.abc import Callable
from pathlib import Path

import pytest

from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import MemorySystemError
from memorydojo.models.simulated import SimulatedModels
from memorydojo.testing import make_session

MODELS = SimulatedModels(FullContextAdapter.simulate)


def opened(directory: Path) -> FullContextAdapter:
    return FullContextAdapter.open(directory, MODELS, FullContextAdapter.Config())


def test_everything_is_delivered_in_the_order_of_writing(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    records = [make_session(number, f"fact {number}") for number in (2, 1, 3)]
    for record in records:
        memory.write(record)
    assert [item.text for item in memory.retrieve("anything")] == [record.transcript() for record in records]
    assert [item.entry_ids for item in memory.retrieve("")] == [(record.id,) for record in records]


def test_no_model_is_used(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    memory.write(make_session(1))
    memory.retrieve("anything")
    assert MODELS.usage.chat_calls == MODELS.usage.embed_calls == 0


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    memory.write(make_session(1))
    before = memory.snapshot()
    memory.write(make_session(2))
    path = tmp_path / "sessions.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    again = opened(tmp_path)
    assert again.snapshot() == before
    again.write(make_session(2))
    assert opened(tmp_path).snapshot() == memory.snapshot()


@pytest.mark.parametrize("line", [b"{not json}\n", b'{"id": "x"}\n', b"\xff\n", b"\n"])
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    opened(tmp_path).write(make_session(1))
    path = tmp_path / "sessions.jsonl"
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(MemorySystemError, match=r"line 1 of .*sessions\.jsonl"):
        opened(tmp_path)


def test_a_session_is_written_once(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError, match="already stored"):
        memory.write(make_session(1))


def _file(path: Path) -> None:
    (path / "thesis.txt").write_text("precious")


def _marker(path: Path) -> None:
    (path / "memory.json").write_text("{")


@pytest.mark.parametrize(("spoil", "problem"), [(_file, "holds no memory"), (_marker, "cannot be read")])
def test_a_directory_that_holds_something_else_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    spoil(tmp_path)
    with pytest.raises(MemorySystemError, match=problem):
        opened(tmp_path)


def test_a_checkpoint_may_go_into_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    memory = opened(tmp_path / "a")
    memory.write(make_session(1))
    memory.checkpoint(tmp_path / "b")
    assert opened(tmp_path / "b").snapshot() == memory.snapshot()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(MemorySystemError, match="there is no directory"):
        opened(tmp_path / "missing")
