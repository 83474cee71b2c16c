"""Seeing what a memory system keeps to itself: failures that it swallows, logs or prints, and goes on after."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from memorydojo.errors import MemorySystemError

_Result = TypeVar("_Result")
_problems: ContextVar[list[str] | None] = ContextVar("problems", default=None)


@contextlib.contextmanager
def calling(logger: str, problems: list[str]) -> Iterator[None]:
    """Runs one call of a memory system in this thread.

    Args:
        logger: Name of the system's logger. Its warnings and errors are problems.
        problems: Where they are noted, and the exceptions that pass `noting`.
    """
    token = _problems.set(problems)
    handler = _Collector(level=logging.WARNING)
    source = logging.getLogger(logger)
    source.addHandler(handler)
    try:
        yield
    finally:
        source.removeHandler(handler)
        _problems.reset(token)


@contextlib.contextmanager
def noting(problems: list[str] | None = None) -> Iterator[None]:
    """Notes an exception that passes, because the system may swallow it further up.

    Args:
        problems: Where to note it; by default the call that runs in this thread.
    """
    try:
        yield
    except Exception as error:
        _note(f"{type(error).__name__}: {error}", problems)
        raise


@contextlib.contextmanager
def stopping(problems: list[str]) -> Iterator[None]:
    """Notes an exception and ends the call with it, whatever the system would have swallowed further up.

    Panics of Rust libraries count too, which are no ``Exception``.
    """
    try:
        yield
    except (Stopped, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        _note(f"{type(error).__name__}: {error}", problems)
        raise Stopped from error


class Stopped(BaseException):
    """Ends a call of a system that would swallow any ``Exception``; `checked` turns it into a `MemorySystemError`."""


def _note(problem: str, problems: list[str] | None) -> None:
    found = problems if problems is not None else _problems.get()
    if found is not None:
        found.append(problem)


class _Collector(logging.Handler):
    """Notes what the system logs in the thread of a call."""

    def emit(self, record: logging.LogRecord) -> None:
        _note(record.getMessage(), None)


class Watched:
    """An object whose methods' failures are noted, whoever swallows them further up.

    Args:
        target: The object.
        problems: Where failures are noted.
        how: `noting` or `stopping`.
    """

    def __init__(
        self,
        target: Any,
        problems: list[str],
        how: Callable[[list[str]], AbstractContextManager[None]] = noting,
    ) -> None:
        self._target, self._problems, self._how = target, problems, how

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def method(*args: Any, **kwargs: Any) -> Any:
            with self._how(self._problems):
                return value(*args, **kwargs)

        return method


def checked(
    system: str, call: str, remedy: str, problems: list[str], work: Callable[[], _Result], *passed: type[Exception]
) -> _Result:
    """Does ``work`` and raises whatever went wrong in it, also what the system kept to itself.

    Args:
        system: The adapter's name.
        call: What it is doing.
        remedy: What a user can do if it fails.
        problems: Where `calling` notes problems meanwhile.
        work: A call of the memory system.
        passed: Errors that are raised as they are, because they are reported elsewhere.
    """
    known: tuple[type[Exception], ...] = (MemorySystemError, OSError, *passed)
    problems.clear()
    try:
        result = work()
    except known:
        raise
    except Stopped as stopped:
        raise MemorySystemError(system, call, "; ".join(problems), remedy) from stopped.__cause__
    except Exception as error:  # memory systems raise what their parts raise, their own kinds and bare ValueErrors
        found = problems or [f"{type(error).__name__}: {error}"]
        raise MemorySystemError(system, call, "; ".join(found), remedy) from error
    if problems:
        raise MemorySystemError(system, call, "; ".join(problems), remedy)
    return result
