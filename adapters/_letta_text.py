"""Letta's texts: how a session goes in, what the background agent is asked and may answer, and the simulated answer.

Imports nothing of Letta, so that the simulated model works on saved requests alone.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memorydojo.adapters._state import unicode
from memorydojo.errors import InvalidInputError, ModelError
from memorydojo.record import SessionRecord
from memorydojo.simulator.extraction import FEATURES, Fact, Line, extract
from memorydojo.simulator.transcript import lines as transcript_lines

#: How the background agent's prompt begins (sleeptime_multi_agent_v4.py); nothing else in its context begins so.
PROMPT_HEAD = "<system-reminder>\nYou are a sleeptime agent"
_CONVERSATION = "\n</system-reminder>\n\nMessages:\n"
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_METADATA = "<memory_metadata>"
_AGENT = re.compile(r"(?<=- AGENT_ID: )agent-[0-9a-f-]{36}")
_RECOMPILED = re.compile(r"(?<=- System prompt last recompiled: )[^\n]+")
_TOLD_TIME = re.compile(r'(?<="time": ")\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M UTC[+-]\d{4}')
_TIME = "%Y-%m-%d %I:%M:%S %p UTC+0000"
_NO_AGENT = "agent-00000000-0000-4000-8000-000000000000"
_ASSISTANT = re.compile(r"^assistant: ", re.MULTILINE)
_BLOCKS, _BLOCKS_END = "<memory_blocks>", "</memory_blocks>"
_ANY_BLOCK = re.compile(r"<(\w[\w-]*)>\n<description>\n.*?\n</value>\n</\1>(?=\n\n)", re.DOTALL)
_BLOCK = re.compile(r"\n<human>\n.*?<value>\n(.*?)\n</value>\n</human>", re.DOTALL)
_INSERT, _ARCHIVE, _FINISH = "memory_insert", "archival_memory_insert", "memory_finish_edits"
_CORE = ("standing", "preference", "policy")
_SUMMARY_WORDS = 1000


def storable(text: str) -> str:
    r"""The text as PostgreSQL can store it: valid Unicode without NUL.

    >>> storable("a\x00b\ud800")
    'a\ufffdb\ufffd'
    """
    return unicode(text).replace("\x00", "\ufffd")


def captured(record: SessionRecord) -> tuple[list[str], str]:
    """The session as Letta captures it: its opening user messages, and one text for all that followed.

    A capture takes user messages and one assistant message; tool calls, observations and later user messages have no
    place of their own in it. They go into the assistant's message, as the transcript of what happened.
    """
    messages = record.messages
    opening = next((n for n, message in enumerate(messages) if message.role != "user"), len(messages))
    rest = record.model_copy(update={"messages": messages[opening:]})
    return [storable(message.text) for message in messages[:opening]], storable(rest.transcript())


def repeatable(request: Mapping[str, Any], times: Sequence[datetime]) -> dict[str, Any]:
    """The request without what no repetition would repeat: random ids, random order and the clock of the machine.

    Letta writes the agent's id, the time of the last compilation and the core blocks in the order of their random ids
    into its system prompt, and the time of each tool call into its result; it offers the tools in the order in which
    PostgreSQL happens to keep them, which any write to that table changes. The id becomes a constant, the blocks come
    in the order of their labels and the tools of their names, and the times become those of the sessions that they
    belong to.

    Args:
        request: A chat request of the background agent.
        times: The times of the sessions so far, the present one last.
    """
    messages = [dict(message) for message in request["messages"]]
    starts = sum(_begins_session(message) for message in messages)
    session = len(times) - starts - 1
    for message in messages:
        session += _begins_session(message)
        text = message.get("content")
        if not isinstance(text, str):
            continue
        if message["role"] == "system":
            message["content"] = _system_text(text, times[-1])
        elif message["role"] == "tool":
            message["content"] = _tool_text(text, times[max(session, 0)])
        elif message["role"] == "user" and not _begins_session(message):  # a summary, or what is to be summed up
            message["content"] = _TOLD_TIME.sub(times[-1].astimezone(UTC).strftime(_TIME), text)
    changed = {**request, "messages": messages}
    if request.get("tools"):
        changed["tools"] = sorted(request["tools"], key=lambda tool: str(tool["function"]["name"]))
    return changed


def _begins_session(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "user" and str(message.get("content") or "").startswith(PROMPT_HEAD)


def _system_text(text: str, time: datetime) -> str:
    head, mark, metadata = text.rpartition(_METADATA)
    metadata = _AGENT.sub(_NO_AGENT, metadata)
    return _ordered(head) + mark + _RECOMPILED.sub(time.astimezone(UTC).strftime(_TIME), metadata)


def _ordered(text: str) -> str:
    """The system prompt with its core blocks by label; left as it is if a block's value makes that ambiguous."""
    start, end = text.find(_BLOCKS), text.rfind(_BLOCKS_END)
    found = list(_ANY_BLOCK.finditer(text, max(start, 0), max(end, 0)))
    blocks = {match.group(1): match.group() for match in found}
    whole = "\n\n".join(match.group() for match in found)
    if len(blocks) != len(found) or not found or text[found[0].start() : end].rstrip("\n") != whole:
        return text
    return text[: found[0].start()] + "\n\n".join(blocks[label] for label in sorted(blocks)) + text[found[-1].end() :]


