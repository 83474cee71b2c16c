"""What all tests share. The network is off but for loopback (see pyproject.toml)."""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import settings

# The same examples on every machine, however slow it is. HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

Fault = Callable[["_Handler"], None]


class Faults:
    """What a server can do wrong. A fault for `ScriptedUpstream.faults`, or a maker of one."""

    @staticmethod
    def status(code: int, **headers: Any) -> Fault:
        return lambda handler: handler.send(b'{"error": {"message": "no"}}', status=code, **headers)

    @staticmethod
    def body(data: bytes, **more: Any) -> Fault:
        return lambda handler: handler.send(data, **more)

    @staticmethod
    def content(text: str | None) -> Fault:
        message = {"role": "assistant", "content": text}
        data = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
        return Faults.body(json.dumps(data).encode())

    @staticmethod
    def cut(handler: "_Handler") -> None:
        handler.close_connection = True
        handler.connection.shutdown(2)

    @staticmethod
    def hang(handler: "_Handler") -> None:
        """Says nothing until the other side has had enough."""
        handler.close_connection = True
        handler.connection.settimeout(10)
        handler.connection.recv(1)


#: Faults of a call that another attempt may be spared.
PASSING: dict[str, Fault] = {
    "429": Faults.status(429),
    "429 with Retry-After": Faults.status(429, Retry_After="0.01"),
    "429 with a date": Faults.status(429, Retry_After=formatdate(0, usegmt=True)),
    "500": Faults.status(500),
    "503": Faults.status(503),
    "timeout": Faults.hang,
    "cut connection": Faults.cut,
    "truncated JSON": Faults.body(b'{"choices": [{"mess'),
    "shorter than announced": Faults.body(b'{"choices"', length=500),
    "wrong JSON": Faults.body(b'["a"]'),
    "wrong shape": Faults.body(b'{"choices": []}'),
    "no message": Faults.body(b'{"choices": [{"index": 0}]}'),
    "HTML": Faults.body(b"<html>", content_type="text/html"),
}
#: Answers that are whole, but hold nothing that a memory system can use.
CONTENT: dict[str, Fault] = {
    "empty content": Faults.content(""),
    "no content": Faults.content(None),
    "content of a wrong shape": Faults.content('{"facts": ["x"]}'),
    "content cut off": Faults.content('{"memory": [{"text": "User li'),
}


@pytest.fixture
def faults() -> type[Faults]:
    return Faults


@pytest.fixture(params=PASSING)
def passing_fault(request: pytest.FixtureRequest) -> Fault:
    return PASSING[request.param]


@pytest.fixture(params=[*PASSING, *CONTENT])
def named_fault(request: pytest.FixtureRequest) -> tuple[str, Fault]:
    return request.param, {**PASSING, **CONTENT}[request.param]


