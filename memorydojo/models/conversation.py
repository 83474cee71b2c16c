"""One caller's questions to a chat model through the gateway: recorded, replayed, and with all that they cost."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memorydojo.models.usage import Usage, Waiting

if TYPE_CHECKING:
    from memorydojo.models.gateway import Gateway
    from memorydojo.models.through import GatewayModels

#: Codes of failures that are about what was asked: the endpoint refuses it, or answers with something that is none.
ABOUT_THE_QUESTION = frozenset({"refused", "bad_json", "bad_shape"})


@dataclass
class Conversation:
    """What was asked and said under one token.

    Attributes:
        token: What the gateway knows the caller by.
        exchanges: The messages of each request, and the text of its answer, None if there was none.
        usage: What it took; there when it is over.
        waiting: What it waited for; there when it is over.
    """

    token: str
    _models: "GatewayModels"
    _gateway: "Gateway"
    exchanges: list[tuple[list[dict[str, Any]], str | None]] = field(default_factory=list)
    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answers one request in the form of OpenAI's chat completions.

        Raises:
            ModelError: The model could not be asked.
        """
        messages = [dict(message) for message in request["messages"]]
        self.exchanges.append((messages, None))
        answer = self._models.chat(request)
        message = answer["choices"][0].get("message")
        text = message.get("content") if isinstance(message, dict) else None
        self.exchanges[-1] = (messages, text if isinstance(text, str) else None)
        return answer

    def trouble(self) -> str | None:
        """Why no further question can succeed, if so; None once it is over."""
        return self._gateway.trouble(self.token)


@contextmanager
def conversation(gateway: "Gateway", *, token: str, role: str, model: str) -> Iterator[Conversation]:
    """Opens a conversation; when it is over, also by an error, it knows what it took.

    Args:
        gateway: The gateway of this process.
        token: What the gateway knows the caller by: its counts and recorded answers are kept under it.
        role: What the caller is, for the accounts.
        model: The model's name.
    """
    from memorydojo.models.connection import Connection
    from memorydojo.models.through import GatewayModels

    gateway.begin(token)
    connection = Connection(gateway, run=token, role=role)
    models = GatewayModels(connection, chat_model=model, embedding_model=model, simulated=False)
    found = Conversation(token, models, gateway)
    try:
        yield found
    finally:
        counts = gateway.settled(token, 0)
        found.usage = tuple(count.usage for count in counts)
        found.waiting = tuple(count.waiting for count in counts)
        gateway.end(token)
