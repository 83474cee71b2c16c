"""The way from a run to the gateway of its process, for the agent's and the memory's models alike."""

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from memorydojo._display import plain
from memorydojo.errors import ModelError

if TYPE_CHECKING:
    from memorydojo.models.gateway import Gateway


class Connection:
    """Asks the gateway as its clients on loopback do, by path and secret, but without a socket between them.

    The two are in one process, and HTTP between them took as much of the processor's time as the gateway itself, which
    counts when many runs overlap (``benchmarks/concurrency.py``). Safe to share between threads. The gateway retries
    and keeps the endpoint's timeouts, so nothing is retried and nothing cut short on the way to it.

    Args:
        gateway: The gateway of this process.
        run: The run that asks.
        role: What asks in it.

    Attributes:
        base_url: The gateway's address for the run and the role, for clients that need one.
        secret: What such a client sends as its key.
    """

    def __init__(self, gateway: "Gateway", *, run: str, role: str) -> None:
        self.base_url = gateway.url(run=run, role=role)
        self.secret = gateway.secret
        self._gateway = gateway

    def post(self, endpoint: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Sends one request, and gives the answer's JSON object.

        Args:
            endpoint: For example ``"chat/completions"``.
            request: The body; names its ``model``.

        Raises:
            ModelError: The gateway is gone, or answered with an error or with no JSON object.
        """
        asked = f"the model {request.get('model')!r}"
        try:
            body = json.dumps(request).encode("utf-8")
            status, data = self._gateway.post(f"{self.base_url}/{endpoint}", body)
            answer = json.loads(data)
        except (asyncio.CancelledError, CancelledError):
            raise ModelError(f"{asked} could not be asked: the gateway was closed") from None
        except ConnectionError as error:
            raise ModelError(f"{asked} broke its answer off") from error
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{asked} could not be asked: {plain(str(error), 600)}") from error
        if status != 200:
            detail = answer.get("error") if isinstance(answer, dict) else None
            message = detail.get("message") if isinstance(detail, dict) else None
            said = plain(str(message or f"the gateway answered {status}"), 600)
            code = detail.get("code") if isinstance(detail, dict) else None
            raise ModelError(f"{asked} could not be asked: {said}", code=str(code) if code else None)
        if not isinstance(answer, dict):
            raise ModelError(f"{asked} answered in a form that is no JSON object")
        return answer
