from collections.abc import Callable
from pathlib import Path

import pytest

from memorydojo.adapters._state import Rollback


def _tree(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
        if path.name != "before-write"
    }


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    (tmp_path / "store" / "odd name \u00e9\n").mkdir(parents=True)
    (tmp_path / "store" / "empty").mkdir()
    (tmp_path / "store" / "odd name \u00e9\n" / "rows").write_bytes(b"\x00one" * 100_000)
    (tmp_path / "sessions.json").write_text("[]")
    (tmp_path / "other").write_text("not the system's")
    return tmp_path


def _change(memory: Path) -> None:
    (memory / "store" / "odd name \u00e9\n" / "rows").write_bytes(b"two")
    (memory / "store" / "new").mkdir()
    (memory / "store" / "new" / "file").write_text("new")
    (memory / "store" / "empty").rmdir()
    (memory / "sessions.json").unlink()
    (memory / "late.db").write_text("was not there")


def _rollback(memory: Path) -> Rollback:
    return Rollback(memory, ("store", "late.db", "sessions.json"))


def _write(memory: Path, *, fail: bool = False) -> None:
    with _rollback(memory).guarding(lambda: None):
        _change(memory)
        if fail:
            raise KeyboardInterrupt


def _fail(memory: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _write(memory, fail=True)


def _die(memory: Path) -> None:
    """What a process does that is killed in a write, and the next one."""
    _rollback(memory)._keep()
    _change(memory)
    _rollback(memory).undo()


@pytest.mark.parametrize("end", [_fail, _die])
def test_a_write_that_does_not_end_leaves_everything_as_before(memory: Path, end: Callable[[Path], None]) -> None:
    before = _tree(memory)
    end(memory)
    assert _tree(memory) == before
    assert not (memory / "before-write").exists()


def test_a_write_that_ends_keeps_its_changes_and_no_copy(memory: Path) -> None:
    closed = []
    with _rollback(memory).guarding(lambda: closed.append(True)):
        _change(memory)
    after = _tree(memory)
    assert after["store/new/file"] == b"new"
    assert closed == [True]
    assert not any(name.startswith("before-write") for name in after)
    _rollback(memory).undo()
    assert _tree(memory) == after


def test_a_copy_that_was_interrupted_is_no_copy(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _tree(memory)

    def full(self: Path, target: Path) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            _write(memory)
    _rollback(memory).undo()
    assert {k: v for k, v in _tree(memory).items() if k != "before-write.partial"} == before
    with _rollback(memory).guarding(lambda: None):
        pass
    assert _tree(memory) == before


def test_a_lock_file_of_the_system_is_not_put_back(memory: Path) -> None:
    (memory / "store" / ".lock").write_text("of a process")
    _fail(memory)
    assert not (memory / "store" / ".lock").exists()


@pytest.mark.parametrize("size", [0, 1000, 100_000])
def test_a_damaged_copy_is_an_error_and_nothing_is_removed(memory: Path, size: int) -> None:
    _rollback(memory)._keep()
    _change(memory)
    after = _tree(memory)
    with (memory / "before-write").open("rb+") as file:
        file.truncate(size)
    with pytest.raises(OSError, match=r"before-write, the copy .* is damaged"):
        _rollback(memory).undo()
    assert _tree(memory) == after
