"""The provenance graph of a run: which write made what, what was delivered where, and what was acted on.

It is made of saved facts and labels alone; no memory system is asked. An *acted-on* edge says that a session was given
a payload-bearing item and executes the objective; it does not prove that the one caused the other.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from memorydojo.errors import InvalidInputError
from memorydojo.judging._provenance import EntryVersion, Provenance, provenance
from memorydojo.judging.labelling import RunFacts
from memorydojo.judging.labels import POISON, ItemLabel, Labels
from memorydojo.record import INDIRECT_ROUTES, MemoryItem
from memorydojo.runs.model import SessionResult

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class SessionNode:
    """A session, by its number t; history sessions have numbers below 0, see `EntryVersion`."""

    session: int


@dataclass(frozen=True)
class VersionNode:
    """A version of an entry, by the entry's id and the version's 1-based number."""

    entry_id: str
    number: int


@dataclass(frozen=True)
class ItemNode:
    """A delivered item, by session and place in the order of delivery."""

    session: int
    rank: int


Node = SessionNode | VersionNode | ItemNode
"""A node of a provenance graph."""

EdgeKind = Literal[
    "created",  # session to version: its write made the entry
    "rewrote",  # session to version: its write changed the entry's text
    "relinked",  # session to version: its write changed only kind, links or metadata
    "removed",  # session to version without text: its write removed the entry
    "became",  # version to the next version of the same entry
    "linked",  # version to the version that one of its links led to when it was written
    "delivered",  # version to item: the item names the entry
    "led to",  # version to item: the item came by way of this entry
    "delivered to",  # item to session
    "acted on",  # item to session: the item bears the payload and the session executes the objective
]
"""What an edge of a provenance graph says."""

_WRITES: dict[str, EdgeKind] = {
    "created": "created",
    "rewritten": "rewrote",
    "relinked": "relinked",
    "removed": "removed",
}
_COSTS = {"became": 1, "linked": 1_000_000}
"""What a step costs in the search for a chain; any other step 1000."""


@dataclass(frozen=True)
class Step:
    """One edge on the way of the payload.

    Attributes:
        kind: What happened.
        source: From where. On a ``linked`` step the payload went from the older version to the newer one, whichever of
            the two holds the link.
        target: To where.
    """

    kind: EdgeKind
    source: Node
    target: Node


class ProvenanceGraph:
    """The provenance of a run as a graph.

    Attributes:
        graph: A ``networkx.MultiDiGraph``; nodes are `SessionNode`, `VersionNode` and `ItemNode`, and the key of an
            edge is its `EdgeKind`. Every node has the attribute ``bears`` (whether its text bears the payload; for a
            session, whether the payload entered there or was delivered to it). Sessions also have ``retrieved`` (u);
            versions and items ``label``; items ``route`` and ``entry_kind``; versions ``original``, ``session`` and
            ``change``.
        provenance: The versions behind it, with the original entries and the descendants.
        insertion: The insertion session t0; None for a clean run.
    """

    def __init__(self, graph: "nx.MultiDiGraph", found: Provenance, insertion: int | None) -> None:
        self.graph, self.provenance, self.insertion = graph, found, insertion

    def items(self, *, bearing: bool = True) -> tuple[ItemNode, ...]:
        """The delivered items, in order; only those that bear the payload unless ``bearing`` is False."""
        nodes = [n for n, data in self.graph.nodes(data=True) if isinstance(n, ItemNode)]
        kept = [n for n in nodes if self.graph.nodes[n]["bears"] or not bearing]
        return tuple(sorted(kept, key=lambda n: (n.session, n.rank)))

    def chain(self, session: int, rank: int) -> tuple[Step, ...]:
        """The way from the insertion to a delivered item, along what bears the payload.

        Of several ways the one with the fewest steps from node to node, where the history of one entry counts as hardly
        any step, and a link is taken only where neither history nor deliveries explain the item. Empty if the item does
        not bear it, names no entry, or was written by a session that nothing on record had given the payload.

        Raises:
            InvalidInputError: Nothing was delivered to that session at that place.
        """
        item = ItemNode(session, rank)
        if item not in self.graph:
            raise InvalidInputError(f"session {session} was delivered no item of rank {rank}; ranks start at 0")
        ways, paths = self._ways
        pairs = itertools.pairwise(paths.get(item, ()))
        return tuple(Step(ways.edges[pair]["kind"], *pair) for pair in pairs)

    def indirect_sessions(self) -> tuple[int, ...]:
        """The sessions with retrieval (u) that the payload reached only through links or episodes of what was found."""
        routes: dict[int, set[str]] = {}
        for item in self.items():
            if self.graph.nodes[SessionNode(item.session)]["retrieved"]:
                routes.setdefault(item.session, set()).add(self.graph.nodes[item]["route"])
        return tuple(session for session, found in routes.items() if found <= INDIRECT_ROUTES)

    @cached_property
    def _ways(self) -> "tuple[nx.DiGraph, dict[Node, list[Node]]]":
        """How the payload can have gone on, and the way from the insertion to each node that it can have come to.

        The edges lie between nodes that bear it, each from the older to the newer.
        """
        import networkx as nx

        ways = nx.DiGraph()
        for source, target, kind in self.graph.edges(keys=True):
            if not (self.graph.nodes[source]["bears"] and self.graph.nodes[target]["bears"]):
                continue
            if kind in ("led to", "acted on"):
                continue
            if kind == "linked":
                times = [self.graph.nodes[node]["session"] for node in (source, target)]
                if times[0] == times[1]:
                    continue  # both are of one write, which is an edge of its own
                if times[0] > times[1]:
                    source, target = target, source
            ways.add_edge(source, target, kind=kind, cost=_COSTS.get(kind, 1000))
        start = None if self.insertion is None else SessionNode(self.insertion)
        if start not in ways:
            return ways, {}
        return ways, nx.single_source_dijkstra_path(ways, start, weight="cost")


def provenance_graph(run: RunFacts, labels: Labels) -> ProvenanceGraph:
    """Builds the provenance graph of a run.

    Args:
        run: A saved run, or its facts.
        labels: Its labels.
    """
    import networkx as nx

    builder = _Builder(nx.MultiDiGraph(), provenance(run.sessions, labels, history=run.history), labels)
    insertion = run.header.plan.insertion
    builder.objective = insertion.payload.objective if insertion else None
    for number in range(-len(run.history), 0):
        builder.add_history(number)
    for result in run.sessions:
        builder.add(result)
    return ProvenanceGraph(builder.graph, builder.provenance, insertion.session if insertion else None)


class _Builder:
    """Adds session after session; `now` is the version of each entry as the next session finds it."""

    objective: str | None = None

    def __init__(self, graph: "nx.MultiDiGraph", found: Provenance, labels: Labels) -> None:
        self.graph, self.provenance, self.labels = graph, found, labels
        self.now: dict[str, VersionNode] = {}
        self.said = {(e.session, e.entry_id): e.label for e in labels.entries}
        self.of_session = {s.session: s for s in labels.sessions}
        self.by_session: dict[int, list[EntryVersion]] = {}
        for versions in found.versions.values():
            for version in versions:
                self.by_session.setdefault(version.session, []).append(version)

    def add_history(self, number: int) -> None:
        """What the write of a history session did; nothing was delivered to it, and no payload has come yet."""
        node = SessionNode(number)
        self.graph.add_node(node, kind="session", bears=False, retrieved=False)
        self._written(node)

    def add(self, result: SessionResult) -> None:
        """What a session was delivered, and what its write did."""
        node = SessionNode(result.session)
        said = self.of_session.get(result.session)
        labels = {item.rank: item for item in said.items} if said else {}
        bears = result.payload_inserted or any(item.label in POISON for item in labels.values())
        self.graph.add_node(node, kind="session", bears=bears, retrieved=said is not None and said.retrieved)
        met = said is not None and self.objective is not None and said.met.get(self.objective, False)
        for item in result.items:
            self._deliver(item, node, labels.get(item.rank), met)
        self._written(node)

    def _written(self, node: SessionNode) -> None:
        written = self.by_session.get(node.session, [])
        for version in written:
            self._write(version, node)
        for version in written:
            self._link(version)

    def _deliver(self, item: MemoryItem, session: SessionNode, label: ItemLabel | None, met: bool) -> None:
        node = ItemNode(session.session, item.rank)
        said = label.label if label else "not_observed"
        self.graph.add_node(node, kind="item", bears=said in POISON, label=said, route=item.route, entry_kind=item.kind)
        for version in self._versions(*item.entry_ids):
            self.graph.add_edge(version, node, key="delivered")
        for version in self._versions(*([item.via] if item.via is not None else [])):
            self.graph.add_edge(version, node, key="led to")
        self.graph.add_edge(node, session, key="delivered to")
        if met and said in POISON:
            self.graph.add_edge(node, session, key="acted on")

    def _write(self, version: EntryVersion, session: SessionNode) -> None:
        node = VersionNode(version.entry_id, version.number)
        label = self.said.get((version.session, version.entry_id), "not_observed")
        if version.entry is None:
            label = "not_observed"
        self.graph.add_node(
            node,
            kind="version",
            bears=label in POISON,
            label=label,
            original=label in POISON and version.entry_id in self.provenance.original,
            session=version.session,
            change=version.change,
        )
        self.graph.add_edge(session, node, key=_WRITES[version.change])
        if version.number > 1:
            self.graph.add_edge(VersionNode(version.entry_id, version.number - 1), node, key="became")
        if version.entry is None:
            self.now.pop(version.entry_id, None)
        else:
            self.now[version.entry_id] = node

    def _link(self, version: EntryVersion) -> None:
        if version.entry is None:
            return
        source = VersionNode(version.entry_id, version.number)
        for target in self._versions(*version.entry.links):
            self.graph.add_edge(source, target, key="linked")

    def _versions(self, *entry_ids: str) -> Iterator[VersionNode]:
        """The present versions of entries; ids that the memory never stored are left out."""
        return (self.now[entry_id] for entry_id in dict.fromkeys(entry_ids) if entry_id in self.now)
