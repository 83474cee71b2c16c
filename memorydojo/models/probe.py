"""A first try of a model: one tool call and one embedding."""

from contextlib import closing

from memorydojo.errors import MemoryDojoError
from memorydojo.models.config import Models
from memorydojo.models.connection import Connection
from memorydojo.models.gateway import Gateway
from memorydojo.models.keys import Keys
from memorydojo.models.through import GatewayModels

_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def probe(models: Models, name: str, *, keys: Keys | None = None) -> dict[str, str | None]:
    """Asks a model for one tool call and one embedding, through the gateway.

    Returns:
        What was asked for, and why it did not work; None if it did.

    Raises:
        UnknownNameError: No model has this name.
    """
    models.route(name)
    with closing(Gateway(models, keys=keys)) as gateway:
        connection = Connection(gateway, run="probe", role="doctor")
        line = GatewayModels(connection, chat_model=name, embedding_model=name, simulated=False)
        return {"tool call": _tool_call(line), "embedding": _embedding(line)}


def _tool_call(line: GatewayModels) -> str | None:
    question = {"role": "user", "content": "What is the weather in Paris? Use the tool."}
    try:
        answer = line.chat({"messages": [question], "tools": [_TOOL]})
    except MemoryDojoError as error:
        return str(error)
    return None if answer["choices"][0]["message"].get("tool_calls") else "it answered without calling the tool"


def _embedding(line: GatewayModels) -> str | None:
    try:
        vectors = line.embed(["a sentence"])
    except MemoryDojoError as error:
        return str(error)
    return None if vectors and vectors[0] else "it answered with an empty vector"
