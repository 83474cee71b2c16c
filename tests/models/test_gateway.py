"""The gateway with the unmodified `openai` client on real sockets."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest


def test_a_chat_call_passes_and_is_counted_as_the_server_counted_it(make: Any, upstream: Any) -> None:
    gateway = make()
    gateway.begin("run-1")
    gateway.session("run-1", 3)
    assert gateway.ask().choices[0].message.content == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.session, count.role, count.model, count.calls, count.errors) == (3, "agent", "m", 1, 0)
    assert (count.input_tokens, count.output_tokens) == (upstream.tokens["input"], upstream.tokens["output"])
    assert (count.cached_tokens, count.reasoning_tokens) == (3, 2)


def test_the_key_reaches_the_endpoint_and_the_secret_does_not(make: Any, upstream: Any, key: str) -> None:
    gateway = make()
    gateway.ask()
    headers = upstream.requests[0]["headers"]
    assert headers["Authorization"] == f"Bearer {key}"
    assert gateway.secret not in json.dumps(headers)


@pytest.mark.parametrize("packed", [True, False])
def test_embeddings_pass(make: Any, packed: bool) -> None:
    gateway = make()
    more: Any = {} if packed else {"encoding_format": "float"}
    with gateway.client(role="memory") as c:
        found = c.embeddings.create(model="m", input=["a", "b"], **more)
    assert [len(row.embedding) for row in found.data] == [8, 8]
    assert gateway.counts("run-1")[0].role == "memory"


def test_a_stream_passes_and_its_usage_is_counted_but_not_shown(make: Any, upstream: Any) -> None:
    gateway = make()
    chunks = gateway.ask_stream()
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Hello"
    assert all(c.usage is None for c in chunks)
    assert gateway.counts("run-1")[0].input_tokens == upstream.tokens["input"]


def test_a_client_that_asks_for_the_usage_of_a_stream_gets_it(make: Any) -> None:
    chunks = make().ask_stream(stream_options={"include_usage": True})
    assert chunks[-1].usage.total_tokens > 0


def test_the_models_are_listed(make: Any) -> None:
    with make().client() as c:
        assert "m" in [model.id for model in c.models.list()]


def test_an_unknown_model_names_the_nearest(make: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="unknown model 'mm'"):
        make().ask(model="mm")


@pytest.mark.parametrize("path", ["completions", "files", "../../models", "chat/completions/x"])
def test_unknown_endpoints_are_refused(make: Any, path: str) -> None:
    gateway = make()
    answer = gateway.raw(path, json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_endpoint"


@pytest.mark.parametrize("secret", ["x", "wrong", "sk-very-secret"])
def test_another_user_without_the_secret_is_refused(make: Any, upstream: Any, secret: str) -> None:
    answer = make().raw(secret=secret, json={"model": "m", "messages": []})
    assert answer.status_code == 401
    assert upstream.requests == []


def test_run_and_role_survive_any_character(make: Any) -> None:
    gateway = make()
    with gateway.client("a/b ?#%2F..", "x y") as c:
        c.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    (count,) = gateway.counts("a/b ?#%2F..")
    assert count.role == "x y"


def test_simulated_models_answer_through_the_gateway(make: Any) -> None:
    gateway = make()
    gateway.register(
        "run-1", chat=lambda _: {"role": "assistant", "content": "12345"}, embed=lambda t: [[1.0, 0.0]] * len(t)
    )
    assert gateway.ask(model="simulated").choices[0].message.content == "12345"
    chunks = gateway.ask_stream(model="simulated")
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "12345"
    with gateway.client() as c:
        assert c.embeddings.create(model="all-MiniLM-L6-v2-onnx-int8", input="x").data[0].embedding == [1.0, 0.0]
    by_model = {c.model: c for c in gateway.counts("run-1")}
    assert by_model["simulated"].output_tokens == 4
    assert by_model["all-MiniLM-L6-v2-onnx-int8"].input_tokens == 1


def test_a_simulator_that_nobody_registered_is_named(make: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="no simulated models are registered"):
        make().ask(model="simulated")


def test_the_gateway_is_gone_when_closed_and_may_be_closed_twice(make: Any) -> None:
    gateway = make()
    url = gateway.url(run="r", role="x")
    gateway.close()
    gateway.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")
    assert re.match(r"http://127\.0\.0\.1:\d+/", url)


def test_keys_appear_nowhere(
    make: Any, upstream: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = make(store=tmp_path / "answers.sqlite")
    leak = f"Incorrect API key provided: {key}"
    upstream.faults = [lambda handler: handler.send(json.dumps({"error": {"message": leak}}).encode(), status=400)]
    with pytest.raises(openai.BadRequestError, match=r"\[redacted\]") as error:
        gateway.ask()
    upstream.chat = lambda _: {"role": "assistant", "content": leak}
    said = gateway.ask().choices[0].message.content
    gateway.close()
    everything = [str(error.value), said, caplog.text, repr(gateway.models), gateway.models.model_dump_json()]
    everything += [p.read_bytes().decode("latin-1") for p in tmp_path.iterdir()]
    assert not any(key in text for text in everything)
