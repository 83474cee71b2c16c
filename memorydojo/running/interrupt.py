"""Ctrl-C during a sweep: the first one lets the runs under way come to their end, the second one ends at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class SweepInterrupted(KeyboardInterrupt):
    """A sweep was asked to stop, and has; all that was under way is saved. Call it again to go on."""


class Interrupt:
    """Whether a sweep was asked to stop.

    Attributes:
        asked: True from the first Ctrl-C on.
    """

    def __init__(self) -> None:
        self.asked = False

    def wanted(self) -> bool:
        """The same, as a function."""
        return self.asked


_SAID = "\nstopping after the runs under way; Ctrl-C again ends at once, and they begin anew next time\n"


@contextmanager
def first_interrupt_waits() -> Iterator[Interrupt]:
    """Turns the first Ctrl-C into a wish that the sweep looks at; the second one is a ``KeyboardInterrupt``.

    Elsewhere than in the main thread, or where somebody else listens to Ctrl-C, nothing is changed.
    """
    interrupt = Interrupt()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupt
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupt.asked:
            signal.default_int_handler(number, frame)
        interrupt.asked = True
        sys.stderr.write(_SAID)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def not_for_workers() -> Iterator[None]:
    """Processes and threads that are started inside never see Ctrl-C, which a terminal sends to all of them.

    A worker that was torn out of its run, or out of its start, would break the pool.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
