"""What goes wrong upstream: retried, or an error with a reason, never a half answer."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memorydojo.models.cache import ResponseStore


def test_a_passing_fault_is_retried(make: Any, upstream: Any, passing_fault: Any) -> None:
    gateway = make()
    upstream.faults = [passing_fault]
    assert gateway.ask().choices[0].message.content == "Hello"
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors) == (1, 1, 0)


def test_a_lasting_fault_ends_as_an_error_with_a_reason(make: Any, upstream: Any, passing_fault: Any) -> None:
    gateway = make()
    upstream.faults = [passing_fault] * 3
    with pytest.raises(openai.APIStatusError, match=r"backend 'b' \(127\.0\.0\.1:\d+\): .*, after 3 attempts"):
        gateway.ask()
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors) == (0, 2, 1)
    assert len(upstream.requests) == 3


def test_a_lasting_silence_ends_as_a_timeout(make: Any, upstream: Any, faults: Any, limits: Any) -> None:
    gateway = make(limits=limits.model_copy(update={"timeout_seconds": 0.1, "retries": 1}))
    upstream.faults = [faults.hang] * 2
    with pytest.raises(openai.APIStatusError, match=r"no answer within 0\.1 s, after 2 attempts"):
        gateway.ask()


def test_retry_after_is_waited_for(make: Any, upstream: Any, faults: Any) -> None:
    gateway = make()
    upstream.faults = [faults.status(429, Retry_After="0.3")]
    start = time.monotonic()
    gateway.ask()
    assert time.monotonic() - start >= 0.3


def test_a_wait_that_is_too_long_is_not_waited_for(make: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [faults.status(429, Retry_After="86400")]
    with pytest.raises(openai.RateLimitError, match="after 1 attempts"):
        make().ask()


def test_a_refused_request_is_not_retried(make: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [faults.status(400)]
    with pytest.raises(openai.BadRequestError, match=r"refuses the request \(400\): no"):
        make().ask()
    assert len(upstream.requests) == 1


def test_a_stream_that_is_cut_breaks_for_the_client_and_is_not_recorded(
    make: Any, upstream: Any, tmp_path: Path, faults: Any
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    first = b'data: {"choices": [{"index": 0, "delta": {"content": "He"}}]}\n\n'
    upstream.faults = [faults.body(first, content_type="text/event-stream", length=500)]
    with pytest.raises((openai.APIConnectionError, httpx.HTTPError)):
        gateway.ask_stream()
    assert gateway.counts("run-1")[0].errors == 1
    with closing(ResponseStore(tmp_path / "answers.sqlite")) as store:
        assert store.count("run-1") == 0


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "overloaded"}}',
        b'data: {"choices": [{"ind',
        b'data: {"choices": [{"index": 0, "delta": {"content": "data: [DONE]"}}]}',
    ],
)
def test_a_stream_with_a_broken_event_is_an_error_and_not_recorded(
    make: Any, upstream: Any, tmp_path: Path, event: bytes, faults: Any
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    end = b"" if b'index": 0' in event else b"data: [DONE]\n\n"
    upstream.faults = [faults.body(event + b"\n\n" + end, content_type="text/event-stream")]
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        gateway.ask_stream()
    assert (gateway.counts("run-1")[0].calls, gateway.counts("run-1")[0].errors) == (0, 1)
    with closing(ResponseStore(tmp_path / "answers.sqlite")) as store:
        assert store.count("run-1") == 0
