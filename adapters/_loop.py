"""One event loop in a thread of its own, for memory systems with an asynchronous client.

Works wherever the caller is: in a plain thread, in a notebook with a running loop, or in a pool. Connections belong to
one loop, so there is one for the whole life of a memory.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Loop:
    """A running event loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs a coroutine to its end; whatever it left running is cancelled and awaited before this returns.

        A failed `asyncio.gather` leaves the other coroutines running, which would reach into the next call.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()
            asyncio.run_coroutine_threadsafe(self._settle(), self._loop).result()

    async def _settle(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def close(self) -> None:
        """Ends the loop and its thread. May be called more than once."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
