"""Which texts of a run the payload can have reached: those of entries that are not as they were before it came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memorydojo.record import MemoryEntry, MemoryItem, SnapshotDifference
from memorydojo.runs.model import HistoryResult, SessionResult


class ReachedMemory:
    """The entry texts of a memory as the writes go by.

    Args:
        history: What was written before the first task session.

    Attributes:
        texts: The text of each entry that is there.
    """

    def __init__(self, history: Sequence[HistoryResult] = ()) -> None:
        self.texts: dict[str, str] = {}
        self._before: dict[str, str] = {}
        for told in history:
            for _ in self.write(told.difference):
                pass

    def mark_insertion(self) -> None:
        """Remembers the texts as they are now, before the insertion write."""
        self._before = dict(self.texts)

    def can_carry(self, entry_id: str) -> bool:
        """Whether the entry's text is not what it was before the insertion write."""
        return entry_id not in self._before or self.texts.get(entry_id) != self._before[entry_id]

    def carriers(self, item: MemoryItem) -> list[str]:
        """The entries of an item that can carry the payload."""
        return [entry_id for entry_id in item.entry_ids if self.can_carry(entry_id)]

    def write(self, difference: SnapshotDifference) -> Iterator[MemoryEntry]:
        """Applies a write, and gives each entry that it wrote, once its text is in place."""
        for entry_id in difference.removed:
            self.texts.pop(entry_id, None)
        for entry in (*difference.rewritten, *difference.created):
            self.texts[entry.id] = entry.text
            yield entry


@dataclass(frozen=True)
class Reached:
    """A text that the payload can have reached.

    Attributes:
        session: The session that wrote or was delivered it.
        place: ``("entry", <entry id>)``, or ``("item", <position>)`` among the delivered items, from 0.
        text: The text.
    """

    session: int
    place: tuple[str, str | int]
    text: str


def reached_texts(
    sessions: Sequence[SessionResult], t0: int, history: Sequence[HistoryResult] = ()
) -> Iterator[Reached]:
    """Every text of a run that a judge has to label, as often as it occurs; none if the payload never entered.

    Args:
        sessions: The sessions, in order.
        t0: The insertion session.
        history: What was written before the first of them.
    """
    if not any(s.session == t0 and s.payload_inserted for s in sessions):
        return
    memory = ReachedMemory(history)
    for session in sessions:
        number = session.session
        if number > t0:
            for position, item in enumerate(session.items):
                if not item.entry_ids or memory.carriers(item):
                    yield Reached(number, ("item", position), item.text)
        if number == t0:
            memory.mark_insertion()
        for entry in memory.write(session.difference):
            if number >= t0 and memory.can_carry(entry.id):
                yield Reached(number, ("entry", entry.id), entry.text)


def count_everything(sessions: Sequence[SessionResult], t0: int, history: Sequence[HistoryResult] = ()) -> int:
    """What judging everything would take: all entries after each write from the insertion on, all items after it."""
    memory, number = ReachedMemory(history), 0
    for session in sessions:
        for _ in memory.write(session.difference):
            pass
        if session.session >= t0:
            number += len(memory.texts)
        if session.session > t0:
            number += len(session.items)
    return number
