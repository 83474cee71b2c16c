"""What a Letta memory keeps in its directory: all that is needed to make its agents anew, on any server.

Letta's own agent file (.af) lacks the captured conversation and the archival passages, so both are kept beside it.
"""

import base64
import copy
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from memorydojo.adapters._letta_client import Captured, Stored
from memorydojo.adapters._state import replace_text
from memorydojo.errors import MemorySystemError

FILE = "state.json"


@dataclass(frozen=True)
class SessionState:
    """One session that was written.

    Attributes:
        id: The session's id.
        time: The session's time.
        background: How the background agent dealt with it: stop reason, and each tool call with its outcome.
    """

    id: str
    time: str
    background: dict[str, Any]


@dataclass(frozen=True)
class MessageState:
    """One captured message; ``text`` is what was captured, which Letta's listing does not always show."""

    session: str
    role: str
    text: str
    created_at: str


@dataclass(frozen=True)
class PassageState:
    """One archival passage, and the session whose write made it. ``vector`` is base64 of float32."""

    session: str
    text: str
    tags: tuple[str, ...]
    created_at: str
    vector: str


@dataclass(frozen=True)
class State:
    """A memory between two writes. An empty one has no agent file.

    Attributes:
        agent_file: Letta's agent file of both agents.
        sessions: The sessions that were written, in order.
        messages: The captured conversation.
        passages: The archival memory.
    """

    agent_file: dict[str, Any] = field(default_factory=dict)
    sessions: tuple[SessionState, ...] = ()
    messages: tuple[MessageState, ...] = ()
    passages: tuple[PassageState, ...] = ()

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Reads the state of a directory; a new directory has an empty one.

        Raises:
            MemorySystemError: The file cannot be read.
        """
        path = directory / FILE
        if not path.exists():
            return cls()
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                agent_file=data["agent_file"],
                sessions=tuple(SessionState(**item) for item in data["sessions"]),
                messages=tuple(MessageState(**item) for item in data["messages"]),
                passages=tuple(PassageState(**{**item, "tags": tuple(item["tags"])}) for item in data["passages"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise MemorySystemError(
                "letta", "open", f"{path} cannot be read: {error}", "Restore the directory from a checkpoint."
            ) from error

    def save(self, directory: Path) -> None:
        """Writes the state in one step."""
        replace_text(directory / FILE, json.dumps(asdict(self), ensure_ascii=False))

    def after(
        self,
        session: SessionState,
        *,
        agent_file: Mapping[str, Any],
        messages: Sequence[MessageState],
        passages: Sequence[Stored],
        dimensions: int,
    ) -> "State":
        """The state after one more session; ``passages`` are those that it made: they are only ever added."""
        made = tuple(
            PassageState(session.id, p.text, p.tags, p.created_at.isoformat(), pack(p.vector[:dimensions]))
            for p in passages
        )
        return replace(
            self,
            agent_file=portable(agent_file),
            sessions=(*self.sessions, session),
            messages=(*self.messages, *messages),
            passages=(*self.passages, *made),
        )

    def vectors(self) -> dict[str, list[float]]:
        """The vectors of the passages by text, so that making them anew asks no model."""
        return {passage.text: unpack(passage.vector) for passage in self.passages}

    def message_ids(self) -> list[str]:
        """The entry ids of the messages."""
        return _numbered([(message.session, message.role) for message in self.messages])

    def passage_ids(self) -> list[str]:
        """The entry ids of the passages."""
        return _numbered([(passage.session, "passage") for passage in self.passages])

    def stored(self) -> list[Stored]:
        """The passages as the client takes them."""
        return [
            Stored("", p.text, p.tags, datetime.fromisoformat(p.created_at), tuple(unpack(p.vector)))
            for p in self.passages
        ]

    def importable(self, name: str, *, chat: Mapping[str, Any], embedding: Mapping[str, Any]) -> dict[str, Any]:
        """The agent file to import: with the conversation, and with the models of the present process."""
        file = copy.deepcopy(self.agent_file)
        numbers = [int(m["id"].rpartition("-")[2]) for agent in file["agents"] for m in agent["messages"]]
        background = {id_ for group in file["groups"] for id_ in group["agent_ids"]}
        for agent in file["agents"]:
            agent["llm_config"], agent["embedding_config"] = dict(chat), dict(embedding)
            agent["name"] = name + "-sleeptime" if agent["id"] in background else name
            if agent["id"] not in background:
                agent["messages"] += [
                    _message(message, max(numbers) + 1 + n, agent["id"]) for n, message in enumerate(self.messages)
                ]
        return file


def portable(agent_file: Mapping[str, Any]) -> dict[str, Any]:
    """The agent file without what belongs to one server and one process: addresses, and ids that it cannot map."""
    file = copy.deepcopy(dict(agent_file))
    for agent in file["agents"]:
        agent["llm_config"], agent["embedding_config"], agent["name"] = {}, {}, ""
        for message in agent["messages"]:
            message["group_id"] = None
    return file


def _numbered(keys: Sequence[tuple[str, str]]) -> list[str]:
    """An id for each: session, kind, and the number among its like in the session."""
    seen: dict[tuple[str, str], int] = {}
    ids = []
    for session, kind in keys:
        seen[session, kind] = seen.get((session, kind), 0) + 1
        ids.append(f"{session}/{kind}-{seen[session, kind]}")
    return ids


def _message(message: MessageState, number: int, agent_id: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"message-{number}",
        "role": message.role,
        "content": [{"type": "text", "text": message.text}],
        "agent_id": agent_id,
        "created_at": message.created_at,
    }


def matches(found: Captured, message: MessageState) -> bool:
    """Whether a message of Letta's listing is this one."""
    return (found.role, found.text) == (message.role, shown(message.role, message.text))


def shown(role: str, text: str) -> str:
    """The text as Letta lists it: of a user message that looks like its own packed form it shows the inner text."""
    if role != "user" or not text.lstrip().startswith("{"):
        return text
    try:
        packed = json.loads(text)
    except ValueError:
        return text
    inner = packed.get("message") if isinstance(packed, dict) and packed.get("type") == "user_message" else None
    return inner if isinstance(inner, str) else text


def pack(vector: Sequence[float]) -> str:
    """A vector as base64 of float32, which is what PostgreSQL keeps of it."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def unpack(text: str) -> list[float]:
    """The vector that `pack` packed.

    >>> unpack(pack([0.5, -1.0]))
    [0.5, -1.0]
    """
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))
