"""The gateway with the unmodified `openai` client on real sockets."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memorydojo.errors import SavedRunError
from memorydojo.models.cache import Recorded, ResponseStore
from memorydojo.models.config import Backend, Capabilities, Limits, Model, Models
from memorydojo.models.gateway import Gateway

KEY = "sk-very-secret-0123456789abcdef"
FAST = Limits(
    retries=2, first_backoff_seconds=0.001, max_backoff_seconds=0.002, timeout_seconds=0.5, connect_seconds=0.5
)
MESSAGES: list[Any] = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]

Make = Callable[..., Gateway]


@pytest.fixture
def make(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("TEST_KEY", KEY)
    made: list[Gateway] = []

    def build(
        *, capabilities: Capabilities | None = None, limits: Limits = FAST, model: Any = None, **more: Any
    ) -> Gateway:
        backend = Backend(base_url=upstream.base_url, key_env="TEST_KEY", limits=limits, capabilities=capabilities)
        models = Models(backends={"b": backend}, models={"m": Model(backend="b", **(model or {}))})
        made.append(Gateway(models, **more))
        return made[-1]

    yield build
    for gateway in made:
        gateway.close()


def client(gateway: Gateway, run: str = "run-1", role: str = "agent") -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.url(run=run, role=role), api_key=gateway.secret, max_retries=0)


def ask(gateway: Gateway, run: str = "run-1", **more: Any) -> Any:
    with client(gateway, run) as c:
        return c.chat.completions.create(**{"model": "m", "messages": MESSAGES, **more})


def ask_stream(gateway: Gateway, **more: Any) -> list[Any]:
    with client(gateway) as c:
        return list(c.chat.completions.create(**{"model": "m", "messages": MESSAGES, "stream": True, **more}))


def test_a_chat_call_passes_and_is_counted_as_the_server_counted_it(make: Make, upstream: Any) -> None:
    gateway = make()
    gateway.begin("run-1")
    gateway.session("run-1", 3)
    assert ask(gateway).choices[0].message.content == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.session, count.role, count.model, count.calls, count.errors) == (3, "agent", "m", 1, 0)
    assert (count.input_tokens, count.output_tokens) == (upstream.tokens["input"], upstream.tokens["output"])
    assert (count.cached_tokens, count.reasoning_tokens) == (3, 2)


def test_the_key_reaches_the_endpoint_and_the_secret_does_not(make: Make, upstream: Any) -> None:
    gateway = make()
    ask(gateway)
    headers = upstream.requests[0]["headers"]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert gateway.secret not in json.dumps(headers)


@pytest.mark.parametrize("packed", [True, False])
def test_embeddings_pass(make: Make, packed: bool) -> None:
    gateway = make()
    more: Any = {} if packed else {"encoding_format": "float"}
    with client(gateway, role="memory") as c:
        found = c.embeddings.create(model="m", input=["a", "b"], **more)
    assert [len(row.embedding) for row in found.data] == [8, 8]
    assert gateway.counts("run-1")[0].role == "memory"


def test_a_stream_passes_and_its_usage_is_counted_but_not_shown(make: Make, upstream: Any) -> None:
    gateway = make()
    chunks = ask_stream(gateway)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello"
    assert all(c.usage is None for c in chunks)
    assert gateway.counts("run-1")[0].input_tokens == upstream.tokens["input"]


def test_a_client_that_asks_for_the_usage_of_a_stream_gets_it(make: Make) -> None:
    chunks = ask_stream(make(), stream_options={"include_usage": True})
    assert chunks[-1].usage.total_tokens > 0


def test_the_models_are_listed(make: Make) -> None:
    with client(make()) as c:
        assert "m" in [model.id for model in c.models.list()]


def test_an_unknown_model_names_the_nearest(make: Make) -> None:
    with pytest.raises(openai.NotFoundError, match="unknown model 'mm'"):
        ask(make(), model="mm")


@pytest.mark.parametrize("path", ["completions", "files", "../../models", "chat/completions/x"])
def test_unknown_endpoints_are_refused(make: Make, path: str) -> None:
    gateway = make()
    url = f"{gateway.url(run='r', role='agent')}/{path}"
    answer = httpx.post(url, json={}, headers={"Authorization": f"Bearer {gateway.secret}"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_endpoint"


@pytest.mark.parametrize("secret", ["x", "wrong", KEY])
def test_another_user_without_the_secret_is_refused(make: Make, upstream: Any, secret: str) -> None:
    url = f"{make().url(run='r', role='agent')}/chat/completions"
    answer = httpx.post(url, json={"model": "m", "messages": []}, headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401
    assert upstream.requests == []


def test_run_and_role_survive_any_character(make: Make) -> None:
    gateway = make()
    with client(gateway, "a/b ?#%2F..", "x y") as c:
        c.chat.completions.create(model="m", messages=MESSAGES)
    (count,) = gateway.counts("a/b ?#%2F..")
    assert count.role == "x y"


# What is sent: declared capabilities, never found by trial.


def sent(upstream: Any) -> dict[str, Any]:
    body: dict[str, Any] = upstream.requests[-1]["body"]
    return body


def test_temperature_zero_is_really_sent(make: Make, upstream: Any) -> None:
    ask(make())
    assert sent(upstream)["temperature"] == 0.0
    ask(make(), temperature=0.1)
    assert sent(upstream)["temperature"] == 0.1


def test_a_model_that_refuses_parameters_is_not_sent_them(make: Make, upstream: Any) -> None:
    able = Capabilities(
        temperature=False, max_tokens="max_completion_tokens", system_role="developer", logprobs=False,
        parallel_tool_calls=False,
    )  # fmt: skip
    ask(make(capabilities=able), temperature=0.0, max_tokens=50, logprobs=True)
    body = sent(upstream)
    assert not {"temperature", "max_tokens", "logprobs", "parallel_tool_calls"} & set(body)
    assert body["max_completion_tokens"] == 50
    assert [m["role"] for m in body["messages"]] == ["developer", "user"]


def test_a_developer_message_becomes_a_system_message_where_that_is_the_role(make: Make, upstream: Any) -> None:
    ask(make(), messages=[{"role": "developer", "content": "x"}, MESSAGES[1]])
    assert [m["role"] for m in sent(upstream)["messages"]] == ["system", "user"]


def test_reasoning_effort_is_sent_where_declared(make: Make, upstream: Any) -> None:
    ask(make(capabilities=Capabilities(reasoning_effort=True), model={"reasoning_effort": "medium"}))
    assert sent(upstream)["reasoning_effort"] == "medium"
    ask(make(), reasoning_effort="high")
    assert "reasoning_effort" not in sent(upstream)


def test_the_upstream_name_of_a_model_is_sent(make: Make, upstream: Any) -> None:
    ask(make(model={"upstream": "vendor/model-7"}))
    assert sent(upstream)["model"] == "vendor/model-7"


# Faults.


def status(code: int, **headers: str) -> Any:
    return lambda handler: handler.send(b'{"error": {"message": "no"}}', status=code, **headers)


def body(data: bytes, **more: Any) -> Any:
    return lambda handler: handler.send(data, **more)


def hang(handler: Any) -> None:
    import time

    time.sleep(1.0)
    handler.close_connection = True


def cut(handler: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(2)


PASSING = {
    "429": status(429),
    "429 with Retry-After": status(429, Retry_After="0.01"),
    "429 with a date": status(429, Retry_After=formatdate(0, usegmt=True)),
    "500": status(500),
    "503": status(503),
    "timeout": hang,
    "cut connection": cut,
    "truncated JSON": body(b'{"choices": [{"mess'),
    "shorter than announced": body(b'{"choices"', length=500),
    "wrong JSON": body(b'["a"]'),
    "wrong shape": body(b'{"choices": []}'),
    "no message": body(b'{"choices": [{"index": 0}]}'),
    "HTML": body(b"<html>", content_type="text/html"),
}


@pytest.mark.parametrize("fault", list(PASSING))
def test_a_passing_fault_is_retried(make: Make, upstream: Any, fault: str) -> None:
    gateway = make()
    upstream.faults = [PASSING[fault]]
    assert ask(gateway).choices[0].message.content == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors) == (1, 1, 0)


@pytest.mark.parametrize("fault", [name for name in PASSING if name != "timeout"])
def test_a_lasting_fault_ends_as_an_error_with_a_reason(make: Make, upstream: Any, fault: str) -> None:
    gateway = make()
    upstream.faults = [PASSING[fault]] * 3
    with pytest.raises(openai.APIStatusError, match=r"backend 'b' \(127\.0\.0\.1:\d+\): .*, after 3 attempts"):
        ask(gateway)
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors) == (0, 2, 1)
    assert len(upstream.requests) == 3


def test_a_lasting_silence_ends_as_a_timeout(make: Make, upstream: Any) -> None:
    gateway = make(limits=FAST.model_copy(update={"timeout_seconds": 0.1, "retries": 1}))
    upstream.faults = [hang] * 2
    with pytest.raises(openai.APIStatusError, match=r"no answer within 0\.1 s, after 2 attempts"):
        ask(gateway)


def test_retry_after_is_waited_for(make: Make, upstream: Any) -> None:
    import time

    gateway = make()
    upstream.faults = [status(429, Retry_After="0.3")]
    start = time.monotonic()
    ask(gateway)
    assert time.monotonic() - start >= 0.3


def test_a_wait_that_is_too_long_is_not_waited_for(make: Make, upstream: Any) -> None:
    upstream.faults = [status(429, Retry_After="86400")]
    with pytest.raises(openai.RateLimitError, match="after 1 attempts"):
        ask(make())


def test_a_refused_request_is_not_retried(make: Make, upstream: Any) -> None:
    upstream.faults = [status(400)]
    with pytest.raises(openai.BadRequestError, match=r"refuses the request \(400\): no"):
        ask(make())
    assert len(upstream.requests) == 1


def test_a_stream_that_is_cut_breaks_for_the_client_and_is_not_recorded(
    make: Make, upstream: Any, tmp_path: Path
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    first = b'data: {"choices": [{"index": 0, "delta": {"content": "He"}}]}\n\n'
    upstream.faults = [body(first, content_type="text/event-stream", length=500)]
    with pytest.raises((openai.APIConnectionError, httpx.HTTPError)):
        ask_stream(gateway)
    assert gateway.counts("run-1")[0].errors == 1
    with_store = ResponseStore(tmp_path / "answers.sqlite")
    assert with_store.count("run-1") == 0
    with_store.close()


# The circuit.


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_stops_everything_at_once(make: Make, upstream: Any, code: int) -> None:
    gateway = make()
    upstream.faults = [status(code)]
    for _ in range(2):
        with pytest.raises(openai.APIStatusError, match=rf"refuses the key \({code}\).*TEST_KEY is right"):
            ask(gateway)
    assert len(upstream.requests) == 1
    assert "refuses the key" in str(gateway.trouble("run-1"))
    gateway.reset()
    assert ask(gateway).choices


def test_a_dead_endpoint_stops_everything_after_a_few_calls(make: Make, upstream: Any) -> None:
    gateway = make(limits=FAST.model_copy(update={"circuit_failures": 2, "retries": 0}))
    gateway.url(run="r", role="agent")
    upstream.close()
    for _ in range(3):
        with pytest.raises(openai.APIStatusError):
            ask(gateway)
    assert "no connection to it" in str(gateway.trouble("run-1"))


def test_a_missing_key_is_said_before_anything_is_sent(
    make: Make, upstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = make()
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(openai.APIStatusError, match="has no key: set TEST_KEY"):
        ask(gateway)
    assert upstream.requests == []


# Recorded answers.


def test_a_recorded_run_is_replayed_without_a_call(make: Make, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    said = iter(range(100))
    upstream.chat = lambda _: {"role": "assistant", "content": str(next(said))}
    first = make(store=store)
    answers = [ask(first).choices[0].message.content for _ in range(3)]
    counted = first.counts("run-1")
    upstream.close()
    again = make(store=store, replay="only")
    assert [ask(again).choices[0].message.content for _ in range(3)] == answers == ["0", "1", "2"]
    tokens = [(c.calls, c.input_tokens, c.output_tokens) for c in again.counts("run-1")]
    assert tokens == [(c.calls, c.input_tokens, c.output_tokens) for c in counted]
    assert again.counts("run-1")[0].replayed == 3
    again.begin("run-1")
    assert ask(again).choices[0].message.content == "0"


def test_a_recorded_stream_is_replayed_to_the_byte(make: Make, upstream: Any, tmp_path: Path) -> None:
    def raw(gateway: Gateway) -> bytes:
        return httpx.post(
            f"{gateway.url(run='r', role='agent')}/chat/completions",
            json={"model": "m", "messages": MESSAGES, "stream": True},
            headers={"Authorization": f"Bearer {gateway.secret}"},
        ).content

    store = tmp_path / "answers.sqlite"
    assert raw(make(store=store)) == raw(make(store=store, replay="only"))
    assert len(upstream.requests) == 1


def test_a_request_that_is_not_recorded_is_an_error_in_a_pure_replay(make: Make, upstream: Any, tmp_path: Path) -> None:
    gateway = make(store=tmp_path / "answers.sqlite", replay="only")
    with pytest.raises(openai.ConflictError, match="is not among the recorded answers of this run"):
        ask(gateway)
    assert upstream.requests == []
    assert "not among the recorded" in str(gateway.trouble("run-1"))
    assert gateway.trouble("run-2") is None


def test_preferring_the_store_asks_only_for_what_is_missing(make: Make, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    ask(make(store=store))
    gateway = make(store=store, replay="prefer")
    ask(gateway)
    ask(gateway, temperature=1.0)
    ask(gateway, run="run-2")
    assert len(upstream.requests) == 3


def test_parallel_runs_and_writers_lose_nothing(make: Make, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    gateways = [make(store=store), make(store=store)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: ask(gateways[n % 2], run=f"run-{n}"), range(64)))
    assert len(upstream.requests) == 64
    found = ResponseStore(store)
    assert sum(found.count(f"run-{n}") for n in range(64)) == 64
    found.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    store._database.execute("PRAGMA user_version = 99")
    store.close()
    with pytest.raises(SavedRunError, match="newer version; upgrade"):
        ResponseStore(tmp_path / "s.sqlite")


def test_something_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(SavedRunError, match="cannot open the store of answers"):
        ResponseStore(tmp_path / "s.sqlite")


def test_a_recorded_answer_is_read_back_as_it_was(tmp_path: Path) -> None:
    store = ResponseStore(tmp_path / "s.sqlite")
    answer = Recorded("text/plain", b"\x00\xff", {"prompt_tokens": 1})
    store.put("r", "q", 1, answer=answer)
    assert store.get("r", "q", 1) == answer
    assert store.get("r", "q", 2) is None
    store.close()


# Secrets.


def test_keys_appear_nowhere(make: Make, upstream: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = make(store=tmp_path / "answers.sqlite")
    leak = f"Incorrect API key provided: {KEY}"
    upstream.faults = [lambda handler: handler.send(json.dumps({"error": {"message": leak}}).encode(), status=400)]
    with pytest.raises(openai.BadRequestError, match=r"\[redacted\]") as error:
        ask(gateway)
    upstream.chat = lambda _: {"role": "assistant", "content": leak}
    said = ask(gateway).choices[0].message.content
    gateway.close()
    everything = [str(error.value), said, caplog.text, repr(gateway.models), gateway.models.model_dump_json()]
    everything += [p.read_bytes().decode("latin-1") for p in tmp_path.iterdir()]
    assert not any(KEY in text for text in everything)


# The simulator behind the same door.


def test_simulated_models_answer_through_the_gateway(make: Make) -> None:
    gateway = make()
    gateway.register(
        "run-1", chat=lambda _: {"role": "assistant", "content": "12345"}, embed=lambda t: [[1.0, 0.0]] * len(t)
    )
    assert ask(gateway, model="simulated").choices[0].message.content == "12345"
    chunks = ask_stream(gateway, model="simulated")
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "12345"
    with client(gateway) as c:
        assert c.embeddings.create(model="all-MiniLM-L6-v2-onnx-int8", input="x").data[0].embedding == [1.0, 0.0]
    by_model = {c.model: c for c in gateway.counts("run-1")}
    assert by_model["simulated"].output_tokens == 4
    assert by_model["all-MiniLM-L6-v2-onnx-int8"].input_tokens == 1


def test_a_simulator_that_nobody_registered_is_named(make: Make) -> None:
    with pytest.raises(openai.NotFoundError, match="no simulated models are registered"):
        ask(make(), model="simulated")


def test_the_gateway_is_gone_when_closed_and_may_be_closed_twice(make: Make) -> None:
    gateway = make()
    url = gateway.url(run="r", role="x")
    gateway.close()
    gateway.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")
    assert re.match(r"http://127\.0\.0\.1:\d+/", url)


def test_an_empty_account_stops_everything_at_once(make: Make, upstream: Any) -> None:
    gateway = make()
    empty = b'{"error": {"message": "no money", "code": "insufficient_quota"}}'
    upstream.faults = [body(empty, status=429)]
    with pytest.raises(openai.APIStatusError, match="no money"):
        ask(gateway)
    assert len(upstream.requests) == 1
    assert "no money" in str(gateway.trouble("run-1"))


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "overloaded"}}',
        b'data: {"choices": [{"ind',
        b'data: {"choices": [{"index": 0, "delta": {"content": "data: [DONE]"}}]}',
    ],
)
def test_a_stream_with_a_broken_event_is_an_error_and_not_recorded(
    make: Make, upstream: Any, tmp_path: Path, event: bytes
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    end = b"" if b'index": 0' in event else b"data: [DONE]\n\n"
    upstream.faults = [body(event + b"\n\n" + end, content_type="text/event-stream")]
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        ask_stream(gateway)
    assert (gateway.counts("run-1")[0].calls, gateway.counts("run-1")[0].errors) == (0, 1)
    store = ResponseStore(tmp_path / "answers.sqlite")
    assert store.count("run-1") == 0
    store.close()
