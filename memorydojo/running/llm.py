"""The task agent's LLM element: an OpenAI-compatible chat model behind the gateway.

AgentDojo is imported with this module; import it where it is used.
"""

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.functions_runtime import EmptyEnv, Env, Function, FunctionCall, FunctionsRuntime
from agentdojo.types import ChatAssistantMessage, ChatMessage, get_text_content_as_str, text_content_block_from_string
from pydantic import BaseModel

from memorydojo._display import plain
from memorydojo.errors import ModelError
from memorydojo.running.runtime import MALFORMED

if TYPE_CHECKING:
    from openai import OpenAI


class ChatLLM(BasePipelineElement):  # type: ignore[misc]
    """Asks a chat model for the next step of a session.

    Several tool calls in one answer are kept. Arguments that are no JSON object become an error observation for the
    model, never a crash. Nothing is retried here: the gateway retries.

    Args:
        client: An OpenAI client whose base URL is the gateway's, made with ``max_retries=0``.
        model: The model's name, as the gateway's routes know it. Temperature and effort are set there.
    """

    def __init__(self, client: "OpenAI", model: str) -> None:
        self.client = client
        self.name = model
        self._unnamed = 0

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
        import openai
        from openai.types.chat import ChatCompletion

        try:
            # The client's own method for a path, not the typed one: that one walks through all schemas of all tools
            # again at every call, which costs more than the rest of the call.
            completion = self.client.post("/chat/completions", cast_to=ChatCompletion, body=request)
        except openai.OpenAIError as error:
            raise ModelError(f"the model {self.name!r} could not be asked: {plain(str(error), 600)}") from error
        message = completion.choices[0].message if getattr(completion, "choices", None) else None
        if message is None:
            raise ModelError(f"the model {self.name!r} answered without a message; check what its endpoint serves")
        calls = [self._call(call) for call in message.tool_calls or []]
        content = [text_content_block_from_string(message.content)] if isinstance(message.content, str) else None
        return ChatAssistantMessage(role="assistant", content=content, tool_calls=calls or None)

    def _call(self, call: Any) -> FunctionCall:
        raw = call.function.arguments
        try:
            arguments = json.loads(raw or "{}")
        except (TypeError, ValueError):
            arguments = None
        if not isinstance(arguments, dict):
            arguments = {MALFORMED: raw if isinstance(raw, str) else repr(raw)}
        identity = call.id
        if not identity:  # some servers give none, but the observation has to name its call
            self._unnamed += 1
            identity = f"call_{self._unnamed}"
        return FunctionCall(function=call.function.name or "", args=arguments, id=identity)


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
