from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memorydojo.adapters.vector import VectorAdapter, VectorConfig
from memorydojo.errors import InvalidInputError, MemorySystemError
from memorydojo.models.simulated import SimulatedModels
from memorydojo.record import Message, SessionRecord
from memorydojo.testing import make_session


class Fixed(SimulatedModels):
    """Gives the same vector to every text, or vectors of a wrong shape."""

    def __init__(self, *, length: int | None = None) -> None:
        super().__init__(VectorAdapter.simulate)
        self.length = length or self.embedding_dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] + [0.0] * (self.length - 1) for _ in texts]


def opened(directory: Path, models: SimulatedModels | None = None, *, top_k: int = 5) -> VectorAdapter:
    return VectorAdapter.open(directory, models or SimulatedModels(VectorAdapter.simulate), VectorConfig(top_k=top_k))


def about(number: int, text: str) -> SessionRecord:
    return make_session(number).model_copy(update={"messages": (Message(role="user", text=text),)})


def test_the_nearest_sessions_come_first_with_their_cosine(tmp_path: Path) -> None:
    models = SimulatedModels(VectorAdapter.simulate)
    memory = opened(tmp_path, models, top_k=2)
    for number, text in enumerate(("Book a hotel in Paris", "Pay the electricity bill", "Find a flight to Rome"), 1):
        memory.write(about(number, text))
    items = memory.retrieve("Pay my bills")
    memory.close()
    assert len(items) == 2
    assert items[0].entry_ids == ("session-0002",)
    asked, found = map(np.array, models.embed(["Pay my bills", items[0].text]))
    assert items[0].score == pytest.approx(asked @ found, abs=1e-12)
    assert items[0].score is not None
    assert items[1].score is not None
    assert items[0].score > items[1].score


def test_of_equally_near_sessions_the_first_written_comes_first(tmp_path: Path) -> None:
    memory = opened(tmp_path, Fixed(), top_k=3)
    for number in (4, 2, 3, 1):
        memory.write(make_session(number))
    found = [item.entry_ids[0] for item in memory.retrieve("anything")]
    memory.close()
    assert found == ["session-0004", "session-0002", "session-0003"]


def test_an_empty_memory_delivers_nothing(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    assert memory.retrieve("anything") == []
    memory.close()


def test_vectors_of_a_wrong_length_are_an_error(tmp_path: Path) -> None:
    memory = opened(tmp_path, Fixed(length=3))
    with pytest.raises(MemorySystemError, match=r"lengths \[3\]"):
        memory.write(make_session(1))
    memory.close()


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "sessions.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(MemorySystemError, match="not a database"):
        opened(tmp_path)


def test_top_k_is_at_least_one() -> None:
    with pytest.raises(InvalidInputError):
        VectorConfig(top_k=0)
