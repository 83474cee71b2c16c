"""The task agent's LLM element: an OpenAI-compatible chat model behind the gateway.

AgentDojo is imported with this module; import it where it is used.
"""

import functools
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.functions_runtime import EmptyEnv, Env, Function, FunctionCall, FunctionsRuntime
from agentdojo.types import ChatAssistantMessage, ChatMessage, get_text_content_as_str, text_content_block_from_string
from pydantic import BaseModel

from memorydojo.errors import ModelError
from memorydojo.models.connection import Connection
from memorydojo.running.runtime import MALFORMED

if TYPE_CHECKING:
    from openai import OpenAI


class ChatLLM(BasePipelineElement):  # type: ignore[misc]
    """Asks a chat model for the next step of a session.

    Several tool calls in one answer are kept. Arguments that are no JSON object become an error observation for the
    model, never a crash. Nothing is retried here: the gateway retries.

    Args:
        connection: The connection to the gateway.
        model: The model's name, as the gateway's routes know it. Temperature and effort are set there.
        client: Makes an OpenAI client of the gateway, for elements of AgentDojo that ask the agent's model themselves.
    """

    def __init__(self, connection: Connection, model: str, *, client: "Callable[[], OpenAI]") -> None:
        self.name = model
        self._connection = connection
        self._make_client = client
        self._unnamed = 0

    @property
    def client(self) -> "OpenAI":
        """An OpenAI client of the gateway."""
        return self._make_client()

    def query(
        self,
        query: str,
        runtime: FunctionsRuntime,
        env: Env = EmptyEnv(),  # noqa: B008 - AgentDojo's own signature
        messages: Sequence[ChatMessage] = [],
        extra_args: dict[str, Any] = {},  # noqa: B006 - AgentDojo's own signature
    ) -> tuple[str, FunctionsRuntime, Env, Sequence[ChatMessage], dict[str, Any]]:
        """Sends the conversation and the tools, and appends the answer.

        Raises:
            ModelError: The model could not be called, or answered in a form that is no chat completion.
        """
        request: dict[str, Any] = {"model": self.name, "messages": [to_wire(m) for m in messages]}
        if runtime.functions:
            request["tools"] = [_tool(function) for function in runtime.functions.values()]
            request["tool_choice"] = "auto"
        answer = self._ask(request)
        return query, runtime, env, [*messages, answer], extra_args

    def _ask(self, request: dict[str, Any]) -> ChatAssistantMessage:
        answer = self._connection.post("chat/completions", request)
        choices = answer.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            raise ModelError(f"the model {self.name!r} answered without a message; check what its endpoint serves")
        requested = message.get("tool_calls")
        calls = [self._call(call) for call in requested] if isinstance(requested, list) else []
        text = message.get("content")
        content = [text_content_block_from_string(text)] if isinstance(text, str) else None
        return ChatAssistantMessage(role="assistant", content=content, tool_calls=calls or None)

    def _call(self, call: Any) -> FunctionCall:
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        raw = function.get("arguments")
        try:
            arguments = json.loads(raw or "{}")
        except (TypeError, ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            arguments = {MALFORMED: raw if isinstance(raw, str) else repr(raw)}
        identity = call.get("id")
        if not identity:  # some servers give none, but the observation has to name its call
            self._unnamed += 1
            identity = f"call_{self._unnamed}"
        return FunctionCall(function=str(function.get("name") or ""), args=arguments, id=str(identity))


def to_wire(message: ChatMessage) -> dict[str, Any]:
    """An AgentDojo message in the form of OpenAI's chat completions, contents as plain text."""
    text = get_text_content_as_str(message["content"] or [])
    if message["role"] == "tool":
        return {
            "role": "tool",
            "tool_call_id": message["tool_call_id"] or "",
            "content": f"Error: {message['error']}" if message["error"] else text,
        }
    if message["role"] == "assistant" and message["tool_calls"]:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": _arguments(call)}}
            for call in message["tool_calls"]
        ]
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": message["role"], "content": text}


def _arguments(call: FunctionCall) -> str:
    # What the model wrote goes back as it was, so that it can see its own mistake.
    return str(call.args[MALFORMED]) if MALFORMED in call.args else json.dumps(call.args)


def _tool(function: Function) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": function.name,
            "description": function.description,
            "parameters": _schema(function.parameters),
        },
    }


@functools.lru_cache(maxsize=1024)
def _schema(parameters: type[BaseModel]) -> dict[str, Any]:
    """Making one takes a millisecond, and a session sends all of its tools with every call."""
    return parameters.model_json_schema()
