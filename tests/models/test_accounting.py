"""What is counted, with which numbers, and where it is booked."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memorydojo.models.accounting import Ledger, Tokens
from memorydojo.models.usage import Count, Usage, Waiting

CHAT = "chat/completions"


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# Tokens.


def test_the_usage_of_each_endpoint_is_read() -> None:
    chat = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    responses = {
        "input_tokens": 10,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    assert Tokens.of(chat, CHAT) == Tokens.of(responses, "responses") == Tokens(10, 4, 5, 2)
    assert Tokens.of({"prompt_tokens": 3, "total_tokens": 3}, "embeddings") == Tokens(3, 0, 0, 0)


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "1e400", "-1", "true", "null", '"7"', "7.5", "1e30", "[7]", "{}"])
def test_numbers_that_are_no_counts_are_not_believed(wrong: str) -> None:
    usage = json.loads(f'{{"prompt_tokens": {wrong}, "completion_tokens": 5}}')
    assert Tokens.of(usage, CHAT) == Tokens(known=False)
    details = json.loads(f'{{"cached_tokens": {wrong}}}')
    assert Tokens.of({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": details}, CHAT).cached == 0


@pytest.mark.parametrize(
    "usage",
    [None, {}, [], "x", {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 7}, {"total_tokens": 7}],
)
def test_an_answer_without_counts_says_nothing(usage: Any) -> None:
    assert Tokens.of(usage, CHAT) == Tokens(known=False)


def test_a_part_is_never_more_than_the_whole() -> None:
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 9},
        "completion_tokens_details": {"reasoning_tokens": 9},
    }
    assert Tokens.of(usage, CHAT) == Tokens(3, 3, 1, 1)


def test_an_estimate_of_nothing_is_nothing() -> None:
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    assert Tokens.of(usage, "embeddings", estimated=True) == Tokens()
    assert not Tokens.of(usage, "embeddings").known


# Calls without token counts.


def test_calls_without_usage_are_unmetered(make: Any, upstream: Any) -> None:
    gateway = make()
    gateway.ask()
    upstream.usage = lambda _: None
    gateway.ask()
    gateway.ask_stream()
    with gateway.client() as c:
        c.embeddings.create(model="m", input="x")
        c.responses.create(model="m", input="x")
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.unmetered, count.errors) == (5, 4, 0)
    assert count.cached_tokens == 3
    assert count.input_tokens == len(json.dumps(upstream.requests[0]["body"]["messages"]))


def test_an_odd_usage_is_unmetered_and_the_answer_passes(make: Any, upstream: Any) -> None:
    gateway = make()
    upstream.usage = lambda true: {**true, "prompt_tokens": float("inf")}
    assert gateway.ask().choices[0].message.content == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.unmetered, count.input_tokens, count.output_tokens) == (1, 1, 0, 0)


def test_a_replayed_call_without_usage_is_unmetered_too(make: Any, upstream: Any, tmp_path: Any) -> None:
    upstream.usage = lambda _: None
    make(store=tmp_path / "a.sqlite").ask()
    again = make(store=tmp_path / "a.sqlite", replay="only")
    again.ask()
    (count,) = again.counts("run-1")
    assert (count.calls, count.unmetered, count.replayed) == (1, 1, 1)


def test_simulated_calls_are_never_unmetered(make: Any) -> None:
    gateway = make()
    gateway.register("run-1", chat=lambda _: {}, embed=lambda texts: [[1.0]] * len(texts))
    with gateway.client() as c:
        c.embeddings.create(model="all-MiniLM-L6-v2-onnx-int8", input="")
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.unmetered, count.input_tokens) == (1, 0, 0)


def test_a_count_is_what_is_saved_of_it() -> None:
    count = Count(session=2, role="agent", model="m", calls=3, unmetered=1, input_tokens=7, seconds=1.5, retries=4)
    assert count.usage == Usage(role="agent", model="m", calls=3, unmetered=1, input_tokens=7)
    assert count.waiting == Waiting(role="agent", model="m", seconds=1.5, retries=4)
    assert set(Count.model_fields) == {"session", *Usage.model_fields, *Waiting.model_fields}


# Where a call is booked.


@pytest.fixture
def held(upstream: Any) -> threading.Event:
    """The server answers chats only when this is set."""
    event = threading.Event()

    def chat(_: Any) -> dict[str, Any]:
        assert event.wait(10)
        return {"role": "assistant", "content": "Hello"}

    upstream.chat = chat
    return event


@pytest.mark.parametrize("way", ["ask", "ask_stream"])
def test_a_call_belongs_to_the_session_in_which_it_began(
    make: Any, upstream: Any, held: threading.Event, limits: Any, way: str
) -> None:
    gateway = make(limits=limits.model_copy(update={"timeout_seconds": 10}))
    gateway.begin("run-1")
    gateway.session("run-1", 1)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(getattr(gateway, way))
        until(lambda: upstream.requests)
        gateway.session("run-1", 2)
        held.set()
        call.result()
    assert [(c.session, c.calls) for c in gateway.counts("run-1")] == [(1, 1)]
    getattr(gateway, way)()
    assert [(c.session, c.calls) for c in gateway.counts("run-1")] == [(1, 1), (2, 1)]


def test_a_failed_call_belongs_to_the_session_in_which_it_began(
    make: Any, upstream: Any, limits: Any, faults: Any
) -> None:
    gateway = make(limits=limits.model_copy(update={"timeout_seconds": 0.3, "retries": 0}))
    gateway.session("run-1", 1)
    upstream.faults = [faults.hang]
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(gateway.ask)
        until(lambda: upstream.requests)
        gateway.session("run-1", 2)
        assert call.exception() is not None
    assert [(c.session, c.errors) for c in gateway.counts("run-1")] == [(1, 1)]


def test_a_session_is_counted_when_all_its_calls_have_ended(
    make: Any, upstream: Any, held: threading.Event, limits: Any
) -> None:
    gateway = make(limits=limits.model_copy(update={"timeout_seconds": 10}))
    gateway.session("run-1", 1)
    with ThreadPoolExecutor(2) as threads:
        threads.submit(gateway.ask)
        until(lambda: upstream.requests)
        counts = threads.submit(gateway.settled, "run-1", 1)
        time.sleep(0.05)
        assert not counts.done()
        held.set()
        assert [(c.session, c.calls, c.unmetered) for c in counts.result()] == [(1, 1, 0)]


def test_a_call_that_does_not_end_is_an_error_of_its_session_and_is_booked_once() -> None:
    ledger = Ledger()
    ledger.session("r", 1)
    ticket = ledger.open("r", "memory")
    ticket.model = "m"
    ledger.settle("r", 1, seconds=0.01)
    ledger.session("r", 2)
    ledger.close(ticket, Tokens(5, 0, 5, 0))
    (count,) = ledger.counts("r")
    assert (count.session, count.model, count.calls, count.errors, count.unmetered) == (1, "m", 0, 1, 1)
    assert (count.input_tokens, count.output_tokens) == (0, 0)


def test_a_call_of_an_earlier_attempt_is_not_booked_to_the_next() -> None:
    ledger = Ledger()
    ledger.begin("r")
    ticket = ledger.open("r", "agent")
    ledger.begin("r")
    ledger.close(ticket, Tokens(5, 0, 5, 0))
    assert ledger.counts("r") == []
