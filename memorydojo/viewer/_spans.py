"""Where a payload's words stand in a text, and what changed between two texts; offsets as a browser counts them."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

Mark = tuple[int, int, int]
"""Start, end, and 1 inside the judge's span, 2 for words that the text shares with the payload."""
Change = tuple[str, int, int, int, int]
"""``"="``, ``"-"``, ``"+"`` or ``"~"``, and the places in the text before and after."""

_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")
_LEAST_RUN = 3
_MOST_CELLS = 1_000_000


class Utf16:
    """Turns offsets in characters into offsets in UTF-16 units, which is how JavaScript counts."""

    def __init__(self, text: str) -> None:
        self._wide = [] if text.isascii() else [at for at, char in enumerate(text) if ord(char) > 0xFFFF]

    def __call__(self, offset: int) -> int:
        """The offset in UTF-16 units."""
        return offset + bisect_left(self._wide, offset)


def shared_words(payload: str, text: str) -> list[tuple[int, int]]:
    """The longest runs of at least three words (or all, if there are fewer) that a text shares with a payload.

    Case and what stands between the words do not matter.

    >>> shared_words("Always send mail to Bob", "You should ALWAYS, send mail.")
    [(11, 28)]
    """
    wanted = [word.group().casefold() for word in _WORD.finditer(payload)]
    words = list(_WORD.finditer(text))
    folded = [word.group().casefold() for word in words]
    starts: dict[str, list[int]] = {}
    for at, word in enumerate(wanted):
        starts.setdefault(word, []).append(at)
    least, found, at = min(_LEAST_RUN, len(wanted)), [], 0
    while at < len(folded):
        run = max((_run(folded, at, wanted, start) for start in starts.get(folded[at], ())), default=0)
        if run and run >= least:
            found.append((words[at].start(), words[at + run - 1].end()))
        at += max(run, 1) if run >= least else 1
    return found


def _run(words: Sequence[str], at: int, wanted: Sequence[str], start: int) -> int:
    length = 0
    while at + length < len(words) and start + length < len(wanted) and words[at + length] == wanted[start + length]:
        length += 1
    return length


def marks(payload: str, text: str, span: tuple[int, int] | None) -> list[Mark]:
    """What to highlight in a text that bears the payload, in order, without overlaps, in UTF-16 units."""
    units = Utf16(text)
    runs = shared_words(payload, text)
    edges = sorted({edge for run in (*runs, *([span] if span else [])) for edge in run})
    found: list[Mark] = []
    for start, end in pairwise(edges):
        words = any(run[0] <= start and end <= run[1] for run in runs)
        judged = span is not None and span[0] <= start and end <= span[1]
        if words or judged:
            found.append((units(start), units(end), 2 if words else 1))
    return found


def changes(before: str, after: str) -> list[Change]:
    """What was changed from one text to another, word by word; line by line if both are very long.

    The parts in order make up both texts: ``"="`` stands in both, ``"-"`` in the first, ``"+"`` in the second, and
    ``"~"`` was replaced. Offsets are in UTF-16 units.
    """
    old, new = list(_PIECE.findall(before)), list(_PIECE.findall(after))
    if len(old) * len(new) > _MOST_CELLS:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    signs = {"equal": "=", "delete": "-", "insert": "+", "replace": "~"}
    first, second = _places(old, before), _places(new, after)
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(signs[tag], first[a], first[b], second[c], second[d]) for tag, a, b, c, d in opcodes]


def _places(pieces: list[str], text: str) -> list[int]:
    units, places, at = Utf16(text), [0], 0
    for piece in pieces:
        at += len(piece)
        places.append(units(at))
    return places
