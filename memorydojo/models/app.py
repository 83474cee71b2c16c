"""The gateway's ASGI application: paths, secrets, recorded answers, simulated answers, and the way upstream."""

import asyncio
import hmac
import json
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from memorydojo._display import plain
from memorydojo.errors import MemoryDojoError, MissingPackageError, SavedRunError, UnknownNameError
from memorydojo.models.access import Replay
from memorydojo.models.accounting import Ledger, Ticket, Tokens
from memorydojo.models.cache import Recorded, ResponseStore, fingerprint
from memorydojo.models.config import Models, Route
from memorydojo.models.keys import Keys, Redactor
from memorydojo.models.shaping import ENDPOINTS, shape
from memorydojo.models.simulation import Chat, Embed, simulated_answer
from memorydojo.models.upstream import UpstreamError

if TYPE_CHECKING:
    from memorydojo.models.upstream import Upstream

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_JSON = "application/json"
_EVENTS = "text/event-stream"
_MOST_BYTES = 256 * 2**20


class _Call:
    """One request of a client, on its way.

    Raises:
        RecursionError: The request is nested too deeply.
    """

    def __init__(self, run: str, ticket: Ticket, endpoint: str, request: dict[str, Any], route: Route) -> None:
        self.run, self.ticket, self.endpoint, self.request, self.route = run, ticket, endpoint, request, route
        self.body = shape(endpoint, request, route)
        self.key = fingerprint(endpoint, ticket.role, self.body)
        self.ordinal = 0


