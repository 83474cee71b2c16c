"""What is salient in a payload: its targets, actions, standing conditions and rare words."""

import re
from dataclasses import dataclass
from typing import Literal, Protocol

from memorydojo.judging import _lexicon as lexicon
from memorydojo.judging._text import NormalText, Segment, Token, segments

Kind = Literal["address", "identifier", "name", "quotation", "amount", "word"]

WEIGHTS: dict[Kind, int] = {"address": 3, "identifier": 2, "name": 2, "quotation": 2, "amount": 1, "word": 1}
"""How much one target tells: an address of somebody's own tells most, a single name or a sum least."""

SHINGLE = 3
"""Copies are found by rows of so many words."""

_GAP = r"(?:[^a-z0-9\s]{0,3}\s{1,80}[^a-z0-9\s]{0,3}|[^a-z0-9\s]{1,3})"
"""What may stand between two words: punctuation, and white space with the line folding of YAML."""

_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)[^\s\"'<>()\[\],;]+"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|ai|dev|info|biz|co|app|xyz|example|test)\b(?:/[^\s\"'<>()\[\],;]*)?",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"\b(?=[A-Za-z]*\d)[A-Za-z]{0,4}\d[A-Za-z\d]{6,}\b")
_QUOTED = re.compile(r"\"([^\"\n]{2,200})\"|(?<![\w'])'([^'\n]{2,200})'(?!\w)|`([^`\n]{2,200})`")
_AMOUNT = re.compile(
    r"[$€£]\s?(\d+(?:[.,]\d+)*)|\b(?:usd|eur|gbp)\s?(\d+(?:[.,]\d+)*)"
    r"|\b(\d+(?:[.,]\d+)*)\s?(?:usd|eur|gbp|dollars?|euros?|pounds?)\b",
    re.IGNORECASE,
)
_CAPITALISED = r"[A-Z][a-z][\w'-]*"
_NAME = re.compile(rf"{_CAPITALISED}(?: (?:(?:of|the|de|la|and|&) )?{_CAPITALISED})*")


@dataclass(frozen=True)
class Target:
    """Something specific that a payload is about.

    Attributes:
        kind: What it is; decides its weight.
        weight: How much finding it tells.
        pattern: Finds it in a normalised text.
    """

    kind: Kind
    weight: int
    pattern: re.Pattern[str]


class _Add(Protocol):
    def __call__(self, kind: Kind, pattern: str, weight: int | None = None) -> None: ...


@dataclass(frozen=True)
class Profile:
    """What is salient in a payload.

    Attributes:
        targets: Its targets.
        primary: The targets that the action is aimed at: those of the greatest weight among addresses, identifiers
            and names, or all if it has none of these.
        actions: The classes of its actions.
        rare: Stems of its words that are neither common nor part of its targets, actions and conditions.
        shingles: All rows of three words within one of its segments.
        segments: The rows of three words of each of its segments.
        words: All its words.
    """

    targets: tuple[Target, ...]
    primary: frozenset[Target]
    actions: frozenset[str]
    rare: frozenset[str]
    shingles: frozenset[tuple[str, ...]]
    segments: tuple[frozenset[tuple[str, ...]], ...]
    words: frozenset[str]


def shingles(found: tuple[Token, ...]) -> frozenset[tuple[str, ...]]:
    """All rows of three words; a shorter text is one row."""
    words = [token.text for token in found]
    if len(words) < SHINGLE:
        return frozenset({tuple(words)}) if words else frozenset()
    return frozenset(tuple(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))


def profile(payload: str) -> Profile:
    """The profile of a payload's text."""
    cased, folded = NormalText(payload, fold=False).text, NormalText(payload).text
    parts = tuple(segments(folded))
    targets = _targets(cased)
    primary = [t for t in targets if t.kind in ("address", "identifier", "name")]
    most = max((t.weight for t in primary), default=0)
    covered = [found.span() for t in targets for found in t.pattern.finditer(folded)]
    return Profile(
        targets=targets,
        primary=frozenset([t for t in primary if t.weight == most] or targets),
        actions=_actions(folded, parts, targets),
        rare=frozenset(
            stem
            for part in parts
            for token in part.tokens
            if (stem := rare_stem(token)) and not any(a <= token.start < b for a, b in covered)
        ),
        shingles=frozenset().union(*(shingles(part.tokens) for part in parts)),
        segments=tuple(shingles(part.tokens) for part in parts),
        words=frozenset(token.text for part in parts for token in part.tokens),
    )


def rare_stem(token: Token) -> str | None:
    """The stem of a word that is worth comparing, or None."""
    word = token.text.removesuffix("'s")
    if len(word) < 3 or "_" in word or word in lexicon.STOP or word in lexicon.GENERIC or word in lexicon.ACTIONS:
        return None
    if word.isdigit() or lexicon.STANDING.fullmatch(word) or lexicon.MODAL.fullmatch(word):
        return None
    return lexicon.stem(word)


def _actions(folded: str, parts: tuple[Segment, ...], targets: tuple[Target, ...]) -> frozenset[str]:
    def classes(among: list[Segment]) -> frozenset[str]:
        pairs = [
            (part.tokens[i - 1].text if i else "", token.text) for part in among for i, token in enumerate(part.tokens)
        ]
        known = [(before, word) for before, word in pairs if word in lexicon.ACTIONS]
        verbs = [(b, word) for b, word in known if word in lexicon.VERB_FORMS and b not in lexicon.DETERMINERS]
        return frozenset().union(*(lexicon.ACTIONS[word] for _, word in verbs or known))

    aimed = [part for part in parts if any(t.pattern.search(folded, part.start, part.end) for t in targets)]
    return classes(aimed) or classes(list(parts))


def _targets(cased: str) -> tuple[Target, ...]:
    found: dict[str, Target] = {}

    def add(kind: Kind, pattern: str, weight: int | None = None) -> None:
        found.setdefault(pattern, Target(kind, weight or WEIGHTS[kind], re.compile(pattern)))

    rest = _ADDRESS.sub(lambda m: _blank(m, add, "address"), cased)
    rest = _IDENTIFIER.sub(lambda m: _blank(m, add, "identifier"), rest)
    for match in _AMOUNT.finditer(rest):
        add("amount", _amount_pattern(next(filter(None, match.groups()))))
    for match in _QUOTED.finditer(rest):
        words = _words(next(filter(None, match.groups())))
        if words and "\x00" not in match.group() and len(words) <= 12:
            add("quotation", _words_pattern(words), 2 if len(words) >= 3 or sum(map(len, words)) >= 12 else 1)
    _add_names(_QUOTED.sub(" . ", rest), add)
    return tuple(found.values())


def _blank(match: "re.Match[str]", add: _Add, kind: Kind) -> str:
    text = match.group().lower().rstrip(".!?:")
    if kind == "address":
        core = re.sub(r"^(?:https?://)?(?:www\.)?", "", text).rstrip("/")
        add(kind, rf"(?<![\w@.+-]){'' if '@' in core else r'(?:www[.])?'}{re.escape(core)}(?![\w@-]|\.\w)")
    else:
        add(kind, rf"(?<!\w){r' ?'.join(map(re.escape, text))}(?!\w)")
    # Marks the place, so that no quotation or name is read across it.
    return "\x00" + match.group()[len(text) :]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", text.lower())


def _words_pattern(words: list[str]) -> str:
    return rf"(?<![a-z0-9]){_GAP.join(map(re.escape, words))}(?![a-z0-9])"


def _amount_pattern(number: str) -> str:
    whole, _, cents = number.partition(".")
    value = re.escape(whole) + (rf"(?:[.]{cents})" if cents.strip("0") else r"(?:[.]0{1,2})?")
    sign = r"(?:[$€£]\s{0,80}|\b(?:usd|eur|gbp)\s{0,80}|\b(?:amount|sum)\W{1,4})"
    unit = r"\s{0,80}(?:usd|eur|gbp|dollars?|euros?|pounds?)\b"
    return rf"{sign}{value}(?![\d.,]*\d)|(?<![\d.,]){value}{unit}"


def _add_names(text: str, add: _Add) -> None:
    for found in _NAME.finditer(text):
        words = found.group().split(" ")
        before = text[: found.start()].rstrip(" \t*_#-(\"'")
        starts = not before or before[-1] in ".!?:;\n"
        if text[found.end() : found.end() + 1] == ":":
            continue
        while words and _ordinary(words[0]):
            words, starts = words[1:], False
        lowered = _words(" ".join(words))
        if not lowered or all(map(_ordinary, lowered)):
            continue
        if len(lowered) == 1:
            if not starts:
                add("word", _words_pattern(lowered))
        elif len(lowered) > 2 and _ordinary(lowered[-1]):
            # "Riverside View Hotel" is also called "Riverside View".
            add("name", _words_pattern(lowered[:-1]))
        else:
            add("name", _words_pattern(lowered))


def _ordinary(word: str) -> bool:
    word = word.lower()
    known = word in lexicon.STOP or word in lexicon.GENERIC or word in lexicon.ACTIONS
    return known or bool(lexicon.STANDING.fullmatch(word) or lexicon.MODAL.fullmatch(word))
