"""How hard an endpoint is asked: on a clock that only moves when somebody waits, and on real sockets."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from memorydojo.models.config import Limits
from memorydojo.models.limits import BURST_SECONDS, Bucket, Throttle


class Clock:
    """Seconds that pass only by waiting."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """For callers one after another: whoever waits moves the clock."""
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def throttle(clock: Clock, **limits: Any) -> Throttle:
    return Throttle(Limits(**limits), clock=clock, sleep=clock.sleep)


async def spend(throttle: Throttle, *calls: tuple[float, float]) -> None:
    """Calls one after another: what each is estimated to use, and what it uses."""
    for estimate, used in calls:
        async with throttle.slot(estimate) as booking:
            booking.used = used


def begins(throttle: Throttle, clock: Clock, calls: int, *, tokens: float = 0, used: float = 0) -> list[float]:
    """When calls begin that are made as fast as they are let."""

    async def work() -> list[float]:
        found = []
        for _ in range(calls):
            async with throttle.slot(tokens) as booking:
                booking.used = used
                found.append(clock.now - 1000)
        return found

    found: list[float] = run(work())
    return found


# Buckets.


def test_a_bucket_without_a_rate_never_waits(clock: Clock) -> None:
    assert Bucket(None, clock=clock).take(10**9) == 0


@pytest.mark.parametrize(("per_minute", "burst"), [(600, 30), (60, 3), (20, 1), (1, 1), (0.5, 1)])
def test_the_burst_is_a_few_seconds_worth_and_at_least_one(clock: Clock, per_minute: float, burst: int) -> None:
    assert BURST_SECONDS == 3
    bucket = Bucket(per_minute, clock=clock)
    assert [bucket.take(1) for _ in range(burst)] == [0] * burst
    assert bucket.take(1) == pytest.approx(60 / per_minute)


def test_an_idle_hour_saves_up_no_more_than_the_burst(clock: Clock) -> None:
    bucket = Bucket(60, clock=clock)
    clock.now += 3600
    assert [bucket.take(1) for _ in range(5)] == pytest.approx([0, 0, 0, 1, 2])


def test_what_is_given_back_is_no_more_than_the_burst(clock: Clock) -> None:
    bucket = Bucket(60, clock=clock)
    bucket.take(-1000)
    assert [bucket.take(1) for _ in range(4)] == pytest.approx([0, 0, 0, 1])


def test_a_debt_is_paid_by_waiting(clock: Clock) -> None:
    bucket = Bucket(60, clock=clock)
    assert bucket.take(13) == pytest.approx(10)
    clock.now += 4
    assert bucket.take(1) == pytest.approx(7)


# The throttle.


@pytest.mark.parametrize("per_minute", [600, 60, 7])
def test_no_minute_holds_more_requests_than_the_rate_and_the_burst(clock: Clock, per_minute: int) -> None:
    found = begins(throttle(clock, requests_per_minute=per_minute), clock, 4 * per_minute)
    most = max(sum(start <= t < start + 60 for t in found) for start in found)
    assert most <= per_minute + max(1, per_minute // 20)
    assert found[-1] == pytest.approx(4 * 60, abs=60 / per_minute * 2 + BURST_SECONDS)


def test_tokens_are_let_through_at_their_rate(clock: Clock) -> None:
    found = begins(throttle(clock, tokens_per_minute=6000), clock, 5, tokens=500, used=500)
    assert found == pytest.approx([2, 7, 12, 17, 22])


def test_a_call_is_charged_what_it_used_and_not_its_estimate(clock: Clock) -> None:
    dear = throttle(clock, tokens_per_minute=6000)
    run(spend(dear, (100, 800)))  # of the burst of 300, 500 too much
    assert begins(dear, clock, 1) == pytest.approx([5])


def test_the_estimate_of_a_failed_attempt_is_given_back(clock: Clock) -> None:
    tokens = throttle(clock, tokens_per_minute=6000)

    async def fail() -> None:
        with pytest.raises(OSError, match="cut"):
            async with tokens.slot(300):
                raise OSError("cut")

    run(fail())
    assert begins(tokens, clock, 1, tokens=300) == [0]


def test_the_request_of_a_failed_attempt_was_one(clock: Clock) -> None:
    assert begins(throttle(clock, requests_per_minute=20), clock, 3) == pytest.approx([0, 3, 6])


def test_calls_that_wait_for_a_slot_save_up_no_rate(clock: Clock) -> None:
    one = throttle(clock, requests_per_minute=60, concurrency=1)
    found: list[float] = []

    async def call(seconds: float) -> None:
        async with one.slot(0):
            found.append(clock.now - 1000)
            clock.now += seconds
            await asyncio.sleep(0)

    async def work() -> None:
        await asyncio.gather(call(100), *(call(0) for _ in range(5)))

    run(work())
    assert found == pytest.approx([0, 100, 100, 100, 101, 102])


# Through the gateway. The endpoint's throttle is looked at; what is charged cannot be seen from outside.


def charged(gateway: Any) -> float:
    """The tokens that an endpoint of 60,000 a minute, with its burst of 3,000, is charged with."""
    bucket = gateway._app._upstreams["b"]._throttle._tokens
    return float(3000 - bucket._level)


@pytest.fixture
def metered(make: Any, limits: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A gateway on a clock that stands still."""
    defaults: Any = Throttle.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "clock", lambda: 0.0)
    return make(limits=limits.model_copy(update={"tokens_per_minute": 60_000}))


