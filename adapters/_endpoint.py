"""An OpenAI-compatible endpoint on loopback for memory systems that run in a process of their own.

Such a system cannot be handed a Python object to ask; it wants an address. This endpoint is that address: it answers
from the `MemoryModels` of one memory and keeps what went wrong, because the systems behind it tend to swallow it.
"""

import base64
import hmac
import json
import secrets
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from memorydojo.errors import MemoryDojoError, ModelError
from memorydojo.models.base import MemoryModels

Shape = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]

_MOST_BYTES = 256 * 2**20


class ModelEndpoint:
    """Serves ``chat/completions`` and ``embeddings`` from the models of one memory.

    The secret is part of the address, so that the system's server needs no key of its own for it. It is gone with the
    process, because its threads are daemons.

    Args:
        models: Who answers.
        shape: Changes a chat request before it is asked, for example to put in the session's date.
        check: Is given request and answer, and raises `ModelError` if the system would silently make nothing of it.
    """

    def __init__(self, models: MemoryModels, *, shape: Shape | None = None, check: Check | None = None) -> None:
        self._models, self._shape, self._check = models, shape, check
        #: Vectors by text that are given out without asking, while a memory is made anew from what it was before.
        self.known_vectors: Mapping[str, list[float]] = {}
        self._problems: list[str] = []
        self._lock = threading.Lock()
        self._secret = secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Handler", (_Handler,), {"endpoint": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/{self._secret}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="memorydojo-endpoint", daemon=True
        )
        self._thread.start()

    def problems(self) -> list[str]:
        """What went wrong since the last call, oldest first."""
        with self._lock:
            found, self._problems = self._problems, []
        return found

    def close(self) -> None:
        """Stops serving. May be called more than once."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body for one request."""
        parts = path.partition("?")[0].split("/", 3)
        if len(parts) != 4 or not hmac.compare_digest(parts[1].encode(), self._secret.encode()) or parts[2] != "v1":
            return 401, _error("this endpoint serves only the memory that started it")
        try:
            request = json.loads(body)
            if parts[3] == "chat/completions":
                return 200, json.dumps(self._chat(request)).encode()
            if parts[3] == "embeddings":
                return 200, json.dumps(self._embed(request)).encode()
        except MemoryDojoError as error:
            self._note(str(error))
            return 400, _error(str(error))
        except Exception as error:  # a defect here or in the models must not pass for an answer
            self._note(f"{type(error).__name__}: {error}")
            return 500, _error("the models failed")
        return 404, _error("this endpoint serves chat/completions and embeddings, nothing else")

    def _chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("stream") is True:
            raise ModelError("this endpoint does not stream; ask without 'stream'")
        asked = self._shape(request) if self._shape is not None else request
        answer = self._models.chat(asked)
        if self._check is not None:
            self._check(asked, answer)
        return {"id": "chatcmpl-memorydojo", "created": 0, "object": "chat.completion", **answer}

    def _embed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        given = request.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ModelError("the embedding model takes a text or a list of texts")
        known = self.known_vectors
        unknown = [text for text in texts if text not in known]
        asked = iter(self._models.embed(unknown) if unknown else [])
        vectors = [known[text] if text in known else next(asked, []) for text in texts]
        wanted = [self._models.embedding_dimensions] * len(texts)
        if [len(vector) for vector in vectors] != wanted:
            raise ModelError(
                f"the embedding model gave {len(vectors)} vectors of lengths {sorted({len(v) for v in vectors})} for "
                f"{len(texts)} texts, not of {self._models.embedding_dimensions}; check that model and dimensions "
                "belong together"
            )
        packed = request.get("encoding_format") == "base64"
        rows = [
            {"object": "embedding", "index": i, "embedding": _packed(vector) if packed else vector}
            for i, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}  # counted by the models themselves
        return {"object": "list", "data": rows, "model": self._models.embedding_model, "usage": usage}

    def _note(self, problem: str) -> None:
        with self._lock:
            self._problems.append(problem)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: ClassVar[ModelEndpoint]

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the requests are the memory's own."""

    def do_POST(self) -> None:
        """Answers one request."""
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = _MOST_BYTES + 1
        if not 0 <= length <= _MOST_BYTES:
            self.close_connection = True
            return self._send(413, _error(f"the request has no length or more than {_MOST_BYTES} bytes"))
        status, body = self.endpoint.answer(self.path, self.rfile.read(length))
        return self._send(status, body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # Whoever answers has retried already; OpenAI's client heeds this header.
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(body)


def _error(message: str) -> bytes:
    detail = {"message": message, "type": "memorydojo_endpoint", "code": None, "param": None}
    return json.dumps({"error": detail}).encode()


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
