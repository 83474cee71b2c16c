"""A memory system as a run uses it: what it gives back is checked here, once for all systems."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from memorydojo.adapter import MemoryAdapter, MemoryDescription
from memorydojo.errors import MemoryDojoError, MemorySystemError
from memorydojo.record import MemoryItem, SessionRecord, Snapshot

_Result = TypeVar("_Result")

_CONTRACT = "Mend the adapter; memorydojo.testing holds the contract as a test suite."


class CheckedMemory:
    """Passes every call on to an adapter, and refuses an answer that is not of the contract.

    A wrong answer that went through would become a wrong number: an item that names no stored entry, for example,
    could never be labelled.

    Args:
        adapter: The memory system.

    Attributes:
        snapshot_now: The memory after the last `snapshot`.
    """

    def __init__(self, adapter: MemoryAdapter) -> None:
        self._adapter = adapter
        self.snapshot_now = Snapshot()

    def write(self, record: SessionRecord) -> None:
        """Writes one session."""
        self._adapter.write(record)

    def retrieve(self, query: str) -> tuple[MemoryItem, ...]:
        """The items for a query, in the order of delivery.

        Raises:
            MemorySystemError: What came back is no list of items, their ranks are not their places, or one names an
                entry that the memory does not hold.
        """
        found: Any = self._adapter.retrieve(query)
        if not isinstance(found, list | tuple):
            raise self._wrong("retrieve", f"it returned {_shown(found)} instead of a list of MemoryItem")
        for place, item in enumerate(found):
            if not isinstance(item, MemoryItem):
                raise self._wrong("retrieve", f"item {place} is {_shown(item)} instead of a MemoryItem")
            if item.rank != place:
                raise self._wrong("retrieve", f"the item in place {place} has the rank {item.rank}")
            named = (*item.entry_ids, *((item.via,) if item.via is not None else ()))
            unknown = [entry_id for entry_id in named if entry_id not in self.snapshot_now.entries]
            if unknown:
                raise self._wrong("retrieve", f"item {place} names the entry {unknown[0]!r}, which no snapshot holds")
        return tuple(found)

    def snapshot(self) -> Snapshot:
        """Everything that is stored; remembered in `snapshot_now`.

        Raises:
            MemorySystemError: What came back is no snapshot, an entry stands under another id, or the system raised.
        """
        found: Any = self._calling("snapshot", self._adapter.snapshot)
        if not isinstance(found, Snapshot):
            raise self._wrong("snapshot", f"it returned {_shown(found)} instead of a Snapshot")
        for entry_id, entry in found.entries.items():
            if entry.id != entry_id:
                raise self._wrong("snapshot", f"the entry {entry.id!r} stands under the id {entry_id!r}")
        self.snapshot_now = found
        return found

    def checkpoint(self, target: Path) -> None:
        """Writes a copy into the missing directory ``target``.

        Raises:
            MemorySystemError: The system raised, or wrote nothing.
        """
        self._calling("checkpoint", lambda: self._adapter.checkpoint(target))
        if not target.is_dir():
            raise self._wrong("checkpoint", "it wrote no directory")

    def describe(self) -> MemoryDescription:
        """The system's own description of itself.

        Raises:
            MemorySystemError: What came back is no description, or the system raised.
        """
        found: Any = self._calling("describe", self._adapter.describe)
        if not isinstance(found, MemoryDescription):
            raise self._wrong("describe", f"it returned {_shown(found)} instead of a MemoryDescription")
        return found

    def close(self) -> None:
        """Closes the memory.

        Raises:
            MemorySystemError: The system raised.
        """
        self._calling("close", self._adapter.close)

    def _wrong(self, call: str, problem: str) -> MemorySystemError:
        return MemorySystemError(self._adapter.name, call, problem, _CONTRACT)

    def _calling(self, call: str, work: Callable[[], _Result]) -> _Result:
        return calling(self._adapter.name, call, work)


def calling(system: str, call: str, work: Callable[[], _Result]) -> _Result:
    """Runs one call of an adapter; an exception that is none of ours gets the system's and the call's name.

    Raises:
        MemorySystemError: The adapter raised something else.
    """
    try:
        return work()
    except MemoryDojoError:
        raise
    except Exception as error:
        raise MemorySystemError(
            system, call, f"{type(error).__name__}: {error}", "An adapter should raise MemorySystemError with a remedy."
        ) from error


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"
