"""The endpoint ``/responses``, and the asynchronous client, with the unmodified `openai` client on real sockets."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memorydojo.models.cache import ResponseStore
from memorydojo.models.config import Capabilities

INPUT: list[Any] = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]


def respond(gateway: Any, **more: Any) -> Any:
    with gateway.client() as c:
        return c.responses.create(**{"model": "m", "input": INPUT, **more})


def respond_stream(gateway: Any, **more: Any) -> list[Any]:
    with gateway.client() as c:
        return list(c.responses.create(**{"model": "m", "input": INPUT, "stream": True, **more}))


def test_a_response_passes_and_is_counted_as_the_server_counted_it(make: Any, upstream: Any) -> None:
    gateway = make()
    assert respond(gateway).output_text == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors, count.unmetered) == (1, 0, 0)
    assert (count.input_tokens, count.output_tokens) == (upstream.tokens["input"], upstream.tokens["output"])
    assert (count.cached_tokens, count.reasoning_tokens) == (3, 2)


def test_a_streamed_response_passes_and_is_counted_as_the_server_counted_it(make: Any, upstream: Any) -> None:
    gateway = make()
    events = respond_stream(gateway)
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Hello"
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.total_tokens == upstream.tokens["input"] + upstream.tokens["output"]
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors, count.unmetered) == (1, 0, 0)
    assert (count.input_tokens, count.output_tokens) == (upstream.tokens["input"], upstream.tokens["output"])


def test_a_response_is_asked_for_by_declared_capabilities(make: Any, upstream: Any) -> None:
    able = Capabilities(
        reasoning_effort=True, system_role="developer", logprobs=False, json_schema=False, parallel_tool_calls=False
    )
    gateway = make(
        capabilities=able,
        model={"upstream": "vendor/m", "reasoning_effort": "low", "max_tokens": 9, "temperature": 0.5},
    )
    schema = {"type": "json_schema", "name": "n", "schema": {}}
    respond(gateway, top_logprobs=2, parallel_tool_calls=True, text={"format": schema, "verbosity": "low"})
    body = upstream.requests[-1]["body"]
    assert (body["model"], body["temperature"], body["max_output_tokens"]) == ("vendor/m", 0.5, 9)
    assert body["reasoning"] == {"effort": "low"}
    assert body["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert [m["role"] for m in body["input"]] == ["developer", "user"]
    assert not {"top_logprobs", "parallel_tool_calls"} & set(body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_recorded_response_is_replayed_to_the_byte(make: Any, upstream: Any, tmp_path: Path, stream: bool) -> None:
    store = tmp_path / "answers.sqlite"
    body = {"model": "m", "input": INPUT, "stream": stream}
    first, again = make(store=store), make(store=store, replay="only")
    answer = first.raw("responses", json=body)
    assert answer.status_code == 200
    assert again.raw("responses", json=body).content == answer.content
    assert len(upstream.requests) == 1
    (told,), (retold,) = first.counts("run-1"), again.counts("run-1")
    assert retold.usage == told.usage


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"object": "response", "status": "completed"}, "the answer has no 'output'"),
        ({"output": "Hello"}, "the answer has no 'output'"),
        ({"output": [], "status": "failed", "error": {"message": "busy"}}, "the answer is an error: busy"),
        ({"output": [], "status": "failed", "error": None}, "the answer has the status 'failed'"),
    ],
)
def test_a_malformed_response_is_retried_and_then_an_error(
    make: Any, upstream: Any, faults: Any, answer: Any, message: str
) -> None:
    gateway = make()
    upstream.faults = [faults.body(json.dumps(answer).encode())]
    assert respond(gateway).output_text == "Hello"
    upstream.faults = [faults.body(json.dumps(answer).encode())] * 3
    with pytest.raises(openai.APIStatusError, match=f"{message}, after 3 attempts"):
        respond(gateway)
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors, count.retries) == (1, 1, 3)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "overloaded", "message": "busy", "param": None, "sequence_number": 1},
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "busy"}}},
        {"type": "response.output_text.delta", "delta": "response.completed"},
    ],
)
def test_a_streamed_response_that_fails_is_an_error_and_not_recorded(
    make: Any, upstream: Any, faults: Any, tmp_path: Path, event: Any
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    data = b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())
    upstream.faults = [faults.body(data, content_type="text/event-stream")]
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        respond_stream(gateway)
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors) == (0, 1)
    with closing(ResponseStore(tmp_path / "answers.sqlite")) as store:
        assert store.count("run-1") == 0


def test_the_simulator_answers_no_responses(make: Any) -> None:
    gateway = make()
    gateway.register("run-1", chat=lambda _: {}, embed=lambda _: [])
    with pytest.raises(openai.BadRequestError, match="the simulator answers no responses; use chat/completions"):
        respond(gateway, model="simulated")


# The asynchronous client.


def test_the_asynchronous_client_asks_many_at_once_and_all_are_counted(make: Any, upstream: Any) -> None:
    gateway = make()
    upstream.latency = 0.02

    async def work() -> list[str]:
        url = gateway.url(run="run-1", role="memory")
        async with openai.AsyncOpenAI(base_url=url, api_key=gateway.secret, max_retries=0) as c:

            async def chat(n: int) -> str:
                messages: Any = [{"role": "user", "content": f"{n:02}"}]
                return str((await c.chat.completions.create(model="m", messages=messages)).choices[0].message.content)

            async def stream(n: int) -> str:
                messages: Any = [{"role": "user", "content": f"{n:02}"}]
                chunks = await c.chat.completions.create(model="m", messages=messages, stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])

            async def embed(n: int) -> str:
                found = await c.embeddings.create(model="m", input=[f"{n:02}", "b"])
                return str(len(found.data))

            async def response(n: int) -> str:
                return (await c.responses.create(model="m", input=f"{n:02}")).output_text

            ways = (chat, stream, embed, response)
            return await asyncio.gather(*(way(n) for n in range(8) for way in ways))

    upstream.chat = lambda body: {
        "role": "assistant",
        "content": body["messages"][-1]["content"] if "messages" in body else body["input"],
    }
    said = asyncio.run(work())
    assert said == [text for n in range(8) for text in (f"{n:02}", f"{n:02}", "2", f"{n:02}")]
    (count,) = gateway.counts("run-1")
    assert (count.role, count.calls, count.errors, count.unmetered) == ("memory", 32, 0, 0)
    assert (count.input_tokens, count.output_tokens) == (upstream.tokens["input"], upstream.tokens["output"])


def test_the_asynchronous_client_gets_errors_in_their_form_and_does_not_ask_again(
    make: Any, upstream: Any, faults: Any
) -> None:
    gateway = make()
    upstream.faults = [faults.status(503)] * 3

    async def work() -> None:
        url = gateway.url(run="run-1", role="memory")
        # Its own retries are left on: the gateway's header has to hold it back.
        async with openai.AsyncOpenAI(base_url=url, api_key=gateway.secret) as c:
            with pytest.raises(openai.InternalServerError, match="status 503: no, after 3 attempts"):
                await c.responses.create(model="m", input="Hi")

    asyncio.run(work())
    assert len(upstream.requests) == 3
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors, count.retries) == (0, 1, 2)
