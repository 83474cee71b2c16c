"""Calls to a Letta server, through its own client: a memory's two agents are made, written to, searched and removed.

Imports letta-client, so it is itself imported only when a memory is opened.
"""

import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from letta_client import APIConnectionError, APIError, APIStatusError, InternalServerError, Letta

from memorydojo._display import plain
from memorydojo.errors import MemorySystemError

SYSTEM = "letta"
SERVER_VERSION = "0.16.8"
ARCHIVE_TOOL = "archival_memory_insert"
_SEARCH_TOOL = "conversation_search"
_ENDED = ("completed", "failed", "cancelled")
_PAGE = 100
#: How often a background run is looked at.
POLL_SECONDS = 0.1
_LOOKS = 8
_ALL_TOOLS = 1000
_START_REMEDY = "Start one with: memorydojo letta up"


@dataclass(frozen=True)
class Live:
    """The agents of an open memory on the server.

    Attributes:
        foreground: Id of the agent whose conversation is captured.
        background: Id of the sleep-time agent that edits the memory.
        archive: Id of the archive of both.
        passages: Ids of its passages, in the order in which they were made.
        last_message: Id of the last captured message, if it is known.
    """

    foreground: str
    background: str
    archive: str
    passages: tuple[str, ...] = ()
    last_message: str | None = None


@dataclass(frozen=True)
class Captured:
    """One message of the foreground agent's conversation."""

    id: str
    role: str
    text: str
    created_at: datetime


@dataclass(frozen=True)
class Stored:
    """One archival passage, with the vector that it is found by."""

    id: str
    text: str
    tags: tuple[str, ...]
    created_at: datetime
    vector: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """How a run of the background agent ended."""

    status: str
    stop_reason: str | None
    error: str