def _tool_text(text: str, time: datetime) -> str:
    try:
        result = json.loads(text)
    except ValueError:
        return text
    if not isinstance(result, dict) or "time" not in result:
        return text
    result["time"] = time.astimezone(UTC).strftime(_TIME)
    return json.dumps(result, ensure_ascii=False, indent=2)


def check_answer(request: Mapping[str, Any], response: Mapping[str, Any]) -> None:
    """Checks a chat completion before Letta gets it.

    Raises:
        ModelError: It is cut off, refused or empty: Letta would end the run as completed, without an edit. Or a tool
            call has the id of an earlier one: Letta would drop its result, and the agent would call again and again.
    """
    try:
        choice = response["choices"][0]
        message = choice["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise ModelError(f"the chat model's response has no message: {str(response)[:200]!r}") from error
    reason = choice.get("finish_reason")
    if reason not in (None, "stop", "tool_calls", "function_call"):
        raise ModelError(f"the chat model's answer is incomplete: it finished with {reason!r}")
    if message.get("refusal") or not (message.get("tool_calls") or str(message.get("content") or "").strip()):
        raise ModelError(f"the chat model gave neither a tool call nor a text: {str(message)[:200]!r}")
    known = {call["id"] for earlier in request["messages"] for call in earlier.get("tool_calls") or ()}
    repeated = known & {call.get("id") for call in message.get("tool_calls") or ()}
    if repeated:
        raise ModelError(
            f"the chat model gave a tool call the id of an earlier one ({sorted(map(str, repeated))[0][:60]!r}), and "
            "Letta loses the results of such calls; use an endpoint whose ids are unique"
        )


def simulated_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers the background agent by the rules of `memorydojo.simulator.extraction`, from its own request only.

    The facts of the conversation go into one archival passage; those that say how things always are to be also into
    the core block ``human``, unless it holds them already. Then the agent finishes, as it does when its context was
    summed up and no longer holds a conversation. Requests for such a summary get the facts of that context.

    Raises:
        InvalidInputError: It is no request of Letta.
    """
    messages: Sequence[Mapping[str, Any]] = request["messages"]
    tools = {str(tool["function"]["name"]) for tool in request.get("tools") or ()}
    if _FINISH not in tools:
        return _summary(messages)
    start = max((n for n, message in enumerate(messages) if _begins_session(message)), default=None)
    if start is None:
        return _calling(messages, _FINISH, {})
    facts = extract(conversation(str(messages[start]["content"])))
    done = [name for name, _ in _calls(messages[start:])]
    # One call a request: Letta's background agent takes only the first.
    name, arguments = next(step for step in _plan(facts, _human_block(messages[:start]), tools) if step[0] not in done)
    return _calling(messages, name, arguments)


def _calling(messages: Sequence[Mapping[str, Any]], name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    # No two calls of a context may share an id: Letta would put the later result after the earlier call.
    digest = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()
    id_ = f"call-{digest[:24]}"
    call = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": call}]}


def conversation(prompt: str) -> list[Line]:
    """Who says what in the background agent's prompt.

    Raises:
        InvalidInputError: It is no such prompt.
    """
    _, mark, text = prompt.partition(_CONVERSATION)
    if not mark:
        raise InvalidInputError("this is no request of Letta's background agent: it has no section 'Messages'")
    answer = _ASSISTANT.search(text)
    said, told = (text[: answer.start()], text[answer.end() :]) if answer else (text, "")
    users = re.split(r"^user: ", said, flags=re.MULTILINE)[1:]
    return [*(Line("user", user.rstrip("\n")) for user in users), *transcript_lines(told)]


def _human_block(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the block holds, as far as the request tells: its state in the system prompt, and later edits."""
    found = _BLOCK.search(str(messages[0].get("content") or "")) if messages else None
    inserted = [str(json.loads(arguments)["new_string"]) for name, arguments in _calls(messages) if name == _INSERT]
    return "\n".join(([found.group(1)] if found else []) + inserted)


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Names and arguments of the tool calls in messages, in order."""
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [(str(call["name"]), str(call["arguments"])) for call in calls]


def _plan(facts: Sequence[Fact], known: str, tools: set[str]) -> list[tuple[str, dict[str, Any]]]:
    held = set(known.split("\n"))
    core = [_line(fact) for fact in facts if any(FEATURES[name][1].search(fact.source) for name in _CORE)]
    core = [line for line in core if line not in held]
    plan: list[tuple[str, dict[str, Any]]] = []
    if core and _INSERT in tools:
        plan.append((_INSERT, {"label": "human", "new_string": "\n".join(core)}))
    if facts and _ARCHIVE in tools:
        plan.append((_ARCHIVE, {"content": "\n".join(map(_line, facts))}))
    return [*plan, (_FINISH, {})]


def _line(fact: Fact) -> str:
    return " ".join(fact.text.split())


def _summary(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    text = "\n\n".join(str(message.get("content") or "") for message in messages if message.get("role") == "user")
    if not text:
        raise InvalidInputError("this is no request of Letta: it has neither memory tools nor a text to summarize")
    words = " ".join(_line(fact) for fact in extract([Line("tool", _REMINDER.sub("", text))])).split()
    return {"role": "assistant", "content": " ".join(words[-_SUMMARY_WORDS:]) or "Nothing that lasts was said."}
