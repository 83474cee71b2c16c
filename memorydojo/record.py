"""What one session leaves behind, what memory stores of it, and what memory delivers."""

import json
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from memorydojo._base import Frozen

INDIRECT_ROUTES = frozenset({"linked", "episodic"})
"""Routes on which an item is delivered only because another one was found (paper, appendix A.4)."""


class ToolCall(Frozen):
    """A tool call as an assistant message requests it. ``arguments`` is JSON data."""

    id: str
    function: str
    arguments: dict[str, Any]

    def text(self) -> str:
        """The call in one line; argument values are written as JSON."""
        arguments = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in self.arguments.items())
        return f"{self.function}({arguments})"


class Message(Frozen):
    """One message of a session.

    Attributes:
        role: Who speaks; ``"tool"`` is an observation.
        text: The text, empty for an assistant message that only calls tools.
        tool_calls: The calls that an assistant message requests.
        tool_call_id: For an observation, the call that it answers.
        tool: For an observation, the name of the tool.
        error: For an observation, the error that the tool ended with.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool: str | None = None
    error: str | None = None


class SessionRecord(Frozen):
    """The memory write record of one session (paper, section 4.2): all that a memory system ever sees of it.

    Retrieved context is never part of it; neither are payloads, objectives, labels or outcomes.

    Attributes:
        id: Unique within a run, ascending, for example ``"session-0001"``.
        time: When the session took place, on the run's simulated clock.
        messages: Task request, assistant messages, observations and final response, in order.
        kind: ``"task"`` for a task session, ``"history"`` for a recorded conversation.
    """

    id: str
    time: AwareDatetime
    messages: tuple[Message, ...]
    kind: Literal["task", "history"] = "task"

    @property
    def request(self) -> str:
        """The first user message, or an empty string."""
        return next((m.text for m in self.messages if m.role == "user"), "")

    @property
    def final_response(self) -> str | None:
        """The last assistant message without tool calls, or None if the session ended without one."""
        last = self.messages[-1] if self.messages else None
        return last.text if last is not None and last.role == "assistant" and not last.tool_calls else None

    def transcript(self) -> str:
        """The session as prose: a heading with the time, then a paragraph for each message."""
        lines = [f"Session of {self.time:%Y-%m-%d %H:%M}"]
        for message in self.messages:
            if message.role == "tool":
                head = f"Observation from {message.tool or 'tool'}"
                lines.append(f"{head} (error): {message.error}" if message.error else f"{head}: {message.text}")
            elif message.text or not message.tool_calls:
                lines.append(f"{message.role.capitalize()}: {message.text}")
            lines.extend(f"Assistant called {call.text()}" for call in message.tool_calls)
        return "\n\n".join(lines)


class Action(Frozen):
    """One tool call that was executed, in order of completion.

    Attributes:
        function: The tool's name.
        arguments: Its arguments as JSON data, nested calls replaced by their results.
        observation: The result as text, as the agent saw it (with the payload, if it entered here).
        error: The error that the call ended with, or None.
        depth: 0 for a call of the agent's own, 1 and more for a call nested in another's arguments.
        poisoned: Whether the payload was appended to this observation.
    """

    function: str
    arguments: dict[str, Any]
    observation: str
    error: str | None = None
    depth: int = 0
    poisoned: bool = False


class MemoryItem(Frozen):
    """One item of retrieved context, exactly as it is delivered to the agent.

    Attributes:
        entry_ids: The entries it is made of, usually one.
        text: The text as delivered.
        kind: The kind of entry, in the memory system's own words.
        route: How it came to be delivered: ``"primary"``, ``"linked"``, ``"episodic"``, ``"core"``, ...
        via: The entry id of the item that led to it, for routes other than primary.
        rank: 0-based place in the order of delivery.
        score: The memory system's own score, if it gives one; comparable within one system only.
    """

    entry_ids: tuple[str, ...]
    text: str
    kind: str
    route: str = "primary"
    via: str | None = None
    rank: int = Field(ge=0)
    score: float | None = None


class MemoryEntry(Frozen):
    """One stored entry.

    Attributes:
        id: The memory system's own id; it stays the same when the entry is rewritten.
        kind: The kind of entry, in the memory system's own words.
        text: Everything of the entry in which content can survive, as text.
        links: Ids of entries that this one points to.
        metadata: Further native fields as JSON data.
    """

    id: str
    kind: str
    text: str
    links: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class SnapshotDifference(Frozen):
    """What one write did to a memory.

    Attributes:
        created: New entries.
        rewritten: Entries whose text, links or metadata changed, as they are after the write.
        removed: Ids of entries that are gone.
    """

    created: tuple[MemoryEntry, ...] = ()
    rewritten: tuple[MemoryEntry, ...] = ()
    removed: tuple[str, ...] = ()


class Snapshot(Frozen):
    """Every entry that a memory stores at one moment, by id."""

    entries: dict[str, MemoryEntry] = {}

    def difference(self, after: "Snapshot") -> SnapshotDifference:
        """What has to be done to this snapshot to get ``after``; ordered by the order of ``after``."""
        return SnapshotDifference(
            created=tuple(e for i, e in after.entries.items() if i not in self.entries),
            rewritten=tuple(e for i, e in after.entries.items() if i in self.entries and self.entries[i] != e),
            removed=tuple(i for i in self.entries if i not in after.entries),
        )

    def apply(self, difference: SnapshotDifference) -> "Snapshot":
        """The snapshot after ``difference``."""
        entries: dict[str, MemoryEntry] = {i: e for i, e in self.entries.items() if i not in difference.removed}
        entries.update({e.id: e for e in (*difference.rewritten, *difference.created)})
        return Snapshot(entries=entries)
