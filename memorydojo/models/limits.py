"""How hard an endpoint is asked: slots, rates, waits between attempts, and the circuit that stops a dead one."""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime

from memorydojo.models.config import Limits


class Bucket:
    """A rate limit: so much a minute, no more than a minute's worth saved up.

    Args:
        per_minute: The rate; None for no limit.
        clock: Seconds, monotonic.
    """

    def __init__(self, per_minute: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60 if per_minute is not None else None
        self._capacity = per_minute or 0.0
        self._level = self._capacity
        self._clock = clock
        self._filled = clock()

    def take(self, amount: float) -> float:
        """Takes an amount, into debt if need be, and gives the seconds to wait before using it."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._filled) * self._rate)
        self._filled = now
        self._level -= amount
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


class Throttle:
    """The limits of one endpoint for all calls of this process. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._requests = Bucket(limits.requests_per_minute)
        self._tokens = Bucket(limits.tokens_per_minute)

    @asynccontextmanager
    async def slot(self, tokens: float) -> AsyncIterator[None]:
        """Waits for the rates and for a free slot, and holds the slot.

        Args:
            tokens: An estimate of what the call will cost; `correct` it afterwards.
        """
        wait = max(self._requests.take(1), self._tokens.take(tokens))
        if wait > 0:
            await asyncio.sleep(wait)
        async with self._slots:
            yield

    def correct(self, tokens: float) -> None:
        """Takes what a call cost beyond its estimate, or gives back what it did not."""
        self._tokens.take(tokens)


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
