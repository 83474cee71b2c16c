"""The entries of a Letta memory: what the server lists, held against what this memory has written."""

from collections.abc import Mapping, Sequence
from typing import Any

from memorydojo.adapters._letta_client import SYSTEM, Captured, Stored
from memorydojo.adapters._letta_state import State, matches
from memorydojo.errors import MemorySystemError
from memorydojo.record import MemoryEntry


def block_entry(owner: str, block: Any) -> MemoryEntry:
    """A core block as an entry; ``owner`` is ``core``, or ``background`` for what only that agent has."""
    metadata = {"label": block.label, "limit": block.limit, "read_only": bool(block.read_only)}
    return MemoryEntry(id=f"{owner}/{block.label}", kind=f"{owner} block", text=str(block.value), metadata=metadata)


def message_entries(state: State, found: Sequence[Captured]) -> list[MemoryEntry]:
    """The captured conversation.

    Raises:
        MemorySystemError: The server holds another one.
    """
    if len(found) != len(state.messages) or not all(map(matches, found, state.messages)):
        raise changed("snapshot", "messages")
    sessions = {session.id: session for session in state.sessions}
    return [
        MemoryEntry(
            id=id_,
            kind="message",
            text=f"{message.role}: {message.text}",
            metadata={
                "session": message.session,
                "role": message.role,
                "time": sessions[message.session].time,
                "background": sessions[message.session].background,
            },
        )
        for id_, message in zip(state.message_ids(), state.messages, strict=True)
    ]


def passage_entries(state: State, found: Sequence[Stored]) -> list[MemoryEntry]:
    """The archival memory.

    Raises:
        MemorySystemError: The server holds another one.
    """
    kept = state.passages
    if [(p.text, p.tags) for p in found] != [(p.text, p.tags) for p in kept]:
        raise changed("snapshot", "passages")
    return [
        MemoryEntry(id=id_, kind="passage", text=p.text, metadata={"session": p.session, "tags": list(p.tags)})
        for id_, p in zip(state.passage_ids(), kept, strict=True)
    ]


def changed(call: str, what: str) -> MemorySystemError:
    """The error for a server that holds something that this memory did not write."""
    return MemorySystemError(
        SYSTEM,
        call,
        f"the {what} on the server are not those that this memory wrote",
        "Let nobody else write to its agents; open the directory again.",
    )


def tool_calls(agent_file: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the background agent did after its last prompt: each tool call and whether it succeeded."""
    background = {id_ for group in agent_file["groups"] for id_ in group["agent_ids"]}
    (agent,) = (agent for agent in agent_file["agents"] if agent["id"] in background)
    calls: list[dict[str, Any]] = []
    for message in reversed(agent["messages"]):
        if message["role"] == "user":
            break
        for returned in message.get("tool_returns") or ():
            calls.append({"ok": returned.get("status") == "success", "tool": message.get("name")})
    return calls[::-1]
