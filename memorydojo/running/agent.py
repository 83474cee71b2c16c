"""The task agent at work: from a request to the messages of a session.

AgentDojo is imported with this module; import it where it is used.
"""

from collections.abc import Sequence
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.errors import AbortAgentError
from agentdojo.types import ChatMessage, get_text_content_as_str

from memorydojo._display import valid
from memorydojo.record import Message, ToolCall
from memorydojo.running.runtime import RecordingRuntime, to_json


def interact(
    elements: Sequence[BasePipelineElement], *, prompt: str, runtime: RecordingRuntime, environment: Any
) -> Sequence[ChatMessage]:
    """Lets the agent work on a request until it answers; the environment changes in place.

    An empty answer stays an empty answer: nothing is run again on the changed environment.

    Raises:
        Exception: Whatever the LLM element or a pipeline element raises.
    """
    messages: Sequence[ChatMessage] = []
    extra_args: dict[str, Any] = {}
    query, env = prompt, environment
    try:
        for element in elements:
            query, _, env, messages, extra_args = element.query(query, runtime, env, messages, extra_args)
    except AbortAgentError as stopped:  # a defense ended the session; what was said so far is the session
        return list(stopped.messages)
    return messages


def to_messages(messages: Sequence[ChatMessage], *, prompt: str, request: str) -> tuple[Message, ...]:
    """AgentDojo's messages as those of a session record: without system message and retrieved context."""
    converted = []
    for message in messages:
        text = valid(get_text_content_as_str(message["content"] or []))
        if message["role"] == "user":
            converted.append(Message(role="user", text=text.replace(prompt, request)))
        elif message["role"] == "assistant":
            calls = tuple(
                ToolCall(
                    id=call.id or f"call_{len(converted)}_{n}",
                    function=valid(call.function),
                    arguments={k: to_json(v) for k, v in call.args.items()},
                )
                for n, call in enumerate(message["tool_calls"] or [])
            )
            converted.append(Message(role="assistant", text=text, tool_calls=calls))
        elif message["role"] == "tool":
            converted.append(
                Message(
                    role="tool",
                    text=text,
                    tool=valid(message["tool_call"].function),
                    tool_call_id=message["tool_call_id"],
                    error=message["error"],
                )
            )
    return tuple(converted)


def requested_calls(messages: Sequence[ChatMessage]) -> list[Any]:
    """The calls that the agent requested, in order, as AgentDojo's utility checks take them."""
    return [call for m in messages if m["role"] == "assistant" for call in m["tool_calls"] or []]
