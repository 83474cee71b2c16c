"""Where memory entries come from, read off the differences between snapshots.

No memory system is asked: what a write created, rewrote and removed is the difference of the snapshots around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memorydojo.errors import UnknownNameError
from memorydojo.history import history_number
from memorydojo.judging.labels import POISON, Labels
from memorydojo.record import MemoryEntry
from memorydojo.runs.model import HistoryResult, SessionResult


@dataclass(frozen=True)
class EntryVersion:
    """One version of an entry.

    Attributes:
        entry_id: The entry's native id, which it keeps when it is rewritten.
        number: 1-based, over the whole life of the id.
        session: The session whose write made this version. A history session has a number below 0
            (`memorydojo.history.history_number`): -1 is the last one before the first task session.
        change: ``"created"``; ``"rewritten"`` if its text changed; ``"relinked"`` if only links or metadata or the
            kind did; ``"removed"``.
        entry: The entry after the write; None if it was removed.
    """

    entry_id: str
    number: int
    session: int
    change: Literal["created", "rewritten", "relinked", "removed"]
    entry: MemoryEntry | None


@dataclass(frozen=True)
class Provenance:
    """The life of every entry of a run.

    Attributes:
        versions: All versions by entry id, in order of sessions; ids in order of first appearance.
        original: Ids of the original-poison entries, in that order.
        descendants: Ids of the other entries that bear the payload in some version, in that order.
    """

    versions: dict[str, tuple[EntryVersion, ...]]
    original: tuple[str, ...] = ()
    descendants: tuple[str, ...] = ()

    def history(self, entry_id: str) -> tuple[EntryVersion, ...]:
        """All versions of an entry.

        Raises:
            UnknownNameError: No write made an entry with this id.
        """
        if entry_id not in self.versions:
            raise UnknownNameError("memory entry", entry_id, self.versions)
        return self.versions[entry_id]

    def written_by(self, session: int) -> tuple[EntryVersion, ...]:
        """All versions that the write of one session made."""
        return tuple(v for versions in self.versions.values() for v in versions if v.session == session)


def provenance(
    sessions: Sequence[SessionResult], labels: Labels | None = None, *, history: Sequence[HistoryResult] = ()
) -> Provenance:
    """The provenance of every entry that the sessions of a run have written.

    Args:
        sessions: The sessions of a run, in order.
        labels: Its labels, to tell original poison and descendants; without them both stay empty.
        history: What was written before the first of them.
    """
    versions: dict[str, list[EntryVersion]] = {}
    now: dict[str, MemoryEntry] = {}

    def add(entry_id: str, session: int, entry: MemoryEntry | None) -> None:
        known = versions.setdefault(entry_id, [])
        before = now.get(entry_id)
        change: Literal["created", "rewritten", "relinked", "removed"]
        if entry is None:
            change = "removed"
            now.pop(entry_id, None)
        else:
            change = "created" if before is None else "relinked" if before.text == entry.text else "rewritten"
            now[entry_id] = entry
        known.append(EntryVersion(entry_id, len(known) + 1, session, change, entry))

    written = [(history_number(told.number, len(history)), told.difference) for told in history]
    for number, difference in [*written, *((result.session, result.difference) for result in sessions)]:
        for entry_id in difference.removed:
            add(entry_id, number, None)
        for entry in (*difference.rewritten, *difference.created):
            add(entry.id, number, entry)
    bearing = {e.entry_id: e.original for e in labels.entries if e.label in POISON} if labels else {}
    return Provenance(
        versions={entry_id: tuple(found) for entry_id, found in versions.items()},
        original=tuple(i for i in versions if bearing.get(i) is True),
        descendants=tuple(i for i in versions if bearing.get(i) is False),
    )
