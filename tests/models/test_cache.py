"""The file of recorded answers."""

from pathlib import Path

import pytest

from memorydojo.errors import SavedRunError
from memorydojo.models.cache import Recorded, ResponseStore


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    store._database.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(SavedRunError, match="newer version; upgrade"):
        ResponseStore(tmp_path / "s.sqlite")


def test_something_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(SavedRunError, match="cannot open the store of answers"):
        ResponseStore(tmp_path / "s.sqlite")


def test_a_recorded_answer_is_read_back_as_it_was(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    answer = Recorded("text/plain", b"\x00\xff", {"prompt_tokens": 1})
    store.put("r", "q", 1, answer=answer)
    assert store.get("r", "q", 1) == answer
    assert store.get("r", "q", 2) is None
    store.close()
