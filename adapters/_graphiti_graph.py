"""A memory's graph as Graphiti sees it: what goes in, what is found, what is stored.

Imports graphiti-core, so it is itself imported only when a memory is opened.
"""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memorydojo.adapters._graphiti_parts import (
    GROUP,
    Chat,
    Driver,
    Embeddings,
    LogprobReranker,
    Models,
    ScoreReranker,
    System,
)
from memorydojo.adapters._graphiti_setup import Writing, writing
from memorydojo.adapters._loop import Loop
from memorydojo.adapters._state import counted_ids
from memorydojo.errors import MemorySystemError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryEntry, SessionRecord

if TYPE_CHECKING:
    from memorydojo.adapters.graphiti import GraphitiConfig

from falkordb.asyncio import FalkorDB
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import GroupsEdgesNotFoundError
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
from graphiti_core.search.search_config import SearchConfig
from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_CROSS_ENCODER, EDGE_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, SearchFilters

_Result = TypeVar("_Result")

# Without a condition on the edges: their index has lost those of the first node once it was loaded from a file.
_MENTIONS = (
    "MATCH (episode:Episodic)-[e:MENTIONS]->(entity:Entity) "
    "RETURN episode.uuid AS episode, entity.uuid AS entity ORDER BY e.uuid"
)
_ALL_NODES = "MATCH (n) RETURN count(n) AS number"
_ALL_EDGES = "MATCH ()-[e]->() RETURN count(e) AS number"


@dataclass(frozen=True)
class Fact:
    """A fact that was found.

    Attributes:
        ids: Its id, and those of other facts with the same text, which Graphiti delivers as one.
        text: The fact.
        score: What the reranker gave it.
        ended: The day from which it no longer holds, or None.
    """

    ids: tuple[str, ...]
    text: str
    score: float
    ended: str | None


@dataclass(frozen=True)
class Connection:
    """Graphiti on one graph of one server.

    Attributes:
        client: The client of the database.
        driver: Graphiti's driver on it.
        system: Graphiti.
    """

    client: FalkorDB
    driver: Driver
    system: System

    async def close(self) -> None:
        """Closes the connections to the database."""
        await self.driver.close()