class Server:
    """A Letta server.

    Args:
        url: Its address.
        key: Its password or key.
        timeout: Longest wait for one answer, in seconds.
    """

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        self.url, self._timeout = url, timeout
        # No retries: a capture that is sent twice is stored twice.
        self._client = Letta(base_url=url, api_key=key or "none", max_retries=0, timeout=timeout)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    @contextlib.contextmanager
    def calling(self, call: str) -> Iterator[None]:
        """Reports what goes wrong with the server as `MemorySystemError`."""
        try:
            yield
        except APIConnectionError as error:
            raise MemorySystemError(
                SYSTEM, call, f"the server at {self.url} does not answer: {error} ({error.__cause__})", _START_REMEDY
            ) from error
        except APIStatusError as error:
            remedy = "See the server's log (memorydojo letta status names it)."
            if error.status_code == 401:
                remedy = "Give the server's key in the environment variable that the setting key_variable names."
            detail = plain(str(error.body or error), 600)
            raise MemorySystemError(
                SYSTEM, call, f"the server answered {error.status_code}: {detail}", remedy
            ) from error
        except APIError as error:
            raise MemorySystemError(
                SYSTEM, call, f"{type(error).__name__}: {error}", "See the server's log."
            ) from error

    def check_version(self) -> None:
        """Checks that this is the server that the adapter was written for.

        Raises:
            MemorySystemError: It is another one, or none at all.
        """
        with self.calling("open"):
            found: Any = self._client.get("/v1/health/", cast_to=object)
        version = found.get("version") if isinstance(found, Mapping) else None
        if version != SERVER_VERSION:
            raise MemorySystemError(
                SYSTEM,
                "open",
                f"the server at {self.url} is {'version ' + plain(str(version)) if version else 'no Letta server'}, "
                f"not version {SERVER_VERSION}",
                _START_REMEDY,
            )

    def create(
        self, name: str, *, blocks: Mapping[str, str], chat: Mapping[str, Any], embedding: Mapping[str, Any]
    ) -> Live:
        """A new pair of agents, as Letta makes it, with what Letta leaves out: an archive for both, the tool for it."""
        agent = self._client.agents.create(
            name=name,
            agent_type="letta_v1_agent",
            llm_config=dict(chat),  # type: ignore[arg-type]
            embedding_config=dict(embedding),  # type: ignore[arg-type]
            enable_sleeptime=True,
            memory_blocks=[{"label": label, "value": value} for label, value in blocks.items()],
        )
        group, background = self._group(agent.id)
        # Every capture must start the background agent. Letta's own frequency is 5; without one it is every time, and
        # unlike frequency 1 a memory that was made anew does not show the agent the whole conversation once more.
        self._client.delete(f"/v1/groups/{group}", cast_to=object)
        manager = {"manager_type": "sleeptime", "manager_agent_id": agent.id}
        body = {"agent_ids": [background], "description": "", "manager_config": manager}
        self._client.post("/v1/groups/", cast_to=object, body=body)
        # All of them, not the one by name: whenever a list lacks some of Letta's own tools, Letta writes all of those
        # to its database anew.
        tools = self._client.tools.list(limit=_ALL_TOOLS).items
        tool = next((tool for tool in tools if tool.name == ARCHIVE_TOOL), None)
        if tool is None:
            raise MemorySystemError(SYSTEM, "open", f"the server has no tool {ARCHIVE_TOOL}", _START_REMEDY)
        self._client.agents.tools.attach(str(tool.id), agent_id=background)
        return self._with_archive(name, agent.id, background, embedding)

    def restore(
        self, agent_file: Mapping[str, Any], *, name: str, embedding: Mapping[str, Any], passages: Sequence[Stored]
    ) -> Live:
        """A pair of agents from an agent file that holds the conversation too, and an archive of passages."""
        file = ("memory.af", json.dumps(agent_file).encode(), "application/json")
        with self._turn():
            made = self._client.agents.import_file(file=file, append_copy_suffix=False, override_existing_tools=False)
        foreground, background = self._pair(made.agent_ids)
        live = self._with_archive(name, foreground, background, embedding)
        path, ids = f"/v1/archives/{live.archive}/passages/batch", []
        for start in range(0, len(passages), _PAGE):
            batch = [
                {"text": p.text, "tags": list(p.tags) or None, "created_at": p.created_at.isoformat()}
                for p in passages[start : start + _PAGE]
            ]
            made_passages: Any = self._client.post(path, cast_to=object, body={"passages": batch})
            ids += [str(passage["id"]) for passage in made_passages]
        return replace(live, passages=tuple(ids))

    def _pair(self, ids: Sequence[str]) -> tuple[str, str]:
        for id_ in ids:
            background = self._group(id_, missing_is_none=True)[1]
            if background:
                return id_, background
        raise MemorySystemError(SYSTEM, "open", "the imported agents are no pair", "Restore the memory from a copy.")

    def _group(self, agent_id: str, *, missing_is_none: bool = False) -> tuple[str, str]:
        group = self._client.agents.retrieve(agent_id, include=["agent.managed_group"]).managed_group
        if group is None or not group.agent_ids:
            if missing_is_none:
                return "", ""
            raise MemorySystemError(
                SYSTEM, "open", "the server made no background agent", "Use an embedding model that it accepts."
            )
        return group.id, group.agent_ids[0]

    def _with_archive(self, name: str, foreground: str, background: str, embedding: Mapping[str, Any]) -> Live:
        archive = self._client.archives.create(name=name, embedding_config=dict(embedding))  # type: ignore[arg-type]
        for agent_id in (foreground, background):
            self._client.agents.archives.attach(archive.id, agent_id=agent_id)
        return Live(foreground, background, archive.id)

    def remove(self, live: Live) -> None:
        """Removes the agents and what `agents.delete` leaves behind: their blocks and the archive."""
        blocks = {str(block.id) for block in self.blocks(live.foreground) + self.blocks(live.background)}
        self._client.agents.delete(live.foreground)
        with contextlib.suppress(APIStatusError):  # gone with the foreground agent, unless it was orphaned
            self._client.agents.delete(live.background)
        for block in sorted(blocks):
            self._client.blocks.delete(block)
        self._client.archives.delete(live.archive)

    def capture(self, live: Live, users: Sequence[str], assistant: str, model: str) -> str:
        """Captures one episode; returns the id of the background run that it started."""
        body = {
            "provider": "openai",
            "model": model,
            "request_messages": [{"role": "user", "content": text} for text in users],
            "response_dict": {"content": assistant},
        }
        path = f"/v1/agents/{live.foreground}/messages/capture"
        answer: Any = self._client.post(path, cast_to=object, body=body)
        runs = answer.get("run_ids") or []
        if answer.get("messages_created") != len(users) + 1 or len(runs) != 1:
            raise MemorySystemError(
                SYSTEM,
                "write",
                f"the server stored {answer.get('messages_created')} of {len(users) + 1} messages and started "
                f"{len(runs)} background runs instead of one",
                "Nothing of this session was kept; use a server of the version named in the documentation.",
            )
        return str(runs[0])

    def wait(self, run_id: str) -> Run:
        """Waits for a background run to end."""
        deadline = time.monotonic() + self._timeout
        while True:
            run = self._look_at(run_id)
            if run.status in _ENDED:
                error = (run.metadata or {}).get("error") or ""
                return Run(str(run.status), run.stop_reason, plain(str(error), 400))
            if time.monotonic() > deadline:
                raise MemorySystemError(
                    SYSTEM,
                    "write",
                    f"the background agent did not finish within {self._timeout:g} seconds",
                    "Nothing of this session was kept; give a longer timeout, then write it again.",
                )
            time.sleep(POLL_SECONDS)

    def _look_at(self, run_id: str) -> Any:
        """The run; asked again if the server is too busy to tell, because asking changes nothing."""
        return self._again(lambda: self._client.runs.retrieve(run_id))

    def export(self, live: Live) -> dict[str, Any]:
        """The agent file of the pair; asked for again if somebody else's import or export came in between."""
        with self._turn():
            found: Any = self._again(lambda: self._client.agents.export_file(live.foreground))
        return dict(json.loads(found) if isinstance(found, str) else found)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Lets one export or import go on at a time, of all threads and processes of this user on this machine.

        The server has one table from its ids to those of agent files, and every export and import begins by emptying
        it (`AgentSerializationManager._reset_state`). An export during which that happens fails: "Unexpected new ...
        ID".
        """
        if sys.platform == "win32":
            yield
            return
        import fcntl

        name = f"memorydojo-letta-{os.getuid()}-{urlsplit(self.url).hostname}-{urlsplit(self.url).port}.lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(Path(tempfile.gettempdir()) / name, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _again(self, ask: Callable[[], Any]) -> Any:
        """What the server answers to a question that changes nothing; asked again while it fails."""
        for attempt in range(_LOOKS):
            try:
                return ask()
            except InternalServerError:
                if attempt == _LOOKS - 1:
                    raise
                # By chance, so that two that came into each other's way do not meet again.
                time.sleep(random.Random().uniform(0.2, 1.5))
        raise AssertionError

    def blocks(self, agent_id: str) -> list[Any]:
        """The core blocks of an agent, by label: the server's own order varies."""
        page = self._client.agents.blocks.list(agent_id, limit=_PAGE)
        found = page.items if len(page.items) < _PAGE else list(page)  # the client asks on until a page is empty
        return sorted(found, key=lambda block: str(block.label))

    def conversation(self, live: Live, after: str | None = None) -> Iterator[Captured]:
        """The captured messages, oldest first: all, or those that follow one of them. Asks page by page."""
        order: Any = {"order": "asc", "limit": _PAGE, **({"after": after} if after else {})}
        found: Any = self._client.agents.messages.list(live.foreground, **order)
        roles = {"user_message": "user", "assistant_message": "assistant"}
        for message in found:
            if message.message_type in roles:
                yield Captured(message.id, roles[message.message_type], _text(message.content), message.date)

    def passages(self, live: Live, after: str | None = None) -> list[Stored]:
        """Archival passages in the order in which they were made: all, or those that follow one of them."""
        found: list[Stored] = []
        while True:
            # Not through the client's models: each passage brings a vector of 4,096 numbers, which would be checked.
            query = {"limit": _PAGE, "ascending": True, **({"after": after} if after else {})}
            path = f"/v1/agents/{live.foreground}/archival-memory"
            page: Any = self._client.get(path, cast_to=object, options={"params": query})
            found += [
                Stored(
                    str(passage["id"]),
                    str(passage["text"]),
                    tuple(passage.get("tags") or ()),
                    datetime.fromisoformat(passage["created_at"]),
                    tuple(passage.get("embedding") or ()),
                )
                for passage in page
            ]
            if len(page) < _PAGE:
                return found
            after = found[-1].id

    def search_conversation(self, live: Live, query: str, limit: int) -> Any:
        """What the tool ``conversation_search`` returns."""
        arguments: dict[str, object] = {"query": query, "limit": limit, "roles": ["user", "assistant"]}
        answer = self._client.agents.tools.run(_SEARCH_TOOL, agent_id=live.foreground, args=arguments)
        if answer.status != "success":
            detail = plain(str(answer.stderr or answer.func_return), 400)
            raise MemorySystemError(SYSTEM, "retrieve", f"{_SEARCH_TOOL} failed: {detail}", "See the server's log.")
        return answer.func_return

    def search_passages(self, live: Live, query: str, limit: int) -> list[str]:
        """Ids of the passages that the archival search finds, best first."""
        answer = self._client.agents.passages.search(live.foreground, query=query, top_k=limit)
        return [str(result.id) for result in answer.results]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.text) for part in content or ())
