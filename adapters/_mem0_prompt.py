"""Mem0's extraction request and answer: how sessions go in, what an answer must look like, and the simulated answer.

Imports nothing of mem0ai, so that the simulated model works on saved requests alone.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memorydojo.adapters._state import unicode
from memorydojo.errors import InvalidInputError, ModelError
from memorydojo.record import Message
from memorydojo.simulator.extraction import Line, extract

_CALLED = "Called "
_OBSERVED = "Observation from "
_DATES = re.compile(r"## Observation Date\n\S+\n\n## Current Date\n\S+(?=\n)")
_NEW_MESSAGES = re.compile(r"\n\n## Existing Memories\n\[[^\n]*\]\n\n## New Messages\n")
_END = "\n\n## Observation Date\n"
_SPEAKER = re.compile(r"^(user|assistant): ", re.MULTILINE)


def native_messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The session as Mem0 takes it, one message for each of the session's, in its order.

    Mem0 drops every role but system, user and assistant, so an observation becomes an assistant message that names
    its tool, and tool calls become lines of the assistant's message.
    """
    native = []
    for message in messages:
        if message.role == "tool":
            tool = message.tool or "tool"
            text = f"{_OBSERVED}{tool}:\n{message.text}"
            if message.error:
                text = f"{_OBSERVED}{tool} (error):\n{message.error}"
            native.append({"role": "assistant", "content": unicode(text)})
        else:
            lines = [message.text] if message.text else []
            lines.extend(_CALLED + call.text() for call in message.tool_calls)
            native.append({"role": message.role, "content": unicode("\n".join(lines))})
    return native


def dated(messages: Sequence[Mapping[str, str]], date: str) -> list[dict[str, str]]:
    """The request with the session's day as observation and current date.

    Mem0 resolves "yesterday" against these dates and always fills in the day on which the program runs.

    Raises:
        ModelError: The request has no such dates; Mem0's prompt has changed.
    """
    *before, last = messages
    found = list(_DATES.finditer(last["content"]))
    if not found:
        raise ModelError("Mem0's request has no observation date; this version of mem0ai is not supported")
    # The last one is Mem0's own: whatever a message contains comes before it.
    start, end = found[-1].span()
    text = f"{last['content'][:start]}## Observation Date\n{date}\n\n## Current Date\n{date}{last['content'][end:]}"
    return [*(dict(message) for message in before), {**last, "content": text}]


def checked_memories(body: str, fallback: str) -> list[dict[str, Any]]:
    """The memories of an answer, decoded as Mem0 decodes it.

    Args:
        body: The answer without a code fence.
        fallback: What Mem0 reads if ``body`` is no JSON.

    Raises:
        ModelError: Mem0 would take the answer for an empty one, or fail on it. An empty list is a proper answer.
    """
    try:
        try:
            answer = json.loads(body, strict=False)
        except json.JSONDecodeError:
            answer = json.loads(fallback, strict=False)
    except ValueError as error:
        raise ModelError(f"the chat model's answer is no JSON ({error}): {body[:200]!r}") from error
    memories = answer.get("memory") if isinstance(answer, dict) else None
    if not isinstance(memories, list):
        raise ModelError(f"the chat model's answer has no list 'memory': {body[:200]!r}")
    for memory in memories:
        text = memory.get("text") if isinstance(memory, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise ModelError(f"the chat model's answer holds a memory without text: {str(memory)[:200]!r}")
    return memories


def simulated_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers an extraction request by the rules of `memorydojo.simulator.extraction`, from its new messages only.

    Raises:
        InvalidInputError: It is no extraction request of Mem0.
    """
    facts = extract(new_lines(str(request["messages"][-1]["content"])))
    memories = [
        {"id": str(number), "text": fact.text, "attributed_to": "user" if fact.role == "user" else "assistant"}
        for number, fact in enumerate(facts)
    ]
    return {"role": "assistant", "content": json.dumps({"memory": memories}, ensure_ascii=False)}


def new_lines(prompt: str) -> list[Line]:
    """Who says what in the new messages of an extraction request.

    Raises:
        InvalidInputError: It is no extraction request of Mem0.
    """
    start, end = _NEW_MESSAGES.search(prompt), prompt.rfind(_END)
    if start is None or end < start.end() - 1:
        raise InvalidInputError("this is no extraction request of Mem0: it has no section 'New Messages'")
    block = prompt[start.end() : end]
    starts = list(_SPEAKER.finditer(block))
    ends = [match.start() for match in starts[1:]] + [len(block)]
    return [
        line
        for match, stop in zip(starts, ends, strict=True)
        for line in _lines(match.group(1), block[match.end() : stop].rstrip("\n"))
    ]


def _lines(speaker: str, text: str) -> list[Line]:
    if speaker == "user":
        return [Line("user", text)]
    if text.startswith(_OBSERVED):
        return [Line("tool", text.partition("\n")[2])]
    said = [line for line in text.split("\n") if not line.startswith(_CALLED)]
    calls = [line.removeprefix(_CALLED) for line in text.split("\n") if line.startswith(_CALLED)]
    return [Line("assistant", "\n".join(said)), *(Line("call", call) for call in calls)]