class Graph(ABC):
    """One open graph; where it lives is up to the derived class.

    Attributes:
        models: The models, and what went wrong in the last call.
        server: What the server is, for people.
        versions: Versions of the server's parts.
    """

    server: str
    connection: Connection

    def __init__(self, directory: Path, models: MemoryModels, config: "GraphitiConfig") -> None:
        self._directory, self._config = directory, config
        self.models = Models(models, config.concurrency)
        self.versions: dict[str, str] = {}
        self._loop = Loop("graphiti")

    @abstractmethod
    def begin(self) -> None:
        """Prepares for a write; it must not change what is kept."""

    @abstractmethod
    def keep(self) -> None:
        """Keeps what was written, in one step."""

    @abstractmethod
    def undo(self) -> None:
        """Goes back to what was kept last."""

    @abstractmethod
    def checkpoint(self, target: Path) -> None:
        """Copies what was kept last into the directory ``target``."""

    @abstractmethod
    def trouble(self) -> str | None:
        """What is wrong with the server, if something is."""

    @abstractmethod
    def close(self) -> None:
        """Ends everything that was started. May be called more than once."""

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs one of this graph's coroutines to its end, and everything that it began."""
        try:
            return self._loop.run(work)
        finally:
            self.models.settle()

    async def sessions(self) -> list[str]:
        """The sessions that are stored."""
        return [episode.name for episode in await EpisodicNode.get_by_group_ids(self.connection.driver, [GROUP])]

    async def add(self, record: SessionRecord, text: str, number: int) -> None:
        """Lets Graphiti take in a session as the episode with this 1-based number."""
        writing.set(Writing(counted_ids(number), record.time))
        await self.connection.system.add_episode(
            name=record.id,
            episode_body=text,
            source_description="a session of a user with an assistant that uses tools",
            reference_time=record.time,
            source=EpisodeType[self._config.source],
            group_id=GROUP,
        )

    async def find(self, query: str) -> list[Fact]:
        """The best facts for a query, best first."""
        results = await self.connection.system.search_(
            query, config=self._search(), group_ids=[GROUP], search_filter=self._filter()
        )
        same = await self._same([edge.fact for edge in results.edges])
        return [
            Fact(
                ids=(edge.uuid, *(id_ for id_ in same[edge.fact] if id_ != edge.uuid)),
                text=edge.fact,
                score=float(score),
                ended=(edge.invalid_at or edge.expired_at).date().isoformat() if edge.expired_at else None,
            )
            for edge, score in zip(results.edges, results.edge_reranker_scores, strict=True)
        ]

    async def entries(self) -> list[MemoryEntry]:
        """Every episode, entity and fact.

        Raises:
            MemorySystemError: The database holds more than it gives.
        """
        driver = self.connection.driver
        episodes = sorted(await EpisodicNode.get_by_group_ids(driver, [GROUP]), key=lambda node: node.uuid)
        nodes = sorted(await EntityNode.get_by_group_ids(driver, [GROUP]), key=lambda node: node.uuid)
        edges = await self._facts()
        mentioned: dict[str, list[str]] = {}
        mentions = await self._read(_MENTIONS)
        for mention in mentions:
            mentioned.setdefault(mention["episode"], []).append(mention["entity"])
        given = (len(episodes) + len(nodes), len(edges) + len(mentions))
        held = ((await self._read(_ALL_NODES))[0]["number"], (await self._read(_ALL_EDGES))[0]["number"])
        if given != held:
            raise MemorySystemError(
                "graphiti",
                "snapshot",
                f"the database gives {given[0]} of {held[0]} nodes and {given[1]} of {held[1]} edges",
                "Open the directory again; if that does not help, restore it from a checkpoint.",
            )
        return [
            *(_episode_entry(node, mentioned.get(node.uuid, [])) for node in episodes),
            *(_entity_entry(node) for node in nodes),
            *(_fact_entry(edge) for edge in edges),
        ]

    async def connect(self, client: FalkorDB, graph: str) -> Connection:
        """Graphiti on the graph of this name; the client is closed if that fails."""
        driver = Driver(client, graph, self.models)
        try:
            await driver.ready()
            await self._read_versions(client)
        except BaseException:
            await driver.close()
            raise
        tokens = self._config.max_tokens
        logprobs = self._config.reranker == "logprobs"
        system = System(
            graph_driver=driver,
            llm_client=Chat(self.models, tokens, self._config.structured_output),
            embedder=Embeddings(self.models),
            cross_encoder=LogprobReranker(self.models) if logprobs else ScoreReranker(self.models, tokens),
            max_coroutines=self._config.concurrency,
        )
        return Connection(client, driver, system)

    async def _read_versions(self, client: FalkorDB) -> None:
        with self.models.noting():
            self.versions["redis (server)"] = str((await client.connection.info("server"))["redis_version"])
            for module in await client.execute_command("MODULE", "LIST"):
                facts = dict(zip(module[::2], module[1::2], strict=True))
                if facts["name"] == "graph":
                    number = int(facts["ver"])  # 41800 for 4.18.0
                    self.versions["FalkorDB (server)"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def _end_threads(self) -> None:
        self.models.close()
        self._loop.close()

    def _search(self) -> SearchConfig:
        """A copy of Graphiti's own recipe; the recipe itself also serves its ingestion."""
        recipe = EDGE_HYBRID_SEARCH_RRF if self._config.reranker == "rrf" else EDGE_HYBRID_SEARCH_CROSS_ENCODER
        search: SearchConfig = recipe.model_copy(deep=True)
        search.limit = self._config.top_k
        return search

    def _filter(self) -> SearchFilters:
        if self._config.expired_facts:
            return SearchFilters()
        return SearchFilters(expired_at=[[DateFilter(comparison_operator=ComparisonOperator.is_null)]])

    async def _facts(self) -> list[EntityEdge]:
        """Every fact, in the order in which they were made; Graphiti raises if there is none."""
        try:
            edges = await EntityEdge.get_by_group_ids(self.connection.driver, [GROUP])
        except GroupsEdgesNotFoundError:
            return []
        return sorted(edges, key=lambda edge: edge.uuid)

    async def _read(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        records, _, _ = await self.connection.driver.execute_query(query, **parameters)
        return list(records)

    async def _same(self, texts: list[str]) -> dict[str, list[str]]:
        """The ids of all facts with these texts, by text."""
        same: dict[str, list[str]] = {text: [] for text in texts}
        expired = "" if self._config.expired_facts else "AND e.expired_at IS NULL "
        records = await self._read(
            "MATCH (:Entity)-[e:RELATES_TO]->(:Entity) WHERE e.group_id = $group AND e.fact IN $texts "
            f"{expired}RETURN e.uuid AS id, e.fact AS text ORDER BY id",
            group=GROUP,
            texts=texts,
        )
        for record in records:
            same[record["text"]].append(record["id"])
        return same


def _episode_entry(node: EpisodicNode, mentioned: list[str]) -> MemoryEntry:
    return MemoryEntry(
        id=node.uuid,
        kind="episode",
        text=node.content,
        links=tuple(dict.fromkeys([*mentioned, *node.entity_edges])),
        metadata={
            "session": node.name,
            "source": node.source.value,
            "source_description": node.source_description,
            **_times(node, "created_at", "valid_at"),
        },
    )


def _entity_entry(node: EntityNode) -> MemoryEntry:
    return MemoryEntry(
        id=node.uuid,
        kind="entity",
        text=f"{node.name}\n{node.summary}" if node.summary else node.name,
        metadata={
            "name": node.name,
            "labels": sorted(node.labels),
            "attributes": node.attributes,
            **_times(node, "created_at"),
        },
    )


def _fact_entry(edge: EntityEdge) -> MemoryEntry:
    return MemoryEntry(
        id=edge.uuid,
        kind="fact",
        text=f"{edge.fact}\n{edge.name}",
        links=(edge.source_node_uuid, edge.target_node_uuid, *edge.episodes),
        metadata={
            "relation": edge.name,
            "attributes": edge.attributes,
            **_times(edge, "created_at", "valid_at", "invalid_at", "expired_at", "reference_time"),
        },
    )


def _times(thing: Any, *names: str) -> dict[str, str | None]:
    return {name: value.isoformat() if (value := getattr(thing, name)) else None for name in names}
