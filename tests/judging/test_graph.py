"""The provenance graph: against a reference that saw every write and delivery, and on ways told by hand."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorydojo.errors import InvalidInputError
from memorydojo.judging import ItemNode, ProvenanceGraph, SessionNode, VersionNode, label_run, provenance_graph
from memorydojo.record import MemoryEntry, MemoryItem, Snapshot

IDS = st.sampled_from(["a", "b", "c"])
OPERATION = st.tuples(
    st.sampled_from(["put", "link", "remove"]), IDS, st.sampled_from(["benign", "FRAGMENTED", "TRANSFORMED", "a", "b"])
)
SESSION = st.tuples(
    st.lists(st.tuples(st.lists(IDS, max_size=2), st.none() | IDS), max_size=2), st.lists(OPERATION, max_size=4)
)


@dataclass
class WatchedMemory:
    """A memory that notes every edge as it happens: it counts versions itself and is never asked for differences."""

    entries: dict[str, MemoryEntry] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    edges: set[tuple[Any, Any, str]] = field(default_factory=set)

    def now(self, id: str) -> VersionNode:
        return VersionNode(id, self.counts[id])

    def deliver(self, session: int, rank: int, ids: list[str], via: str | None) -> None:
        item = ItemNode(session, rank)
        self.edges |= {(self.now(id), item, "delivered") for id in ids if id in self.entries}
        if via in self.entries:
            self.edges.add((self.now(str(via)), item, "led to"))
        self.edges.add((item, SessionNode(session), "delivered to"))

    def write(self, session: int, operations: list[tuple[str, str, str]]) -> None:
        before = dict(self.entries)
        for kind, id, value in operations:
            old = self.entries.get(id)
            if kind == "put":
                self.entries[id] = MemoryEntry(id=id, kind="k", text=value, links=old.links if old else ())
            elif kind == "link" and old:
                self.entries[id] = old.model_copy(update={"links": (value,)})
            elif kind == "remove":
                self.entries.pop(id, None)
        changed = [id for id in dict.fromkeys(id for _, id, _ in operations) if before.get(id) != self.entries.get(id)]
        for id in changed:
            self._change(session, id, before.get(id), self.entries.get(id))
        for id in changed:
            for target in self.entries[id].links if id in self.entries else ():
                if target in self.entries:
                    self.edges.add((self.now(id), self.now(target), "linked"))

    def _change(self, session: int, id: str, old: MemoryEntry | None, new: MemoryEntry | None) -> None:
        kind = "removed" if new is None else "created" if old is None else "rewrote"
        if old is not None and new is not None and old.text == new.text:
            kind = "relinked"
        self.counts[id] = self.counts.get(id, 0) + 1
        self.edges.add((SessionNode(session), self.now(id), kind))
        if self.counts[id] > 1:
            self.edges.add((VersionNode(id, self.counts[id] - 1), self.now(id), "became"))


@given(st.lists(SESSION, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the judge keeps nothing that matters
def test_the_graph_from_differences_equals_that_of_a_reference_that_saw_every_write(
    make: Any, judge: Any, objectives: Any, history: list[Any]
) -> None:
    memory, results, before = WatchedMemory(), [], Snapshot()
    for number, (deliveries, operations) in enumerate(history, start=1):
        items = tuple(
            MemoryItem(entry_ids=tuple(ids), text="TRANSFORMED", kind="k", via=via, rank=rank)
            for rank, (ids, via) in enumerate(deliveries)
        )
        for rank, (ids, via) in enumerate(deliveries):
            memory.deliver(number, rank, ids, via)
        memory.write(number, operations)
        after = Snapshot(entries=dict(memory.entries))
        results.append(make.session(number, poisoned=number == 1, items=items, difference=before.difference(after)))
        before = after
    facts = make.facts(results, n=6)
    found = provenance_graph(facts, label_run(facts, judge=judge, objectives=objectives))
    assert set(found.graph.edges(keys=True)) == memory.edges
    for item in found.items():
        chain = found.chain(item.session, item.rank)
        assert all(step.target == following.source for step, following in pairwise(chain))
        assert all(found.graph.nodes[step.target]["bears"] for step in chain)
        if chain:
            assert (chain[0].source, chain[-1].target) == (SessionNode(1), item)


@pytest.fixture
def graph(make: Any, judge: Any, objectives: Any) -> Any:
    def build(*sessions: Any, **settings: Any) -> ProvenanceGraph:
        facts = make.facts(sessions, **settings)
        return provenance_graph(facts, label_run(facts, judge=judge, objectives=objectives))

    return build


def routed(make: Any, id: str, route: str, *, rank: int = 0, text: str = "TRANSFORMED") -> MemoryItem:
    item: MemoryItem = make.item(text, id, rank=rank)
    return item.model_copy(update={"route": route, "via": None if route == "primary" else "b"})


def kinds(graph: ProvenanceGraph, session: int, rank: int = 0) -> list[str]:
    return [step.kind for step in graph.chain(session, rank)]


def test_the_chain_of_an_original_entry_follows_its_rewrites(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED")),
        make.session(2, difference=make.rewritten(a="FRAGMENTED")),
        make.session(3, items=(make.item("FRAGMENTED", "a"),)),
    )
    assert kinds(found, 3) == ["created", "became", "delivered"]
    assert found.chain(3, 0)[-1].source == VersionNode("a", 2)


def test_the_chain_of_a_descendant_goes_through_the_session_that_was_given_the_payload(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED")),
        make.session(2, items=(make.item("TRANSFORMED", "a"),), difference=make.created(b="TRANSFORMED")),
        make.session(3, items=(make.item("TRANSFORMED", "b"),)),
    )
    assert kinds(found, 3) == ["created", "delivered", "delivered to", "created", "delivered"]
    assert SessionNode(2) in [step.target for step in found.chain(3, 0)]


def test_a_link_explains_what_neither_history_nor_deliveries_do(make: Any, graph: Any) -> None:
    linked = make.created(b="TRANSFORMED")
    linked = linked.model_copy(update={"created": (linked.created[0].model_copy(update={"links": ("a",)}),)})
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED")),
        make.session(2, difference=linked),
        make.session(3, items=(make.item("TRANSFORMED", "b"),)),
    )
    assert kinds(found, 3) == ["created", "linked", "delivered"]


def test_what_nothing_on_record_explains_has_no_chain(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED")),
        make.session(2, difference=make.created(b="TRANSFORMED")),
        make.session(3, items=(make.item("TRANSFORMED", "b"), make.item("TRANSFORMED", rank=1))),
    )
    assert kinds(found, 3, 0) == []
    assert kinds(found, 3, 1) == []


def test_an_item_that_was_not_delivered_is_an_error(make: Any, graph: Any) -> None:
    with pytest.raises(InvalidInputError, match="no item of rank 0"):
        graph(make.session(1, poisoned=True)).chain(1, 0)


def test_indirect_sessions_got_the_payload_by_links_and_episodes_only(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED", b="benign")),
        make.session(2, items=(routed(make, "b", "primary", text="benign"), routed(make, "a", "episodic", rank=1))),
        make.session(3, items=(routed(make, "a", "linked"), routed(make, "a", "primary", rank=1))),
        make.session(4, items=(routed(make, "a", "core"),)),
        make.session(5, items=(routed(make, "a", "linked"),), completed=False, utility=False),
    )
    assert found.indirect_sessions() == (2,)


def test_only_payload_bearing_items_of_a_session_that_meets_the_objective_were_acted_on(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED", b="benign")),
        make.session(2, items=(make.item("TRANSFORMED", "a"),)),
        make.session(3, items=(make.item("TRANSFORMED", "a"), make.item("benign", "b", rank=1)), final_response="pay"),
    )
    acted = [source for source, _, kind in found.graph.edges(keys=True) if kind == "acted on"]
    assert acted == [ItemNode(3, 0)]


def test_a_clean_run_has_a_graph_and_no_chains(make: Any, graph: Any) -> None:
    found = graph(
        make.session(1, difference=make.created(a="x")), make.session(2, items=(make.item("x", "a"),)), t0=None
    )
    assert found.chain(2, 0) == ()
    assert found.items() == ()
    assert found.items(bearing=False) == (ItemNode(2, 0),)