class GatewayApp:
    """Answers clients. What the gateway calls may be called from anywhere; all else belongs to its own event loop."""

    def __init__(
        self,
        models: Models,
        *,
        secret: str,
        keys: Keys,
        ledger: Ledger,
        store: ResponseStore | None,
        replay: Replay,
    ) -> None:
        self.ready = threading.Event()
        self.simulated: dict[str, tuple[Chat, Embed]] = {}
        self._models, self._secret, self._keys = models, secret, keys
        self._ledger, self._store, self._replay = ledger, store, replay
        self._redactor = Redactor([secret])
        self._upstreams: dict[str, Upstream] = {}
        self._lock = threading.Lock()
        self._ordinals: dict[str, Counter[str]] = {}
        self._misses: dict[str, str] = {}
        self._store_problem: str | None = None
        # One thread writes to the store: SQLite takes one writer at a time anyway.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="memorydojo-answers")
        self._workers = ThreadPoolExecutor(8, thread_name_prefix="memorydojo-simulated")

    def forget(self, run: str) -> None:
        """Forgets a run's ordinals and misses."""
        with self._lock:
            self._ordinals.pop(run, None)
            self._misses.pop(run, None)

    def ordinals(self, run: str) -> dict[str, int]:
        """How many equal requests a run has made, by the hash of the request."""
        with self._lock:
            return dict(self._ordinals.get(run, {}))

    def set_ordinals(self, run: str, ordinals: Mapping[str, int]) -> None:
        """Lets a run count its equal requests on from these numbers."""
        with self._lock:
            self._ordinals[run] = Counter(ordinals)

    def trouble(self, run: str) -> str | None:
        """Why a run cannot go on, or None."""
        with self._lock:
            miss = self._misses.get(run)
        dead = [u.circuit.reason for u in list(self._upstreams.values()) if u.circuit.reason is not None]
        return miss or self._store_problem or next(iter(dead), None)

    def reset(self) -> None:
        """Closes all circuits, so that calls go through again."""
        self._store_problem = None
        for upstream in list(self._upstreams.values()):
            upstream.circuit.reset()

    async def close(self) -> None:
        """Closes all connections."""
        for upstream in self._upstreams.values():
            await upstream.close()
        self._disk.shutdown(wait=True)
        self._workers.shutdown(wait=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. However it ends, it is counted, and the client gets an answer in OpenAI's form."""
        begun = False
        ticket = None

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            self._check_secret(scope)
            run, role, endpoint = _parse_path(scope)
            if endpoint == "models" and scope["method"] == "GET":
                return await self._list(noted)
            ticket = self._ledger.open(run, role)
            await self._answer(await self._read_call(run, ticket, endpoint, scope=scope, receive=receive), noted)
        except Exception as error:
            problem = self._problem(error)
            if ticket is not None:
                self._ledger.close(ticket, None, retries=problem.retries)
            if begun:
                # Without its last chunk the response is visibly broken.
                raise ConnectionAbortedError from None
            await _send_error(send, problem)

    async def _list(self, send: Send) -> None:
        listed = [{"id": n, "object": "model", "created": 0, "owned_by": "memorydojo"} for n in self._models.names()]
        await _send(send, 200, _JSON, json.dumps({"object": "list", "data": listed}).encode())

    async def _read_call(self, run: str, ticket: Ticket, endpoint: str, *, scope: Scope, receive: Receive) -> _Call:
        if endpoint not in ENDPOINTS or scope["method"] != "POST":
            served = f"the gateway serves {', '.join(ENDPOINTS)} and models, nothing else"
            raise UpstreamError(404, "unknown_endpoint", served)
        try:
            request = _parse_body(await _read(receive))
            try:
                route = self._models.route(str(request.get("model", "")))
            except UnknownNameError as error:
                raise UpstreamError(404, "model_not_found", plain(str(error), 400)) from error
            ticket.model = route.name
            return _Call(run, ticket, endpoint, request, route)
        except RecursionError:
            raise UpstreamError(400, "bad_request", "the request is nested too deeply") from None

    def _problem(self, error: Exception) -> UpstreamError:
        if isinstance(error, UpstreamError):
            return error
        if isinstance(error, MemoryDojoError):
            return UpstreamError(500, "memorydojo", plain(self._redactor.text(str(error)), 600))
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "nowhere"
        said = plain(self._redactor.text(f"{type(error).__name__}: {error}"), 300)
        message = f"the model gateway met an error that it does not foresee ({said}; {place}). Please report it"
        return UpstreamError(500, "gateway", message)

    def _check_secret(self, scope: Scope) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ") or headers.get(b"api-key", b"")
        if not hmac.compare_digest(given, self._secret.encode()):
            raise UpstreamError(401, "wrong_secret", "this gateway serves only the process that started it")

    async def _answer(self, call: _Call, send: Send) -> None:
        if call.route.backend.kind == "simulated":
            return await self._simulate(call, send)
        if self._store_problem is not None:
            raise UpstreamError(503, "store", self._store_problem)
        call.ordinal = self._next_ordinal(call)
        if self._replay != "off" and await self._replayed(call, send):
            return None
        if call.body.get("stream") is True:
            return await self._stream(call, send)
        answer = await self._upstream(call.route).call(call.endpoint, call.body)
        await self._record(call, Recorded(answer.content_type, answer.body, answer.usage))
        self._count(call, answer.usage, retries=answer.retries)
        return await _send(send, 200, answer.content_type, answer.body)

    def _next_ordinal(self, call: _Call) -> int:
        with self._lock:
            seen = self._ordinals.setdefault(call.run, Counter())
            seen[call.key] += 1
            return seen[call.key]

    async def _replayed(self, call: _Call, send: Send) -> bool:
        assert self._store is not None
        found = await self._on_disk(self._store.get, call.run, call.key, call.ordinal)
        if found is not None:
            self._count(call, found.usage, replayed=True)
            await _send(send, 200, found.content_type, found.body)
            return True
        if self._replay == "only":
            message = self._missing(call, recorded=await self._on_disk(self._store.count, call.run))
            with self._lock:
                self._misses.setdefault(call.run, message)
            raise UpstreamError(409, "replay_miss", message)
        return False

    def _missing(self, call: _Call, *, recorded: int) -> str:
        """What to say of an answer that a pure replay needs and the store does not hold."""
        assert self._store is not None
        place = plain(str(self._store.path))
        if not recorded:
            return (
                f"replay: {place} holds no answers of this run. Give the file that it was recorded in (answers), "
                "or use replay='prefer' to ask the endpoint"
            )
        return (
            f"replay: request {call.ordinal} of its kind by {call.ticket.role!r} to {call.route.name!r} "
            f"({call.endpoint}) is not among the {recorded} recorded answers of this run in {place}. "
            "The run asks something else than the recorded one did; use replay='prefer' to ask the endpoint"
        )

    async def _on_disk(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._disk, function, *arguments)
        except SavedRunError as error:
            # Answers that nobody can record would be paid for and lost, so nothing more is asked.
            self._store_problem = f"{error}. No more models are asked; what was saved stays"
            raise UpstreamError(503, "store", self._store_problem) from error

    async def _record(self, call: _Call, answer: Recorded) -> None:
        if self._store is not None:
            store = self._store
            await self._on_disk(lambda: store.put(call.run, call.key, call.ordinal, answer=answer))

    async def _stream(self, call: _Call, send: Send) -> None:
        upstream = self._upstream(call.route)
        options = call.request.get("stream_options")
        asked = isinstance(options, Mapping) and options.get("include_usage") is True
        withhold = call.endpoint == "chat/completions" and not asked
        end = b""
        async with upstream.open_stream(call.endpoint, call.body) as stream:
            try:
                await _send_head(send, 200, _EVENTS)
                async for event in upstream.events(stream, withhold_usage=withhold):
                    if stream.whole:
                        end += event  # clients read no further than this, so it waits until the answer is recorded
                    else:
                        await send({"type": "http.response.body", "body": event, "more_body": True})
            except UpstreamError as error:
                error.retries = stream.retries
                raise
        await self._record(call, Recorded(_EVENTS, bytes(stream.body), stream.usage))
        self._count(call, stream.usage, retries=stream.retries)
        await send({"type": "http.response.body", "body": end, "more_body": False})

    async def _simulate(self, call: _Call, send: Send) -> None:
        if call.run not in self.simulated:
            raise UpstreamError(404, "no_simulator", "no simulated models are registered for this run")
        chat, embed = self.simulated[call.run]
        loop = asyncio.get_running_loop()
        try:
            content_type, body, usage = await loop.run_in_executor(
                self._workers, lambda: simulated_answer(call.endpoint, call.request, chat=chat, embed=embed)
            )
        except MissingPackageError as error:
            # No fact about the session: the run stops, and runs again once the package is there.
            with self._lock:
                self._misses.setdefault(call.run, str(error))
            raise UpstreamError(503, "missing_package", plain(str(error), 600)) from error
        except MemoryDojoError as error:
            raise UpstreamError(400, "simulator", plain(str(error), 600)) from error
        self._count(call, usage, estimated=True)
        await _send(send, 200, content_type, body)

    def _upstream(self, route: Route) -> "Upstream":
        from memorydojo.models.upstream import Upstream

        if route.backend_name not in self._upstreams:
            self._upstreams[route.backend_name] = Upstream(
                route.backend_name, route.backend, keys=self._keys, redactor=self._redactor
            )
        return self._upstreams[route.backend_name]

    def _count(
        self,
        call: _Call,
        usage: Mapping[str, Any],
        *,
        retries: int = 0,
        replayed: bool = False,
        estimated: bool = False,
    ) -> None:
        tokens = Tokens.of(usage, call.endpoint, estimated=estimated)
        self._ledger.close(call.ticket, tokens, retries=retries, replayed=replayed)


def _parse_path(scope: Scope) -> tuple[str, str, str]:
    raw = scope.get("raw_path") or scope["path"].encode()
    parts = raw.partition(b"?")[0].split(b"/")
    if len(parts) >= 6 and parts[1] == b"r" and parts[4] == b"v1":
        run, role = (unquote_to_bytes(part).decode("utf-8", "replace") for part in parts[2:4])
        return run, role, b"/".join(parts[5:]).decode("ascii", "replace")
    raise UpstreamError(404, "unknown_endpoint", "the gateway's paths begin with /r/<run>/<role>/v1")


def _parse_body(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except ValueError:
        raise UpstreamError(400, "bad_request", "the request is no JSON") from None
    if not isinstance(request, dict):
        raise UpstreamError(400, "bad_request", "the request is no JSON object")
    return request


async def _read(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise UpstreamError(400, "bad_request", "the client went away")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _MOST_BYTES:
            raise UpstreamError(413, "too_large", f"the request has more than {_MOST_BYTES} bytes")
        if not message.get("more_body"):
            return b"".join(parts)


async def _send_head(send: Send, status: int, content_type: str, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", content_type.encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _send(send: Send, status: int, content_type: str, body: bytes) -> None:
    await _send_head(send, status, content_type, (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.body", "body": body})


async def _send_error(send: Send, error: UpstreamError) -> None:
    detail = {"message": error.message, "type": "memorydojo_gateway", "code": error.code, "param": None}
    body = json.dumps({"error": detail}).encode()
    # The gateway has retried already; OpenAI's client heeds this header.
    length = (b"content-length", str(len(body)).encode())
    await _send_head(send, error.status, _JSON, length, (b"x-should-retry", b"false"))
    await send({"type": "http.response.body", "body": body})
