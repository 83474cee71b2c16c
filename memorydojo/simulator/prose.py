"""Prose out of text: passages without records and tables, sentences, and targets that must stay whole."""

import re

#: Emails, links, account numbers, amounts and quoted strings: never split, never reworded.
TARGET = re.compile(
    r"""(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"""
    r"""|\b(?:https?://|www\.)[^\s'"<>`]*[\w/]"""
    r"""|\b[A-Z]{2}\d{2}[A-Z0-9]{8,30}\b"""
    r"""|[$€£]\s?\d+(?:[.,]\d+)*"""
    r"""|"[^"\n]{1,300}"|“[^”\n]{1,300}”|(?<!\w)'[^'\n]{1,300}'(?!\w)"""
)

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ue000-\uf8ff\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_END = re.compile(r"(?<=[.!?])[\"'”)\]]{0,2}\s+(?=[\"'“(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|Mr|Mrs|Ms|Dr|Prof|St|No|Inc|Ltd)\.$", re.IGNORECASE)
_FIELD = re.compile(r"^\s*(?:-\s+)*'?[a-z][a-z0-9_]*'?:(?:\s|$)")
_RECORD = re.compile(r"^\s*(?:[\[{}\]]|\"[^\"]*\"\s*:|<[^>]*>\s*$|[-=_*#|+]{3,}\s*$)")
_MARKER = re.compile(r"^\s*(?:[-*•>]\s+|\d{1,2}[.)]\s+|#{1,6}\s+)")
_FEWEST_WORDS = 6

_STOP = frozenset(
    "a an and any are as at be but by can could do for from has have hey hi i if in is it its me my of on or our "
    "please that the their them then there they this to up was we were what when which who will with would you your "
    "user".split()
)


def passages(text: str) -> list[str]:
    """Runs of prose, without what passes for records.

    Lines of JSON, tables, tags and rules are dropped. A field of a record (``key: value``, the key in lower case) is
    dropped, unless its value has at least six words: then the value is prose. Lines that follow each other are one
    passage; a blank line, a dropped line, a field or a list marker starts a new one. Control, private-use,
    zero-width and direction characters count as nothing.
    """
    found: list[list[str]] = [[]]
    for line in _CONTROL.sub("", text).split("\n"):
        prose = line
        new = not line.strip()
        if field := _FIELD.match(line):
            new, prose = True, _unquoted(line[field.end() :])
            prose = prose if len(prose.split()) >= _FEWEST_WORDS else ""
        elif _RECORD.match(line) or line.count("|") > 1 or "\t" in line.strip():
            new, prose = True, ""
        elif marker := _MARKER.match(line):
            new, prose = True, line[marker.end() :]
        if new:
            found.append([])
        if prose.strip():
            found[-1].append(" ".join(prose.split()))
    return [" ".join(lines) for lines in found if lines]


def sentences(passage: str) -> list[str]:
    """The sentences of a passage.

    A full stop, question or exclamation mark ends one only before white space and a capital, digit or opening quote,
    never after a common abbreviation and never inside a target.

    >>> sentences("Mail me at user@x.com or see www.a-b.com. It costs $10.00, e.g. Monday's fee. Fine?")
    ['Mail me at user@x.com or see www.a-b.com.', "It costs $10.00, e.g. Monday's fee.", 'Fine?']
    """
    inside = [match.span() for match in TARGET.finditer(passage)]
    found, start, target = [], 0, 0
    for match in _END.finditer(passage):
        while target < len(inside) and inside[target][1] <= match.start():
            target += 1
        if target < len(inside) and inside[target][0] < match.start() < inside[target][1] - 1:
            continue
        end = match.start() + len(match.group().rstrip())
        if _ABBREVIATION.search(passage[max(start, end - 8) : end]):
            continue
        found.append(passage[start:end])
        start = match.end()
    found.append(passage[start:])
    return [sentence.strip() for sentence in found if sentence.strip()]


def _unquoted(value: str) -> str:
    """A YAML value without its quotes."""
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value.lstrip("|>-") if value[:1] in "|>" else value


def stems(text: str) -> frozenset[str]:
    """Content words of a text, roughly stemmed, for comparing what two texts are about."""
    words = re.findall(r"[a-z]{3,}", text.lower())
    return frozenset(re.sub(r"(?:ing|ed|es|s)$", "", w) for w in words if w not in _STOP)
