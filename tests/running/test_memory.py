"""What an adapter gives back is checked before it becomes a fact."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import memorydojo as md
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import InvalidInputError, MemorySystemError
from memorydojo.record import MemoryEntry, MemoryItem, Snapshot

TRAJECTORY = md.Trajectory(
    id="short",
    collection="test",
    sessions=tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7)),
)


class Broken(FullContextAdapter):
    """A memory of which one call is replaced."""

    name: ClassVar[str] = "broken"


def fail() -> Any:
    raise ZeroDivisionError("boom")


def item(**changes: Any) -> MemoryItem:
    return MemoryItem(**{"entry_ids": (), "text": "a", "kind": "k", "rank": 0, **changes})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda: None, "it returned None instead of a list of MemoryItem"),
        (lambda: "text", "it returned str 'text' instead of a list"),
        (lambda: ["text"], "item 0 is str 'text' instead of a MemoryItem"),
        (lambda: [item(rank=1)], "the item in place 0 has the rank 1"),
        (lambda: [item(entry_ids=("no",))], "item 0 names the entry 'no', which no snapshot holds"),
        (lambda: [item(via="no")], "item 0 names the entry 'no', which no snapshot holds"),
    ],
)
def test_a_wrong_answer_of_retrieve_ends_the_session_with_what_was_wrong(
    answer: Callable[[], Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, "retrieve", lambda *_: answer())
    run = md.run(TRAJECTORY, Broken, directory=tmp_path)
    failure = run.sessions[0].failure
    assert failure is not None
    assert failure.stage == "retrieve"
    assert failure.message.startswith(f"memory system 'broken' failed in retrieve: {problem}")
    assert "Mend the adapter" in failure.message


@pytest.mark.parametrize(
    ("call", "answer", "problem"),
    [
        ("open", lambda: None, "failed in open: it returned NoneType"),
        ("open", fail, "failed in open: ZeroDivisionError: boom"),
        ("describe", lambda: {}, "failed in describe: it returned dict {} instead of a MemoryDescription"),
        ("describe", fail, "failed in describe: ZeroDivisionError: boom"),
        ("snapshot", lambda: None, "failed in snapshot: it returned None instead of a Snapshot"),
        ("snapshot", fail, "failed in snapshot: ZeroDivisionError: boom"),
        (
            "snapshot",
            lambda: Snapshot(entries={"a": MemoryEntry(id="b", kind="k", text="t")}),
            "the entry 'b' stands under the id 'a'",
        ),
        ("close", fail, "failed in close: ZeroDivisionError: boom"),
    ],
)
def test_a_memory_that_cannot_be_used_is_named_with_the_call(
    call: str, answer: Callable[[], Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, call, classmethod(lambda *_: answer()) if call == "open" else lambda *_: answer())
    with pytest.raises(MemorySystemError, match="memory system 'broken'") as raised:
        md.run(TRAJECTORY, Broken, directory=tmp_path)
    assert problem in str(raised.value)


def test_a_negative_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="it takes 0 or more"):
        item(rank=-1)


def test_a_memory_defined_inside_a_function_is_refused_with_the_reason(tmp_path: Path) -> None:
    class Local(FullContextAdapter):
        name: ClassVar[str] = "local"

    with pytest.raises(InvalidInputError, match="define it at the top level"):
        md.run(TRAJECTORY, Local, directory=tmp_path)
