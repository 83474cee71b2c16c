"""A simulated clock for AgentDojo's tools, so that equal runs leave equal traces.

Three of AgentDojo's tools stamp emails and files with ``datetime.now()``, and one orders participants by
``list(set(...))``, which varies with PYTHONHASHSEED. Both would make memories of equal runs differ. Within
`session_time` the tools read a clock that starts at the session's time and advances a second with each reading;
participants keep their first-seen order always.
"""

import datetime as real
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: The first session of every run takes place then: after everything in AgentDojo's data, which ends on 2024-05-30.
FIRST_SESSION = real.datetime(2024, 6, 3, 9, 0, tzinfo=real.UTC)

_ticks: ContextVar[Iterator[real.datetime] | None] = ContextVar("_ticks", default=None)


def first_session(*earlier: real.datetime) -> real.datetime:
    """When the first task session takes place: at `FIRST_SESSION`, or at nine on the day after what came before it.

    Args:
        earlier: The times of recorded conversations, and of the question about them.
    """
    days = (moment.astimezone(real.UTC).date() + real.timedelta(days=1) for moment in earlier)
    return max([FIRST_SESSION, *(real.datetime.combine(day, FIRST_SESSION.timetz()) for day in days)])


def time_of_session(number: int, first: real.datetime = FIRST_SESSION) -> real.datetime:
    """When the task session with this 1-based number takes place: one session a day."""
    return first + real.timedelta(days=number - 1)


@contextmanager
def session_time(start: real.datetime) -> Iterator[None]:
    """Lets AgentDojo's tools read a clock that starts at ``start``, in this thread or task only."""
    install()
    token = _ticks.set(start + real.timedelta(seconds=n) for n in itertools.count())
    try:
        yield
    finally:
        _ticks.reset(token)


class _Datetime:
    """Stands in for the class ``datetime.datetime``; gives the real thing but for ``now``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(real.datetime, name)

    def __call__(self, *args: Any, **kwargs: Any) -> real.datetime:
        return real.datetime(*args, **kwargs)

    @staticmethod
    def now(tz: real.tzinfo | None = None) -> real.datetime:
        """The simulated time inside `session_time`, else the real time."""
        ticks = _ticks.get()
        if ticks is None:
            return real.datetime.now(tz)
        moment = next(ticks)
        return moment.astimezone(tz) if tz is not None else moment.replace(tzinfo=None)


class _DatetimeModule:
    """Stands in for the module ``datetime`` in the tools' modules."""

    datetime = _Datetime()

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)


def _unique(values: Iterable[Any] = ()) -> list[Any]:
    return list(dict.fromkeys(values))


def install() -> None:
    """Gives the tools' modules the simulated clock and an order-keeping ``set``. Safe to call again."""
    from agentdojo.default_suites.v1.tools import calendar_client, cloud_drive_client, email_client

    for module in (email_client, cloud_drive_client):
        if not isinstance(module.datetime, _DatetimeModule):
            vars(module)["datetime"] = _DatetimeModule()
    vars(calendar_client)["set"] = _unique
