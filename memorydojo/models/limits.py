"""How hard an endpoint is asked: slots, rates, waits between attempts, and the circuit that stops a dead one."""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from memorydojo.models.config import Limits

#: What is not used of a rate is saved up for so many seconds: no minute holds more than a twentieth beyond it.
BURST_SECONDS = 3


class Bucket:
    """A rate limit: so much a minute, evenly, with a burst of `BURST_SECONDS` of it, or of one if that is more.

    Args:
        per_minute: The rate; None for no limit.
        clock: Seconds, monotonic.
    """

    def __init__(self, per_minute: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60 if per_minute is not None else None
        self._capacity = max(1.0, (self._rate or 0.0) * BURST_SECONDS)
        self._level = self._capacity
        self._clock = clock
        self._filled = clock()

    def take(self, amount: float) -> float:
        """Takes an amount, into debt if need be, and gives the seconds to wait before using it.

        An amount below 0 is given back.
        """
        if self._rate is None:
            return 0.0
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._filled) * self._rate)
        self._filled = now
        self._level = min(self._capacity, self._level - amount)
        return max(0.0, -self._level / self._rate)


class Circuit:
    """Stops calls to an endpoint that is dead.

    Args:
        failures: After so many calls in a row without an answer it opens.
    """

    def __init__(self, failures: int) -> None:
        self._limit = failures
        self._failed = 0
        self.reason: str | None = None

    def succeeded(self) -> None:
        """The endpoint answered."""
        self._failed = 0

    def failed(self, reason: str, *, at_once: bool = False) -> None:
        """A call ended without an answer, retries included.

        Args:
            reason: What happened, without secrets.
            at_once: Whether one is enough, as with a refused key.
        """
        self._failed += 1
        if self.reason is None and (at_once or self._failed >= self._limit):
            self.reason = reason

    def reset(self) -> None:
        """Lets calls through again."""
        self._failed, self.reason = 0, None


@dataclass
class Booking:
    """The tokens of one attempt.

    Attributes:
        estimate: What it was let through for.
        used: What it used as far as anybody knows, which is what the rate is charged in the end.
    """

    estimate: float
    used: float = 0.0


class Throttle:
    """The limits of one endpoint for all calls of this process. Belongs to one event loop.

    Args:
        limits: The limits.
        clock: Seconds, monotonic.
        sleep: Waits for seconds of that clock.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.limits = limits
        self._sleep = sleep
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._requests = Bucket(limits.requests_per_minute, clock=clock)
        self._tokens = Bucket(limits.tokens_per_minute, clock=clock)

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[Booking]:
        """Waits for a free slot and for the rates, and holds the slot; at its end the tokens are set right.

        Args:
            tokens: An estimate of what the call will cost. All of it is given back unless the caller says what was
                ``used``.
        """
        # The slot comes first: calls that wait for one would else save up rate beyond any burst.
        async with self._slots:
            wait = max(self._requests.take(1), self._tokens.take(tokens))
            booking = Booking(tokens)
            try:
                if wait > 0:
                    await self._sleep(wait)
                yield booking
            finally:
                self._tokens.take(booking.used - booking.estimate)


def wait_before_retry(attempt: int, limits: Limits, retry_after: float | None, *, jitter: float | None = None) -> float:
    """Seconds to wait before another attempt: full jitter on a doubling back-off, never less than the endpoint asks.

    Args:
        attempt: How many attempts were made.
        limits: The endpoint's limits.
        retry_after: What the endpoint asks for, in seconds.
        jitter: A number in [0, 1]; drawn if None.
    """
    longest = min(limits.max_backoff_seconds, limits.first_backoff_seconds * 2.0 ** (attempt - 1))
    drawn = longest * (random.random() if jitter is None else jitter)
    return drawn if retry_after is None else retry_after + min(drawn, limits.first_backoff_seconds)


def retry_after_seconds(header: str | None, *, now: float | None = None) -> float | None:
    """The seconds of a Retry-After header, given as a number or as a date; None if there is none that can be read.

    >>> retry_after_seconds("2.5"), retry_after_seconds("soon"), retry_after_seconds(None)
    (2.5, None, None)
    """
    if not header:
        return None
    if re.fullmatch(r"\s*\d+(?:\.\d*)?\s*", header):
        return float(header)
    try:
        moment: datetime = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    seconds: float = moment.timestamp() - (time.time() if now is None else now)
    return max(0.0, seconds)
