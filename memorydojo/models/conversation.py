"""One caller's questions to a chat model through the gateway: recorded, replayed, and with all that they cost."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo.models.access import Access
from memorydojo.models.usage import Usage, Waiting

if TYPE_CHECKING:
    from memorydojo.models.gateway import Gateway
    from memorydojo.models.through import GatewayModels


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
        """Why no further question can succeed, if so."""
        return self._gateway.trouble(self.token)


@contextmanager
def conversation(access: Access, directory: Path, *, token: str, role: str, model: str) -> Iterator[Conversation]:
    """Opens a conversation.

    Its answers are recorded in the directory's own file. What a conversation of the same token that was killed has
    recorded there is not asked again, unless the answers are kept in a file that others share.

    Args:
        access: How models are reached.
        directory: Where answers are recorded.
        token: What the gateway knows the caller by; the same again after a kill.
        role: What the caller is, for the accounts.
        model: The model's name.
    """
    from memorydojo.models.through import GatewayModels

    if access.replay == "off" and access.answers is None:
        access = dataclasses.replace(access, replay="prefer")
    gateway = access.gateway(directory, record=True)
    gateway.begin(token)
    url = gateway.url(run=token, role=role)
    models = GatewayModels(url, gateway.secret, chat_model=model, embedding_model=model, simulated=False)
    found = Conversation(token, models, gateway)
    with closing(models):
        try:
            yield found
        finally:
            counts = gateway.settled(token, 0)
            found.usage = tuple(count.usage for count in counts)
            found.waiting = tuple(count.waiting for count in counts)
            gateway.end(token)
