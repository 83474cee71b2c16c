"""Simulated answers in the form of OpenAI's endpoints."""

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memorydojo.errors import ModelError
from memorydojo.models.accounting import simulated_usage

Chat = Callable[[Mapping[str, Any]], dict[str, Any]]
Embed = Callable[[Sequence[str]], list[list[float]]]


def simulated_answer(
    endpoint: str, request: Mapping[str, Any], *, chat: Chat, embed: Embed
) -> tuple[str, bytes, dict[str, Any]]:
    """Content type, body and usage of a simulated answer.

    Raises:
        ModelError: There is no simulated model for such a request.
    """
    if endpoint == "embeddings":
        answer = _embedding(request, embed)
    elif endpoint == "chat/completions":
        message = chat(request)
        answer = _completion(request, message)
        if request.get("stream") is True:
            return "text/event-stream", _events(answer, message), answer["usage"]
    else:
        raise ModelError(f"the simulator answers no {endpoint}; use chat/completions")
    return "application/json", json.dumps(answer).encode(), answer["usage"]


def _completion(request: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    said = json.dumps(message.get("tool_calls")) if message.get("tool_calls") else str(message.get("content") or "")
    return {
        "id": "chatcmpl-simulated",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": dict(message), "finish_reason": reason, "logprobs": None}],
        "usage": simulated_usage("chat/completions", request, said),
    }


def _events(answer: dict[str, Any], message: Mapping[str, Any]) -> bytes:
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls") or [])]
    delta = {**message, "tool_calls": calls} if calls else dict(message)
    reason = answer["choices"][0]["finish_reason"]
    chunk = {**answer, "object": "chat.completion.chunk", "usage": None}
    chunks = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def _embedding(request: Mapping[str, Any], embed: Embed) -> dict[str, Any]:
    given = request.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ModelError("the simulated embedding model takes a text or a list of texts")
    vectors = embed(texts)
    if len(vectors) != len(texts):
        raise ModelError(f"the simulated embedding model gave {len(vectors)} vectors for {len(texts)} texts")
    packed = request.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": i, "embedding": _packed(vector) if packed else vector}
        for i, vector in enumerate(vectors)
    ]
    usage = simulated_usage("embeddings", request, "")
    return {"object": "list", "data": rows, "model": request["model"], "usage": usage}


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
