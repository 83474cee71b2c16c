"""Letta (server 0.16.8): captured conversation, core blocks and archival memory, edited by a background agent."""

import contextlib
import itertools
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
from memorydojo.adapters._endpoint import ModelEndpoint
from memorydojo.adapters._letta_text import captured, check_answer, repeatable, simulated_answer, storable
from memorydojo.adapters._state import MARKER, Guard, claim, copy_paths, new_copy, reporting
from memorydojo.errors import MemorySystemError, MissingPackageError
from memorydojo.models.base import MemoryModels
from memorydojo.record import MemoryItem, SessionRecord, Snapshot

if TYPE_CHECKING:
    from memorydojo.adapters._letta_client import Live
    from memorydojo.adapters._letta_state import MessageState, State

_REMEDY = "Nothing of this session was kept; solve the cause and write it again."
_FINE = (None, "end_turn", "tool_rule", "max_steps")


class LettaConfig(AdapterConfig):
    """Settings of Letta; the defaults are the paper's where it states them.

    Attributes:
        url: Address of the server; the one that ``memorydojo letta up`` started if it is not given. The server must
            reach this process on loopback, where it finds its models.
        key_variable: The environment variable that holds the key of a server given by ``url``.
        conversation_k: How many messages the conversation search delivers at most.
        archival_k: How many passages the archival search delivers at most.
        blocks: The core blocks that both agents share, by label, with what they hold at first.
        context_window: The context of the chat model in tokens; beyond it the background agent sums its own up.
        repeatable_prompts: Whether the background agent's prompts name the time of the session, a constant agent id,
            the core blocks by label and the tools by name. Letta itself names the time at which the program runs and
            its random id, and orders blocks and tools by chance, so that no two runs would ask the same.
        timeout: Longest wait for one answer of the server and for one background run, in seconds.
    """

    url: str | None = None
    key_variable: str = "LETTA_API_KEY"
    conversation_k: int = Field(default=5, ge=1)
    archival_k: int = Field(default=5, ge=1)
    blocks: dict[str, str] = {"human": "", "persona": ""}
    context_window: int = Field(default=272_000, ge=8_000)
    repeatable_prompts: bool = True
    timeout: float = Field(default=1800, gt=0)