class ScriptedUpstream:
    """An OpenAI-compatible server on loopback that answers by script, and counts for itself.

    Attributes:
        requests: Everything that was received: endpoint, headers, body.
        faults: Faults for the next requests, first in first out; None lets one through.
        chat: Makes the assistant message of a request.
        usage: Makes the usage that an answer states of the true one; None leaves it out.
        latency: Seconds before each answer.
        tokens: What was counted, by kind.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.faults: list[Fault | None] = []
        self.chat: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {"role": "assistant", "content": "Hello"}
        self.usage: Callable[[dict[str, Any]], Any] = lambda true: true
        self.latency = 0.0
        self.tokens = {"chat_calls": 0, "embedding_calls": 0, "input": 0, "output": 0}
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"upstream": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, request: dict[str, Any]) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            return self.faults.pop(0) if self.faults else None

    def count(self, kind: str, sent: int, made: int) -> None:
        with self._lock:
            self.tokens[f"{kind}_calls"] += 1
            self.tokens["input"] += sent
            self.tokens["output"] += made


class JudgeModel:
    """A judge's model by script: reads the fenced texts of a question and answers by a rule; obeys nobody.

    Attributes:
        answers: What it says of the texts by name, as a pair of evidence and answer.
        asked: The texts by name of every question, in order.
    """

    def __init__(self, answers: Callable[[dict[str, str]], tuple[str, str]]) -> None:
        self.answers = answers
        self.asked: list[dict[str, str]] = []

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = self.fenced(body)[0]
        self.asked.append(texts)
        evidence, answer = self.answers(texts)
        return {"role": "assistant", "content": json.dumps({"evidence": evidence, "answer": answer})}

    @staticmethod
    def fenced(body: dict[str, Any]) -> tuple[dict[str, str], str]:
        """The texts between fences, and all that a model reads outside of them."""
        texts: dict[str, str] = {}
        system, user, *rest = (message["content"] for message in body["messages"])
        found = re.match(r"The mark of this message is ([0-9a-f]+)\.", user)
        assert found is not None
        block = re.compile(rf"^<<<(\w+) {found[1]}\n(.*?)\n\1 {found[1]}>>>$", re.DOTALL | re.MULTILINE)
        outside = "\n".join([system, block.sub(lambda m: texts.update({m[1]: m[2]}) or "", user), *rest])
        return texts, outside


@pytest.fixture
def judge_model() -> type[JudgeModel]:
    return JudgeModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: ScriptedUpstream

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        endpoint = self.path.split("/v1/", 1)[1]
        fault = self.upstream.take({"endpoint": endpoint, "headers": dict(self.headers), "body": body})
        time.sleep(self.upstream.latency)
        if fault is not None:
            return fault(self)
        if endpoint.startswith("embeddings"):
            return self.send(json.dumps(self.embeddings(body)).encode())
        if endpoint.startswith("responses"):
            answer = self.response(body)
            data = _response_events(answer) if body.get("stream") else json.dumps(answer).encode()
        else:
            answer = self.completion(body)
            data = _events(answer, body) if body.get("stream") else json.dumps(answer).encode()
        return self.send(data, content_type="text/event-stream" if body.get("stream") else "application/json")

    def stated(self, answer: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        said = self.upstream.usage(usage)
        return answer if said is None else {**answer, "usage": said}

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        message = self.upstream.chat(body)
        sent, made = len(json.dumps(body["messages"])), len(json.dumps(message))
        self.upstream.count("chat", sent, made)
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        usage = {
            "prompt_tokens": sent,
            "completion_tokens": made,
            "total_tokens": sent + made,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
        return self.stated(answer, usage)

    def response(self, body: dict[str, Any]) -> dict[str, Any]:
        message = self.upstream.chat(body)
        sent, made = len(json.dumps(body["input"])), len(json.dumps(message))
        self.upstream.count("chat", sent, made)
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        said = {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [text]}
        answer = {
            "id": "x",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "completed",
            "error": None,
            "output": [said],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        usage = {
            "input_tokens": sent,
            "output_tokens": made,
            "total_tokens": sent + made,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 2},
        }
        return self.stated(answer, usage)

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        sent = sum(map(len, texts))
        self.upstream.count("embedding", sent, 0)
        rows = [{"object": "embedding", "index": i, "embedding": _vector(t)} for i, t in enumerate(texts)]
        answer = {"object": "list", "data": rows, "model": body["model"]}
        return self.stated(answer, {"prompt_tokens": sent, "total_tokens": sent})

    def send(
        self,
        body: bytes,
        *,
        status: int = 200,
        content_type: str = "application/json",
        length: int | None = None,
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True


def _vector(text: str) -> list[float]:
    raw = [1.0 + (sum(text.encode()) * (i + 1)) % 97 for i in range(8)]
    norm = sum(x * x for x in raw) ** 0.5
    return [x / norm for x in raw]


def _events(answer: dict[str, Any], body: dict[str, Any]) -> bytes:
    message = answer["choices"][0]["message"]
    chunk = {**answer, "object": "chat.completion.chunk", "usage": None}
    chunks = [{**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}]
    chunks.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**chunk, "choices": [], "usage": answer.get("usage")})
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def _response_events(answer: dict[str, Any]) -> bytes:
    part = {"item_id": "m", "output_index": 0, "content_index": 0, "logprobs": []}
    events = [
        {"type": "response.created", "response": {**answer, "status": "in_progress", "output": [], "usage": None}},
        *(
            {"type": "response.output_text.delta", **part, "delta": letter}
            for letter in answer["output"][0]["content"][0]["text"]
        ),
        {"type": "response.completed", "response": answer},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in numbered)


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    server = ScriptedUpstream()
    yield server
    server.close()
