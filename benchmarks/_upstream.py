"""An OpenAI-compatible endpoint in a process of its own that answers after a fixed latency."""

import asyncio
import json
import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


def _answer(path: str, body: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if path.endswith("embeddings"):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        rows = [{"object": "embedding", "index": i, "embedding": [1.0] + [0.0] * 7} for i in range(len(texts))]
        return {"object": "list", "data": rows, "model": "m", "usage": usage}
    message: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        call = {"id": "c1", "type": "function", "function": {"name": "get_iban", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _serve(listener: socket.socket, latency: float, embedding_latency: float, answer: Answer) -> None:
    import uvicorn

    known: dict[tuple[str, bytes], bytes] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        data = b""
        while True:
            message = await receive()
            data += message.get("body", b"")
            if not message.get("more_body"):
                break
        start = time.perf_counter()
        asked = (scope["path"], data)
        if asked not in known:  # what it takes to make an answer is paid once, and counts as part of the latency
            known[asked] = json.dumps(answer(scope["path"], json.loads(data))).encode()
        body = known[asked]
        wait = embedding_latency if scope["path"].endswith("embeddings") else latency
        await asyncio.sleep(wait - (time.perf_counter() - start))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


@contextmanager
def endpoint(latency: float, *, embedding_latency: float | None = None, answer: Answer = _answer) -> Iterator[str]:
    """The base URL of such an endpoint, which is gone afterwards.

    Args:
        latency: Seconds until an answer.
        embedding_latency: Seconds until an answer to a request for embeddings; the same if None.
        answer: Gives the answer's body for a path and a request's body; it must be the same for the same request.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    latencies = (latency, latency if embedding_latency is None else embedding_latency)
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(listener, *latencies, answer), daemon=True
    )
    process.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        process.terminate()
        process.join()
        listener.close()