class LettaAdapter(MemoryAdapter):
    """Letta's own server, through its write (capture), consolidation (a sleep-time agent) and retrieval.

    The directory holds the whole memory; the server hosts its two agents only while it is open. A write is all or
    nothing: if it fails, the agents are made anew as they were before. Ids count what a write makes and are the same
    in equal runs; `native_ids` gives the server's own.
    """

    name = "letta"
    packages = ("letta-client",)
    extra = "letta"
    Config = LettaConfig

    def __init__(self, directory: Path, models: MemoryModels, config: LettaConfig) -> None:
        from memorydojo.adapters._letta_client import Server
        from memorydojo.adapters._letta_state import State

        self._directory, self._models, self._config = directory, models, config
        self._guard = Guard(self.name)
        self._state: State = State.load(directory)
        self._times = [datetime.fromisoformat(session.time) for session in self._state.sessions]
        url, key = _address(config)
        self._server = Server(url, key, config.timeout)
        self._live: Live | None = None
        self._endpoint = ModelEndpoint(
            models, shape=self._shape if config.repeatable_prompts else None, check=check_answer
        )
        try:
            self._server.check_version()
            self._agents()
        except BaseException:
            self._stop()
            raise

    @classmethod
    def open(cls, directory: Path, models: MemoryModels, config: Any) -> Self:
        """Opens the memory: its agents are made on the server."""
        try:
            import letta_client  # noqa: F401
        except ImportError as error:
            raise MissingPackageError("letta-client", "the memory system 'letta'", "letta") from error
        with reporting(cls.name, "open"):
            identity = {
                "server": "0.16.8",
                "embedding_model": models.embedding_model,
                "embedding_dimensions": models.embedding_dimensions,
                "blocks": sorted(config.blocks),
            }
            claim(directory, cls.name, identity)
            return cls(directory, models, config)

    def write(self, record: SessionRecord) -> None:
        """Captures the session and waits until the background agent has dealt with it."""
        from memorydojo.adapters._letta_state import MessageState

        with self._guard.using("write"):
            if any(session.id == record.id for session in self._state.sessions):
                raise MemorySystemError(
                    self.name, "write", f"session {record.id!r} is already stored", "Give each session its own id."
                )
            live = self._agents()
            users, assistant = captured(record)
            texts = [*(("user", text) for text in users), ("assistant", assistant)]
            self._times.append(record.time)
            try:
                with self._server.calling("write"):
                    run = self._server.wait(self._server.capture(live, users, assistant, self._models.chat_model))
                    self._check_run(run.status, run.stop_reason, run.error)
                    messages = [MessageState(record.id, role, text, "") for role, text in texts]
                    state, live = self._state_after(record, live, messages, run.stop_reason)
                state.save(self._directory)
            except BaseException:
                self._times.pop()
                self._forget_agents()
                raise
            self._state, self._live = state, live

    def retrieve(self, query: str) -> list[MemoryItem]:
        """Core blocks that hold something, then the conversation search, then the archival search."""
        with self._guard.using("retrieve"):
            live, query = self._agents(), storable(query)
            with self._server.calling("retrieve"), self._noting("retrieve"):
                blocks = [block for block in self._server.blocks(live.foreground) if str(block.value).strip()]
                found = [
                    (f"core/{block.label}", f"<{block.label}>\n{block.value}\n</{block.label}>", "core block", "core")
                    for block in blocks
                ]
                if query.strip():
                    found += self._search_conversation(live, query)
                    found += self._search_passages(live, query)
        return [
            MemoryItem(entry_ids=(id_,), text=text, kind=kind, route=route, rank=rank)
            for rank, (id_, text, kind, route) in enumerate(found)
        ]

    def snapshot(self) -> Snapshot:
        """The blocks of both agents, the captured conversation and every archival passage."""
        from memorydojo.adapters._letta_entries import block_entry, message_entries, passage_entries

        with self._guard.using("snapshot"):
            live = self._agents()
            with self._server.calling("snapshot"):
                entries = [block_entry(owner, block) for owner, block in self._blocks(live)]
                entries += message_entries(self._state, list(self._server.conversation(live)))
                entries += passage_entries(self._state, self._server.passages(live))
        return Snapshot(entries={entry.id: entry for entry in entries})

    def native_ids(self) -> dict[str, str]:
        """The server's own ids of the entries that it holds while this memory is open, by entry id."""
        with self._guard.using("snapshot"), self._server.calling("snapshot"):
            live, state = self._agents(), self._state
            ids = {f"{owner}/{block.label}": str(block.id) for owner, block in self._blocks(live)}
            ids |= dict(zip(state.message_ids(), (m.id for m in self._server.conversation(live)), strict=True))
            ids |= dict(zip(state.passage_ids(), (p.id for p in self._server.passages(live)), strict=True))
            return ids

    def checkpoint(self, target: Path) -> None:
        """Copies the directory, which holds everything."""
        from memorydojo.adapters._letta_state import FILE

        with self._guard.using("checkpoint"), new_copy(target) as partial:
            copy_paths((MARKER, FILE), self._directory, partial)

    def describe(self) -> MemoryDescription:
        """Versions and settings, and what in this set-up is not as in Letta's own."""
        from memorydojo.adapters._letta_about import description

        return description(self._config, self._models)

    def close(self) -> None:
        """Removes the agents from the server; the directory keeps the memory."""
        with self._guard.closing() as first:
            if first:
                self._forget_agents()
                self._stop()

    @classmethod
    def missing(cls) -> str | None:
        """Says whether a server was started here."""
        if sys.platform == "win32":
            return "a server of one's own needs Linux or macOS; the setting 'url' takes another"
        from memorydojo.adapters._letta_server import running

        if running() is not None:
            return None
        return "no server runs here; set one up and start it with: memorydojo letta up"

    @classmethod
    def simulate(cls, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers the background agent's requests by stated rules; see ``docs/simulator-memory.md``."""
        return simulated_answer(request)

    def _agents(self) -> "Live":
        """The agents on the server; they are made if there are none, from the last state that was saved."""
        if self._live is None:
            name = f"memorydojo-{uuid.uuid4().hex[:12]}"
            chat, embedding = self._model_configs()
            self._endpoint.known_vectors = self._state.vectors()
            try:
                with self._server.calling("open"), self._noting("open"):
                    if self._state.agent_file:
                        file = self._state.importable(name, chat=chat, embedding=embedding)
                        stored = self._state.stored()
                        self._live = self._server.restore(file, name=name, embedding=embedding, passages=stored)
                    else:
                        blocks = self._config.blocks
                        self._live = self._server.create(name, blocks=blocks, chat=chat, embedding=embedding)
            finally:
                self._endpoint.known_vectors = {}
        return self._live

    def _blocks(self, live: "Live") -> list[tuple[str, Any]]:
        """The core blocks, and those that the background agent has for itself, each with the owner's name."""
        core = self._server.blocks(live.foreground)
        shared = {str(block.id) for block in core}
        own = [block for block in self._server.blocks(live.background) if str(block.id) not in shared]
        return [*(("core", block) for block in core), *(("background", block) for block in own)]

    def _forget_agents(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(MemorySystemError), self._server.calling("close"):
                self._server.remove(live)  # litter on a server that does not answer harms no memory
        self._endpoint.problems()

    def _stop(self) -> None:
        self._endpoint.close()
        self._server.close()

    def _model_configs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        chat = {
            "model": self._models.chat_model,
            "model_endpoint_type": "openai",
            "model_endpoint": self._endpoint.url,
            "context_window": self._config.context_window,
            "put_inner_thoughts_in_kwargs": False,
            "temperature": 0.1,
        }
        embedding = {
            "embedding_model": self._models.embedding_model,
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": self._endpoint.url,
            "embedding_dim": self._models.embedding_dimensions,
        }
        return chat, embedding

    def _shape(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return repeatable(request, self._times) if self._times else dict(request)

    @contextlib.contextmanager
    def _noting(self, call: str) -> Iterator[None]:
        """Reports what the models failed in, whatever Letta made of it."""
        try:
            yield
        except Exception as error:
            problems = self._endpoint.problems()
            if problems and not isinstance(error, MemorySystemError):
                raise self._model_error(call, problems) from error
            raise
        problems = self._endpoint.problems()
        if problems:
            raise self._model_error(call, problems)

    def _model_error(self, call: str, problems: Sequence[str]) -> MemorySystemError:
        said = "; ".join(dict.fromkeys(problems))
        return MemorySystemError(
            self.name, call, f"its model failed: {said}", "Check the model endpoint, then run the session again."
        )

    def _check_run(self, status: str, stop_reason: str | None, error: str) -> None:
        problems = self._endpoint.problems()
        if problems:
            raise self._model_error("write", problems)
        if status != "completed" or stop_reason not in _FINE:
            what = f"the background agent's run {status}, stopped by {stop_reason}" + (f": {error}" if error else "")
            raise MemorySystemError(self.name, "write", what, _REMEDY)

    def _state_after(
        self, record: SessionRecord, live: "Live", messages: list["MessageState"], stop_reason: str | None
    ) -> "tuple[State, Live]":
        from memorydojo.adapters._letta_entries import tool_calls
        from memorydojo.adapters._letta_state import SessionState, matches

        with ThreadPoolExecutor(1) as other:  # the agent file takes longest to come
            exported = other.submit(self._server.export, live)
            known = 0 if live.last_message else len(self._state.messages)
            said = self._server.conversation(live, after=live.last_message)
            found = list(itertools.islice(said, known, known + len(messages)))
            made = self._server.passages(live, after=live.passages[-1] if live.passages else None)
            file = exported.result()
        if len(found) != len(messages) or not all(map(matches, found, messages)):
            raise MemorySystemError(self.name, "write", "the server stored other messages than it was given", _REMEDY)
        dated = [replace(m, created_at=f.created_at.isoformat()) for m, f in zip(messages, found, strict=True)]
        background = {"stop_reason": stop_reason, "calls": tool_calls(file)}
        state = self._state.after(
            SessionState(record.id, record.time.isoformat(), background),
            agent_file=file,
            messages=dated,
            passages=made,
            dimensions=self._models.embedding_dimensions,
        )
        passages = (*live.passages, *(passage.id for passage in made))
        return state, replace(live, passages=passages, last_message=found[-1].id)

    def _search_conversation(self, live: "Live", query: str) -> list[tuple[str, str, str, str]]:
        from memorydojo.adapters._letta_hits import hits

        answer = self._server.search_conversation(live, query, self._config.conversation_k)
        numbers = hits(answer, query, self._state.messages, self._config.conversation_k)
        ids, messages = self._state.message_ids(), self._state.messages
        return [(ids[n], f"{messages[n].role}: {messages[n].text}", "message", "conversation") for n in numbers]

    def _search_passages(self, live: "Live", query: str) -> list[tuple[str, str, str, str]]:
        from memorydojo.adapters._letta_entries import changed

        found = self._server.search_passages(live, query, self._config.archival_k)
        native = {id_: n for n, id_ in enumerate(live.passages)}
        if not native.keys() >= set(found):
            raise changed("retrieve", "passages")
        ids = self._state.passage_ids()
        return [(ids[native[id_]], self._state.passages[native[id_]].text, "passage", "archival") for id_ in found]


def _address(config: LettaConfig) -> tuple[str, str | None]:
    if config.url is not None:
        return config.url.rstrip("/"), os.environ.get(config.key_variable)
    from memorydojo.adapters._letta_server import running

    found = running()
    if found is None:
        raise MemorySystemError(
            "letta",
            "open",
            "no Letta server was started, and the setting 'url' names none",
            "Start one with: memorydojo letta up",
        )
    return found.url, found.password
