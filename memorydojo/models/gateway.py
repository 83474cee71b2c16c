"""The gateway: one OpenAI-compatible endpoint on loopback that every model call of a run passes.

It is the one place for routes, limits, retries, the circuit, accounting, recorded answers and the redaction of keys. It
runs in this process, in a thread with a loop of its own, and so is gone when the process ends, however it ends.
"""

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from memorydojo.errors import ModelError
from memorydojo.models.access import Replay
from memorydojo.models.accounting import Ledger
from memorydojo.models.cache import ResponseStore
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.models.simulation import Chat, Embed
from memorydojo.models.usage import Count

if TYPE_CHECKING:
    import uvicorn

    from memorydojo.models.app import GatewayApp

_START_SECONDS = 30
_SETTLE_SECONDS = 10
_LOOK_SECONDS = 5


class Gateway:
    """All model calls of this process, behind one door.

    It starts when `url` is first asked for. Clients send `secret` as their API key; nobody else on the machine knows
    it.

    Args:
        models: Which models there are.
        keys: Keys that are not in the environment.
        store: File of recorded answers; None records nothing.
        replay: ``"off"`` asks endpoints and records; ``"prefer"`` answers from the store what it holds; ``"only"``
            makes everything that it does not hold an error.
    """

    def __init__(
        self,
        models: Models | None = None,
        *,
        keys: Keys | None = None,
        store: Path | None = None,
        replay: Replay = "off",
    ) -> None:
        if replay != "off" and store is None:
            raise ModelError(f"replay={replay!r} needs a store of recorded answers")
        self.models = models or Models()
        self.secret = secrets.token_urlsafe(32)
        self.ledger = Ledger()
        self._keys = keys or Keys()
        self._store = ResponseStore(store) if store is not None else None
        self._replay: Replay = replay
        self._lock = threading.Lock()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._app: GatewayApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0

    def url(self, *, run: str, role: str) -> str:
        """The base URL for one run and role; starts the gateway if it does not run.

        Raises:
            ModelError: It does not start.
        """
        self._start()
        return f"http://127.0.0.1:{self._port}/r/{quote(run, safe='')}/{quote(role, safe='')}/v1"

    def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        """Sends a request of this process to the gateway as if it came in at ``url``: status and body of the answer.

        Raises:
            ModelError: The gateway is closed.
            CancelledError: It is closed while the request is under way.
            ConnectionError: The answer broke off.
        """
        app, loop = self._app, self._loop
        if app is None or loop is None or loop.is_closed():
            raise ModelError("the model gateway is closed")
        answer = asyncio.run_coroutine_threadsafe(_asked(app, url, body, secret=self.secret), loop)
        while not answer.done():
            wait([answer], timeout=_LOOK_SECONDS)
            if loop.is_closed():  # what came in after its last turn is never answered
                answer.cancel()
        return answer.result()

    def register(self, run: str, *, chat: Chat, embed: Embed) -> None:
        """Says who answers the simulated models of a run."""
        self._start()
        assert self._app is not None
        self._app.simulated[run] = (chat, embed)

    def begin(self, run: str, *, prefix: str | None = None) -> None:
        """Starts a run anew: its counts, and the ordinals of its equal requests.

        Args:
            run: The run.
            prefix: The run whose recorded answers come before this one's own; None for nobody's.

        Raises:
            SavedRunError: The recorded answers cannot be written.
        """
        self._start()
        assert self._app is not None
        self._app.forget(run)
        self.ledger.begin(run)
        if self._store is not None and self._replay != "only":
            self._store.begin(run, prefix=prefix, replay=self._replay == "prefer")

    def link(self, run: str, prefix: str) -> None:
        """Notes that whoever replays ``run`` wants the answers recorded for ``prefix``."""
        if self._store is not None and self._replay == "off":
            self._store.begin(run, prefix=prefix, replay=False)

    def ordinals(self, run: str) -> dict[str, int]:
        """How many equal requests a run has made, by the hash of the request; see `resume`."""
        return self._app.ordinals(run) if self._app is not None else {}

    def resume(self, run: str, ordinals: Mapping[str, int]) -> None:
        """Lets a run count its equal requests on from where another one was."""
        self._start()
        assert self._app is not None
        self._app.set_ordinals(run, ordinals)

    def session(self, run: str, number: int) -> None:
        """Says which session of a run is under way, for the counts."""
        self.ledger.session(run, number)

    def counts(self, run: str) -> list[Count]:
        """What a run has asked so far, by session, role and model; what is under way is not in it."""
        return self.ledger.counts(run)

    def settled(self, run: str, session: int) -> list[Count]:
        """What a session has asked, for good; waits a little for what is still under way."""
        self.ledger.settle(run, session, seconds=_SETTLE_SECONDS)
        return [count for count in self.ledger.counts(run) if count.session == session]

    def end(self, run: str) -> None:
        """Forgets a run that asks nothing more, its counts included."""
        if self._app is not None:
            self._app.forget(run)
        self.ledger.end(run)

    def trouble(self, run: str) -> str | None:
        """Why the run cannot go on, if so: a dead endpoint or key, or an answer that is not recorded."""
        return self._app.trouble(run) if self._app is not None else None

    def reset(self) -> None:
        """Lets calls to endpoints that were given up through again."""
        if self._app is not None:
            self._app.reset()

    def _start(self) -> None:
        with self._lock:
            if self._server is not None:
                return
            import uvicorn

            from memorydojo.models.app import GatewayApp

            # With its protocol named: only then does asyncio send small answers at once (TCP_NODELAY).
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind(("127.0.0.1", 0))
            listener.listen(1024)
            self._port = int(listener.getsockname()[1])
            self._app = GatewayApp(
                self.models,
                secret=self.secret,
                keys=self._keys,
                ledger=self.ledger,
                store=self._store,
                replay=self._replay,
            )
            config = uvicorn.Config(
                self._app,
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                date_header=False,
            )
            self._server = uvicorn.Server(config)
            self._thread = threading.Thread(
                target=self._serve, args=(self._server, listener, self._app), name="memorydojo-gateway", daemon=True
            )
            self._thread.start()
            if not self._app.ready.wait(_START_SECONDS):
                raise ModelError("the model gateway did not start; is loopback (127.0.0.1) usable on this machine?")

    def _serve(self, server: "uvicorn.Server", listener: socket.socket, app: "GatewayApp") -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(app.ready.set)
            try:
                await server.serve(sockets=[listener])
            finally:
                await app.close()
                listener.close()

        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main())

    def close(self) -> None:
        """Stops the gateway. May be called more than once; it stops with the process anyway."""
        with self._lock:
            server, thread, self._server, self._thread = self._server, self._thread, None, None
        if server is not None and thread is not None:
            server.should_exit = True
            server.force_exit = True
            thread.join(timeout=10)
        if self._store is not None:
            self._store.close()
            self._store = None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return None
    return uvloop.new_event_loop


async def _asked(app: "GatewayApp", url: str, body: bytes, *, secret: str) -> tuple[int, bytes]:
    """The application's answer to one request, whole."""
    parts = urlsplit(url)
    scope = {
        "type": "http",
        "method": "POST",
        "path": parts.path,
        "raw_path": parts.path.encode("ascii"),
        "headers": [(b"authorization", f"Bearer {secret}".encode())],
    }
    status, answer = 500, b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await app(scope, receive, send)
    return status, answer
