"""Calls to one endpoint: slots, retries, the circuit, and answers that can be used."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError
from memorydojo.models.accounting import Tokens
from memorydojo.models.config import Backend, Limits
from memorydojo.models.keys import Keys, Redactor
from memorydojo.models.limits import Booking, Circuit, Throttle, retry_after_seconds, wait_before_retry
from memorydojo.models.shaping import ENDPOINTS, shape_problem
from memorydojo.models.tokens import estimate_tokens

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_DEAD_KEY = frozenset({401, 403})
_DONE = b"[DONE]"
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
    """A stream that has begun.

    Attributes:
        response: Where it comes from.
        booking: What it is charged for.
        retries: Attempts beyond the first.
        body: All of it that was passed on.
        usage: What it says it cost.
        whole: Whether its end mark has been read.
    """

    response: aiohttp.ClientResponse
    booking: Booking
    retries: int = 0
    body: bytearray = field(default_factory=bytearray)
    usage: dict[str, Any] = field(default_factory=dict)
    whole: bool = False


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
        self._urls = {name: f"{backend.address}/{name}{params}" for name in ENDPOINTS}

    @property
    def _limits(self) -> Limits:
        return self.backend.limits

    async def call(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        """Asks until there is an answer that can be used.

        Raises:
            UpstreamError: There is none: the endpoint refuses, is dead, or keeps failing.
        """
        async with AsyncExitStack() as held:
            payload = json.dumps(body).encode()
            answer: Answer
            answer, retries = await self._attempts(lambda b: self._once(endpoint, body, payload, b), payload, held)
            answer.retries = retries
            return answer

    @asynccontextmanager
    async def open_stream(self, endpoint: str, body: Mapping[str, Any]) -> AsyncIterator[Stream]:
        """Asks until a stream begins, and holds its slot until it is left.

        What goes wrong later is not asked again: part of it was read already.

        Raises:
            UpstreamError: None begins.
        """
        async with AsyncExitStack() as held:
            payload = json.dumps(body).encode()
            stream: Stream
            stream, retries = await self._attempts(lambda b: self._begin(endpoint, payload, b), payload, held)
            stream.retries = retries
            try:
                yield stream
            finally:
                stream.response.release() if stream.whole else stream.response.close()
                _charge(stream.booking, stream.usage, endpoint)

    async def _attempts(
        self, once: Callable[[Booking], Awaitable[Any]], payload: bytes, held: AsyncExitStack
    ) -> tuple[Any, int]:
        """The first result, and how many attempts failed before it. Its slot is left to ``held``."""
        attempt = 0
        while True:
            try:
                async with AsyncExitStack() as slot:
                    booking = await slot.enter_async_context(self._throttle.slot(_estimate(payload)))
                    if self.circuit.reason is not None:
                        raise self._dead()
                    attempt += 1
                    result = await once(booking)
                    held.push_async_exit(slot.pop_all())
            except _AttemptError as problem:
                wait = wait_before_retry(attempt, self._limits, problem.retry_after)
                asked = problem.retry_after or 0.0
                if attempt > self._limits.retries or asked > self._limits.max_retry_after_seconds:
                    raise self._given_up(problem, attempt) from None
                await asyncio.sleep(wait)
            except UpstreamError as error:
                error.retries = max(attempt - 1, 0)
                raise
            else:
                return result, attempt - 1

    def _given_up(self, problem: _AttemptError, attempts: int) -> UpstreamError:
        text = f"backend {self.name!r} ({self.backend.host}): {problem.message}, after {attempts} attempts"
        if problem.no_answer:
            self.circuit.failed(text)
        else:
            self.circuit.succeeded()
        return UpstreamError(problem.status, problem.code, text, attempts - 1)

    def _dead(self) -> UpstreamError:
        message = (
            f"{self.circuit.reason}. Nothing more is sent to it. Check that the endpoint runs and that "
            f"{self.backend.key_variable or 'its address'} is right, then start again; what was saved stays"
        )
        return UpstreamError(503, "circuit_open", message)

    async def _once(self, endpoint: str, body: Mapping[str, Any], payload: bytes, booking: Booking) -> Answer:
        try:
            async with self._post(endpoint, payload) as response:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._transport(error) from error
        self._check_status(response, data)
        booking.used = booking.estimate  # from here on the endpoint has done its work, whatever becomes of it
        answer = self._usable(endpoint, body, data)
        _charge(booking, answer.usage, endpoint)
        self.circuit.succeeded()
        return answer

    async def _begin(self, endpoint: str, payload: bytes, booking: Booking) -> Stream:
        data = b""
        try:
            response: aiohttp.ClientResponse = await self._post(endpoint, payload)
            if response.status != 200:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._transport(error) from error
        self._check_status(response, data)
        booking.used = booking.estimate
        return Stream(response, booking)

    def _post(self, endpoint: str, payload: bytes) -> Any:
        return self._client.post(self._urls[endpoint], data=payload, headers=self._headers(), allow_redirects=False)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        try:
            key = self._keys.find(self.backend)
        except InvalidInputError as error:
            self.circuit.failed(f"backend {self.name!r}: {error}", at_once=True)
            raise self._dead() from None
        if key is not None:
            self._redactor.add(key)
            bearer = self.backend.header == "Authorization"
            headers[self.backend.header] = f"Bearer {key}" if bearer else key
        elif self.backend.key_variable is not None:
            self.circuit.failed(f"backend {self.name!r} has no key: set {self.backend.key_variable}", at_once=True)
            raise self._dead()
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
            raise self._dead()
        if status in _RETRIED:
            asked = retry_after_seconds(response.headers.get("retry-after"))
            raise _AttemptError(status, "upstream", f"status {status}: {said}", asked, no_answer=status >= 500)
        self.circuit.succeeded()
        text = f"backend {self.name!r} ({self.backend.host}) refuses the request ({status}): {said}"
        raise UpstreamError(status if 400 <= status < 500 else 502, "refused", text)

    def _said(self, data: bytes) -> str:
        try:
            body = _parse(data)
        except ValueError:
            return self._shown(data.decode("utf-8", "replace"))
        return self._shown(body.get("error", body) if isinstance(body, dict) else body)

    def _shown(self, error: Any) -> str:
        """The message of an endpoint's error, without secrets and short enough to show."""
        text = str(error.get("message") or error) if isinstance(error, dict) else str(error)
        return plain(self._redactor.text(text), 300)

    def _usable(self, endpoint: str, request: Mapping[str, Any], content: bytes) -> Answer:
        try:
            data = _parse(content)
        except ValueError:
            raise _AttemptError(502, "bad_json", "the answer is no whole JSON", no_answer=False) from None
        if isinstance(data, dict) and data.get("error"):
            what = f"the answer is an error: {self._shown(data['error'])}"
            raise _AttemptError(502, "upstream", what, no_answer=False)
        problem = shape_problem(endpoint, request, data)
        if problem is not None:
            raise _AttemptError(502, "bad_shape", problem, no_answer=False)
        usage = data.get("usage")
        body = self._redactor.answer(content)
        return Answer("application/json", body, usage if isinstance(usage, dict) else {})

    async def events(self, stream: Stream, *, withhold_usage: bool) -> AsyncIterator[bytes]:
        """The events of a stream as they come; its usage is noted, and withheld from a caller that did not ask.

        Raises:
            UpstreamError: The stream broke off.
        """
        pending = b""
        try:
            async for chunk in stream.response.content.iter_any():
                pending += chunk.replace(b"\r\n", b"\n")
                while b"\n\n" in pending:
                    event, _, pending = pending.partition(b"\n\n")
                    data = self._event_data(event)
                    stream.whole = stream.whole or _ends(data)
                    usage = _usage_of(data)
                    stream.usage = usage or stream.usage
                    if usage and withhold_usage and isinstance(data, dict) and data.get("choices") == []:
                        continue
                    piece = self._redactor.answer(event) + b"\n\n"
                    stream.body += piece
                    yield piece
        except (aiohttp.ClientError, TimeoutError) as error:
            self.circuit.failed(f"backend {self.name!r} ({self.backend.host}) breaks off its streams")
            raise UpstreamError(502, "cut", f"backend {self.name!r} broke off its stream") from error
        self.circuit.succeeded()
        if not stream.whole:
            raise UpstreamError(502, "cut", f"backend {self.name!r} ended its stream before its end mark")

    def _event_data(self, event: bytes) -> Any:
        """What an event of a stream carries: None for a comment, `_DONE`, or a JSON object.

        Raises:
            UpstreamError: The event is an error, or no JSON.
        """
        lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
        if not lines:
            return None
        if lines == [_DONE]:
            return _DONE
        try:
            data = _parse(b"\n".join(lines))
        except ValueError:
            data = None
        if not isinstance(data, dict):
            self.circuit.succeeded()
            raise UpstreamError(502, "bad_json", f"backend {self.name!r} sent an event that is no JSON")
        problem = _event_error(data)
        if problem is not None:
            self.circuit.succeeded()
            said = f"backend {self.name!r} ended its stream with an error: {self._shown(problem)}"
            raise UpstreamError(502, "upstream", said)
        return data

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def _parse(data: bytes) -> Any:
    """Reads JSON that somebody else wrote.

    Raises:
        ValueError: It is none, or is nested too deeply to be read.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _error_code(data: bytes) -> str | None:
    try:
        error = _parse(data)["error"]
        code = error.get("code") or error.get("type")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return code if isinstance(code, str) else None


def _estimate(payload: bytes) -> int:
    return estimate_tokens(payload.decode())


def _charge(booking: Booking, usage: Mapping[str, Any], endpoint: str) -> None:
    """Sets a booking to what the answer says it cost, if it does."""
    tokens = Tokens.of(usage, endpoint)
    if tokens.known:
        booking.used = tokens.total


def _ends(data: Any) -> bool:
    return data == _DONE or (isinstance(data, dict) and data.get("type") in _ENDED)


def _event_error(data: Mapping[str, Any]) -> Any:
    """The error that an event reports: in chat's form, or in one of the two of responses."""
    if data.get("type") == "error":
        return data.get("error") or data
    response = data.get("response")
    if data.get("type") == "response.failed":
        return (response.get("error") if isinstance(response, Mapping) else None) or data
    return data.get("error") or None


def _usage_of(data: Any) -> dict[str, Any] | None:
    if isinstance(data, dict) and isinstance(data.get("response"), dict):
        data = data["response"]
    usage = data.get("usage") if isinstance(data, dict) else None
    return usage if isinstance(usage, dict) else None
