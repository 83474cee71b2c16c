"""Calls to one endpoint: slots, retries, the circuit, and answers that can be used."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp

from memorydojo._display import plain
from memorydojo.models.accounting import Tokens
from memorydojo.models.config import Backend, Limits
from memorydojo.models.keys import Keys, Redactor
from memorydojo.models.limits import Circuit, Throttle, retry_after_seconds, wait_before_retry
from memorydojo.models.tokens import estimate_tokens

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_DEAD_KEY = frozenset({401, 403})
_NEEDED = {"chat/completions": "choices", "responses": "output", "embeddings": "data"}
_ENDED = frozenset({"response.completed", "response.incomplete"})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


@dataclass(eq=False)
class UpstreamError(Exception):
    """A call that ended without an answer that can be used.

    Attributes:
        status: The status for the caller.
        code: What kind of error, for programs.
        message: What happened and what to do, without secrets.
        retries: Attempts beyond the first.
    """

    status: int
    code: str
    message: str
    retries: int = 0

    def __str__(self) -> str:
        return self.message


@dataclass
class Answer:
    """An answer that can be used: a JSON object, or the events of a stream."""

    content_type: str
    body: bytes
    usage: dict[str, Any]
    retries: int = 0


@dataclass
class Stream:
    """A stream that has begun. `usage` and `body` are complete when it has ended."""

    response: aiohttp.ClientResponse
    retries: int
    body: bytearray = field(default_factory=bytearray)
    usage: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class _AttemptError(Exception):
    """One attempt that failed and may be made again."""

    status: int
    code: str
    message: str
    retry_after: float | None = None
    no_answer: bool = True


class Upstream:
    """One endpoint. Belongs to one event loop.

    Args:
        name: The backend's name, for messages.
        backend: Its address and limits.
        keys: Where its key comes from.
        redactor: Learns the key, and cleans every text that comes back.
    """

    def __init__(self, name: str, backend: Backend, *, keys: Keys, redactor: Redactor) -> None:
        self.name = name
        self.backend = backend
        self.circuit = Circuit(backend.limits.circuit_failures)
        self._keys, self._redactor = keys, redactor
        self._throttle = Throttle(backend.limits)
        limits = backend.limits
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # the throttle limits
            timeout=aiohttp.ClientTimeout(total=limits.timeout_seconds, sock_connect=limits.connect_seconds),
            auto_decompress=True,
        )
        params = f"?api-version={quote(backend.api_version)}" if backend.api_version else ""
        self._urls = {name: f"{backend.address}/{name}{params}" for name in _NEEDED}

    @property
    def _limits(self) -> Limits:
        return self.backend.limits

    async def call(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        """Asks until there is an answer that can be used.

        Raises:
            UpstreamError: There is none: the endpoint refuses, is dead, or keeps failing.
        """
        payload = json.dumps(body).encode()
        answer: Answer
        answer, retries = await self._attempts(lambda: self._once(endpoint, payload), payload)
        answer.retries = retries
        self._throttle.correct(Tokens.of(answer.usage).total - _estimate(payload))
        return answer

    async def open_stream(self, endpoint: str, body: Mapping[str, Any]) -> Stream:
        """Asks until a stream begins. What goes wrong later is not asked again: part of it was read already."""
        payload = json.dumps(body).encode()
        response, retries = await self._attempts(lambda: self._begin(endpoint, payload), payload)
        return Stream(response, retries)

    async def _attempts(self, once: Any, payload: bytes) -> tuple[Any, int]:
        attempt = 0
        while True:
            if self.circuit.reason is not None:
                raise self._dead(attempt)
            attempt += 1
            try:
                async with self._throttle.slot(_estimate(payload)):
                    result = await once()
            except _AttemptError as problem:
                wait = wait_before_retry(attempt, self._limits, problem.retry_after)
                asked = problem.retry_after or 0.0
                if attempt > self._limits.retries or asked > self._limits.max_retry_after_seconds:
                    raise self._given_up(problem, attempt) from None
                await asyncio.sleep(wait)
            else:
                self.circuit.succeeded()
                return result, attempt - 1

    def _given_up(self, problem: _AttemptError, attempts: int) -> UpstreamError:
        text = f"backend {self.name!r} ({self.backend.host}): {problem.message}, after {attempts} attempts"
        if problem.no_answer:
            self.circuit.failed(text)
        else:
            self.circuit.succeeded()
        return UpstreamError(problem.status, problem.code, text, attempts - 1)

    def _dead(self, attempts: int) -> UpstreamError:
        message = (
            f"{self.circuit.reason}. Nothing more is sent to it. Check that the endpoint runs and that "
            f"{self.backend.key_variable or 'its address'} is right, then start again; what was saved stays"
        )
        return UpstreamError(503, "circuit_open", message, max(attempts - 1, 0))

    async def _once(self, endpoint: str, payload: bytes) -> Answer:
        try:
            async with self._post(endpoint, payload) as response:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._transport(error) from error
        self._check_status(response, data)
        return self._usable(endpoint, data)

    async def _begin(self, endpoint: str, payload: bytes) -> aiohttp.ClientResponse:
        data = b""
        try:
            response: aiohttp.ClientResponse = await self._post(endpoint, payload)
            if response.status != 200:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._transport(error) from error
        self._check_status(response, data)
        return response

    def _post(self, endpoint: str, payload: bytes) -> Any:
        return self._client.post(self._urls[endpoint], data=payload, headers=self._headers(), allow_redirects=False)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        key = self._keys.find(self.backend)
        if key is not None:
            self._redactor.add(key)
            bearer = self.backend.header == "Authorization"
            headers[self.backend.header] = f"Bearer {key}" if bearer else key
        elif self.backend.key_variable is not None:
            self.circuit.failed(f"backend {self.name!r} has no key: set {self.backend.key_variable}", at_once=True)
            raise self._dead(1)
        return headers

    def _transport(self, error: Exception) -> _AttemptError:
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return _AttemptError(502, "unreachable", "no connection to it")
        if isinstance(error, TimeoutError):
            return _AttemptError(504, "timeout", f"no answer within {self._limits.timeout_seconds:g} s")
        return _AttemptError(502, "cut", f"the connection broke ({type(error).__name__})")

    def _check_status(self, response: aiohttp.ClientResponse, data: bytes) -> None:
        status = response.status
        if status == 200:
            return
        said = self._said(data)
        if status in _DEAD_KEY or _error_code(data) in _NO_MONEY:
            reason = f"backend {self.name!r} ({self.backend.host}) refuses the key ({status}): {said}"
            self.circuit.failed(reason, at_once=True)
            raise self._dead(1)
        if status in _RETRIED:
            asked = retry_after_seconds(response.headers.get("retry-after"))
            raise _AttemptError(status, "upstream", f"status {status}: {said}", asked, no_answer=status >= 500)
        self.circuit.succeeded()
        text = f"backend {self.name!r} ({self.backend.host}) refuses the request ({status}): {said}"
        raise UpstreamError(status if 400 <= status < 500 else 502, "refused", text)

    def _said(self, data: bytes) -> str:
        try:
            body = json.loads(data)
            error = body.get("error", body) if isinstance(body, dict) else body
            text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
        except ValueError:
            text = data.decode("utf-8", "replace")
        return plain(self._redactor.text(text), 300)

    def _usable(self, endpoint: str, content: bytes) -> Answer:
        try:
            data = json.loads(content)
        except ValueError:
            raise _AttemptError(502, "bad_json", "the answer is no whole JSON", no_answer=False) from None
        needed = data.get(_NEEDED[endpoint]) if isinstance(data, dict) else None
        if not isinstance(needed, list) or not all(isinstance(part, dict) for part in needed):
            what = f"the answer has no {_NEEDED[endpoint]!r}"
            raise _AttemptError(502, "bad_shape", what, no_answer=False)
        if endpoint == "chat/completions" and not (needed and isinstance(needed[0].get("message"), dict)):
            raise _AttemptError(502, "bad_shape", "the answer has no message", no_answer=False)
        usage = data.get("usage")
        body = self._redactor.answer(content)
        return Answer("application/json", body, usage if isinstance(usage, dict) else {})

    async def events(self, stream: Stream, *, withhold_usage: bool) -> AsyncIterator[bytes]:
        """The events of a stream as they come; its usage is noted, and withheld from a caller that did not ask.

        Raises:
            UpstreamError: The stream broke off.
        """
        pending = b""
        whole = False
        try:
            async for chunk in stream.response.content.iter_any():
                pending += chunk.replace(b"\r\n", b"\n")
                while b"\n\n" in pending:
                    event, _, pending = pending.partition(b"\n\n")
                    whole = self._check_event(event) or whole
                    usage = _usage_of(event)
                    stream.usage = usage or stream.usage
                    if usage and withhold_usage and _is_bare_usage(event):
                        continue
                    piece = self._redactor.answer(event) + b"\n\n"
                    stream.body += piece
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            self.circuit.failed(f"backend {self.name!r} ({self.backend.host}) breaks off its streams")
            raise UpstreamError(502, "cut", f"backend {self.name!r} broke off its stream") from error
        finally:
            stream.response.release() if whole else stream.response.close()
        if not whole:
            raise UpstreamError(502, "cut", f"backend {self.name!r} ended its stream before its end mark")

    def _check_event(self, event: bytes) -> bool:
        """Whether an event of a stream is its end.

        Raises:
            UpstreamError: The event is an error, or no JSON.
        """
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if not lines:
            return False
        if lines == [b"[DONE]"]:
            return True
        data = _data_of(event)
        if not isinstance(data, dict):
            raise UpstreamError(502, "bad_json", f"backend {self.name!r} sent an event that is no JSON")
        if data.get("error"):
            said = plain(self._redactor.text(str(data["error"])), 300)
            raise UpstreamError(502, "upstream", f"backend {self.name!r} ended its stream with an error: {said}")
        return data.get("type") in _ENDED

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def _error_code(data: bytes) -> str | None:
    try:
        error = json.loads(data)["error"]
        code = error.get("code") or error.get("type")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return code if isinstance(code, str) else None


def _estimate(payload: bytes) -> int:
    return estimate_tokens(payload.decode())


def _data_of(event: bytes) -> Any:
    lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
    try:
        return json.loads(b"\n".join(lines)) if lines else None
    except ValueError:
        return None


def _usage_of(event: bytes) -> dict[str, Any] | None:
    if b'"usage"' not in event:
        return None
    data = _data_of(event)
    if isinstance(data, dict) and isinstance(data.get("response"), dict):
        data = data["response"]
    usage = data.get("usage") if isinstance(data, dict) else None
    return usage if isinstance(usage, dict) else None


def _is_bare_usage(event: bytes) -> bool:
    data = _data_of(event)
    return isinstance(data, dict) and data.get("choices") == []
