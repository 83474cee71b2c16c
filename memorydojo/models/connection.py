"""The way from a run to the gateway: JSON over kept connections, for the agent's and the memory's models alike."""

import json
from collections.abc import Mapping
from typing import Any

import urllib3

from memorydojo._display import plain
from memorydojo.errors import ModelError


class Connection:
    """Asks the gateway. Safe to share between threads.

    The vendors' clients would do too, but take three times the processor's time for a call, which counts when many runs
    overlap (``benchmarks/concurrency.py``). Nothing of what they add is wanted here: the gateway retries and keeps the
    endpoint's timeouts, so nothing is retried and nothing cut short on the way to it.

    Args:
        base_url: The gateway's address for a run and a role.
        secret: The gateway's secret.
    """

    def __init__(self, base_url: str, secret: str) -> None:
        self._base_url = base_url
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=None)

    def post(self, endpoint: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Sends one request, and gives the answer's JSON object.

        Args:
            endpoint: For example ``"chat/completions"``.
            request: The body; names its ``model``.

        Raises:
            ModelError: The gateway could not be reached, or answered with an error or with no JSON object.
        """
        asked = f"the model {request.get('model')!r}"
        try:
            body = json.dumps(request).encode("utf-8")
            response = self._pool.request("POST", f"{self._base_url}/{endpoint}", body=body, headers=self._headers)
            answer = json.loads(response.data)
        except (urllib3.exceptions.HTTPError, ValueError, RecursionError) as error:
            raise ModelError(f"{asked} could not be asked: {plain(str(error), 600)}") from error
        if response.status != 200:
            detail = answer.get("error") if isinstance(answer, dict) else None
            message = detail.get("message") if isinstance(detail, dict) else None
            said = plain(str(message or f"the gateway answered {response.status}"), 600)
            code = detail.get("code") if isinstance(detail, dict) else None
            raise ModelError(f"{asked} could not be asked: {said}", code=str(code) if code else None)
        if not isinstance(answer, dict):
            raise ModelError(f"{asked} answered in a form that is no JSON object")
        return answer

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()
