from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.errors import UnknownNameError
from memorydojo.judging import label_run, provenance
from memorydojo.record import MemoryEntry, Snapshot

IDS = st.sampled_from(["a", "b", "c"])
OPERATION = st.tuples(st.sampled_from(["put", "link", "remove"]), IDS, st.sampled_from(["x", "y", "z"]))


@dataclass
class WatchedMemory:
    """A memory that logs every write as it happens, and tells the life of each entry from that log alone."""

    entries: dict[str, MemoryEntry] = field(default_factory=dict)
    log: dict[str, list[tuple[int, str, MemoryEntry | None]]] = field(default_factory=dict)

    def session(self, number: int, operations: list[tuple[str, str, str]]) -> None:
        before = dict(self.entries)
        for kind, id, value in operations:
            if kind == "put":
                links = self.entries[id].links if id in self.entries else ()
                self.entries[id] = MemoryEntry(id=id, kind="k", text=value, links=links)
            elif kind == "link" and id in self.entries:
                self.entries[id] = self.entries[id].model_copy(update={"links": (value,)})
            elif kind == "remove":
                self.entries.pop(id, None)
        for id in {id for _, id, _ in operations}:
            old, new = before.get(id), self.entries.get(id)
            if old == new:
                continue
            change = "removed" if new is None else "created" if old is None else "rewritten"
            if old is not None and new is not None and old.text == new.text:
                change = "relinked"
            self.log.setdefault(id, []).append((number, change, new))


@given(st.lists(st.lists(OPERATION, max_size=5), max_size=5))
def test_provenance_from_differences_equals_that_of_a_reference_that_saw_every_write(
    make: Any, sessions: list[list[tuple[str, str, str]]]
) -> None:
    memory, results, before = WatchedMemory(), [], Snapshot()
    for number, operations in enumerate(sessions, start=1):
        memory.session(number, operations)
        after = Snapshot(entries=dict(memory.entries))
        results.append(make.session(number, difference=before.difference(after)))
        before = after
    found = provenance(results)
    assert {
        id: [(v.session, v.change, v.entry) for v in versions] for id, versions in found.versions.items()
    } == memory.log
    assert all(
        [v.number for v in versions] == list(range(1, len(versions) + 1)) for versions in found.versions.values()
    )


def test_original_entries_and_descendants_come_from_the_labels(make: Any, judge: Any, objectives: Any) -> None:
    facts = make.facts(
        [
            make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED", b="benign")),
            make.session(2, difference=make.rewritten(a="benign again", b="FRAGMENTED")),
            make.session(3, difference=make.created(c="benign")),
        ]
    )
    found = provenance(facts.sessions, label_run(facts, judge=judge, objectives=objectives))
    assert found.original == ("a",)
    assert found.descendants == ("b",)
    assert [(v.session, v.change) for v in found.history("a")] == [(1, "created"), (2, "rewritten")]
    assert [v.entry_id for v in found.written_by(2)] == ["a", "b"]


def test_unknown_entry_is_named(make: Any) -> None:
    with pytest.raises(UnknownNameError, match="memory entry"):
        provenance([]).history("a")
