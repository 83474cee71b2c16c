"""Texts as the overlap judge reads them: escapes undone, case folded, cut into segments.

What a memory system may do to a text without changing what it says must not change the judgement: JSON and YAML dumps,
line folding, case, zero-width characters, typographic quotes.
"""

import bisect
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

SEGMENT_TOKENS = 60
"""A segment of more tokens than this, say a list without punctuation, is read in overlapping windows."""

_SPECIAL = re.compile(
    r"(?P<fold>\\{1,8}\r?\n[ \t]*(?:\\{1,8}(?=[ \t]))?)"  # YAML: an escaped line end inside double quotes
    r"|\\{1,8}(?:u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|x(?P<x>[0-9a-fA-F]{2}))"
    r"|\\{1,8}(?P<letter>[nrtfbe\"'/ _N])"
    r"|(?P<pair>(?<=[A-Za-z])''(?=[A-Za-z]))"  # YAML: an apostrophe inside single quotes
    r"|(?P<other>[^\x00-\x7f]+)"
)
_ESCAPED = {"n": "\n", "r": "\n", "t": "\t", "f": " ", "b": "", "e": "", "_": " ", "N": "\n"}
_TYPOGRAPHY = {
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u00b4"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-"),
}
_TOKEN = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*(?:'[a-z]+)?|[^\W_]+|[$€£]")
_BREAK = re.compile(
    r"(?<=[.!?])\s+"  # the end of a sentence
    r"|(?<=[.!?])[\"')\]]\s+(?!(?:and|or|but|with|in|on|to|as|at|for|by|from|then|before|after|when|if|so|is|was)\b)"
    r"|\n[ \t]*\n(?![ \t]{2})"  # a blank line, unless YAML has put it into an indented scalar
    r"|\n[ \t]{0,40}(?=[-*•>#]\s|\d{1,3}[.)]\s"  # a list item
    r"|[\"']?[\w.]+(?: [\w.]+){0,3}[\"']?:(?:\s|$))"  # or `key: value`
    r"|(?<=[}\]])\s*\n\s*"  # a line that ends a list or an object
    r"|(?<=\))[\s,;]*(?=\w+\()"  # the next call in a row of calls
    r"|\}\s*,\s*(?=\{)"  # the next JSON object in a list
)


@dataclass(frozen=True)
class Token:
    """A word or currency sign.

    Attributes:
        text: The word, case folded.
        start: Its start in the normalised text.
        end: Its end.
        after: The character that follows, quotes left out: ``"("`` after the name of a called function, ``":"`` after
            a key.
    """

    text: str
    start: int
    end: int
    after: str

    @property
    def said(self) -> str:
        """The word, with its colon if it is a key."""
        return f"{self.text}:" if self.after == ":" else self.text


@dataclass(frozen=True)
class Segment:
    """A sentence, line or window. ``start`` and ``end`` are positions in the normalised text."""

    start: int
    end: int
    tokens: tuple[Token, ...]

    @cached_property
    def said(self) -> str:
        """The words with single spaces between them, so that line folding does not matter; keys keep their colon."""
        return " ".join(token.said for token in self.tokens)

    def words_within(self, start: int, end: int) -> list[int]:
        """Which tokens begin in a span of `said`."""
        found, at = [], 0
        for i, token in enumerate(self.tokens):
            if start <= at < end:
                found.append(i)
            at += len(token.said) + 1
        return found


class NormalText:
    """A text with escapes undone, compatibility forms and case folded, that remembers where everything came from.

    Args:
        original: Any text.
        fold: Whether to fold the case.
    """

    def __init__(self, original: str, *, fold: bool = True) -> None:
        pieces: list[str] = []
        self._at: list[int] = []  # starts of pieces in the normalised text
        self._from: list[int] = []  # where each comes from
        self._verbatim: list[bool] = []
        self._original_length = len(original)
        length = position = 0

        def add(piece: str, start: int, verbatim: bool) -> None:
            nonlocal length
            piece = piece.lower() if fold else piece
            pieces.append(piece)
            self._at.append(length)
            self._from.append(start)
            self._verbatim.append(verbatim)
            length += len(piece)

        for found in _SPECIAL.finditer(original):
            if found.start() > position:
                add(original[position : found.start()], position, True)
            add(_plain(found), found.start(), False)
            position = found.end()
        add(original[position:], position, True)
        self.text = "".join(pieces)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text that a span of the normalised text comes from."""
        return self._original(start), max(self._original(end - 1) + 1, self._original(end))

    def _original(self, position: int) -> int:
        piece = max(bisect.bisect_right(self._at, position) - 1, 0)
        offset = position - self._at[piece] if self._verbatim[piece] else 0
        return min(self._from[piece] + offset, self._original_length)


def _plain(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "letter":
        return _ESCAPED.get(found["letter"], found["letter"])
    if kind in ("u", "U", "x"):
        code = int(found[kind], 16)
        return _unified(chr(code)) if code <= 0x10FFFF else " "
    if kind == "other":
        return _unified(found["other"])
    return "'" if kind == "pair" else ""


def _unified(text: str) -> str:
    """Compatibility forms and typographic quotes made plain, invisible characters left out."""
    kept = "".join(c for c in text if unicodedata.category(c) != "Cf").translate(_TYPOGRAPHY)
    return unicodedata.normalize("NFKC", kept)


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of a part of a normalised text."""
    for found in _TOKEN.finditer(text, start, end):
        following = text[found.end() : found.end() + 2]
        yield Token(found.group(), found.start(), found.end(), following.lstrip("\"'")[:1])


def segments(text: str) -> Iterator[Segment]:
    """Cuts a normalised text at sentences, lines of structure and calls, whatever their order and case."""
    start = 0
    for found in _BREAK.finditer(text):
        yield from _windows(text, start, found.start())
        start = found.end()
    yield from _windows(text, start, len(text))


def _windows(text: str, start: int, end: int) -> Iterator[Segment]:
    found = tuple(tokens(text, start, end))
    if not found:
        return
    if len(found) <= SEGMENT_TOKENS:
        yield Segment(start, end, found)
        return
    half = SEGMENT_TOKENS // 2
    for first in range(0, len(found) - half, half):
        part = found[first : first + SEGMENT_TOKENS]
        yield Segment(part[0].start, part[-1].end, part)