def total(upstream: Any) -> int:
    return int(upstream.tokens["input"] + upstream.tokens["output"])


@pytest.mark.parametrize("way", ["ask", "ask_stream"])
def test_answers_and_streams_are_charged_what_they_say(metered: Any, upstream: Any, way: str) -> None:
    getattr(metered, way)()
    assert charged(metered) == total(upstream) > 0


@pytest.mark.parametrize("way", ["ask", "ask_stream"])
def test_what_says_nothing_is_charged_its_estimate(metered: Any, upstream: Any, way: str) -> None:
    upstream.usage = lambda _: None
    getattr(metered, way)()
    assert charged(metered) > 0


@pytest.mark.parametrize("way", ["ask", "ask_stream"])
def test_attempts_that_the_endpoint_refused_are_charged_nothing(
    metered: Any, upstream: Any, faults: Any, way: str
) -> None:
    upstream.faults = [faults.status(429), faults.cut]
    getattr(metered, way)()
    assert charged(metered) == total(upstream)
    upstream.faults = [faults.status(400)]
    with pytest.raises(openai.BadRequestError):
        getattr(metered, way)()
    assert charged(metered) == total(upstream)


def test_a_malformed_answer_is_charged_its_estimate(metered: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [faults.body(b"{")]
    metered.ask()
    assert charged(metered) > total(upstream)


def test_a_stream_holds_its_slot_until_it_ends(make: Any, upstream: Any, limits: Any) -> None:
    gateway = make(limits=limits.model_copy(update={"concurrency": 1, "timeout_seconds": 10}))
    begun, go_on = threading.Event(), threading.Event()

    def slowly(handler: Any) -> None:
        first = b'data: {"choices": [{"index": 0, "delta": {"content": "He"}}]}\n\n'
        last = b"data: [DONE]\n\n"
        handler.send(first, content_type="text/event-stream", length=len(first + last))
        handler.wfile.flush()
        begun.set()
        assert go_on.wait(10)
        handler.wfile.write(last)

    upstream.faults = [slowly]
    with ThreadPoolExecutor(2) as threads:
        stream = threads.submit(gateway.ask_stream)
        assert begun.wait(10)
        call = threads.submit(gateway.ask)
        time.sleep(0.1)
        assert len(upstream.requests) == 1
        go_on.set()
        assert len(stream.result()) == 1
        assert call.result().choices
    assert len(upstream.requests) == 2
