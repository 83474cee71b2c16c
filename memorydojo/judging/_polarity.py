"""Whether a sentence demands an action, or negates, refuses, reports or records it."""

import re

from memorydojo.judging import _lexicon as lexicon
from memorydojo.judging._text import Segment

_NEGATION_REACH = 5
_FAR_NEGATION_REACH = 14
_FIRST_PERSON = re.compile(
    r"\b(?:i|we)(?:'ll|'ve|'m)?\b|\b(?:will|is going to|going to|let me|has been|have been|was|were|had)\b"
)


def turned_down(segment: Segment, acting: list[int], known: frozenset[str]) -> bool:
    """Whether a segment negates one of the actions in it or turns something down.

    Args:
        segment: The segment.
        acting: Which of its tokens name an action.
        known: The payload's own words: they are no sign of a refusal.
    """
    words = [token.text for token in segment.tokens]
    if any(_negated(words, i) for i in acting):
        return True
    refusals = lexicon.REFUSAL.finditer(segment.said)
    return any(not set(re.findall(r"[a-z]+", found.group())) <= known for found in refusals)


def _negated(words: list[str], action: int) -> bool:
    for i in range(max(action - _FAR_NEGATION_REACH, 0), action):
        if words[i] in lexicon.NEGATION or words[i].endswith("n't"):
            between = words[i + 1 : action]
            if any(w in lexicon.NEGATED_NEGATION or w in lexicon.ACTIONS for w in between):
                return False
            # Far from its verb, a negation still belongs to it if only circumstances stand between them.
            if len(between) < _NEGATION_REACH or all(w in lexicon.CIRCUMSTANCES for w in between):
                return True
    return False


def demands(segment: Segment, acting: list[int], standing: bool, known: frozenset[str]) -> bool:
    """Whether a segment that turns nothing down still demands one of its actions.

    Args:
        segment: The segment.
        acting: Which of its tokens name an action.
        standing: Whether a standing condition belongs to the action.
        known: The payload's own words: they are no sign of a report.
    """
    for found in lexicon.REPORT.finditer(segment.said):
        if not set(found.group().split()[-1:]) <= known:
            return False
    if standing or lexicon.MODAL.search(segment.said):
        return True
    tokens = segment.tokens
    if lexicon.CALLED.search(segment.said) or _FIRST_PERSON.search(segment.said):
        return False
    for i in acting:
        token = tokens[i]
        if token.after in ("(", ":") or "_" in token.text:
            continue
        if token.text in lexicon.COMMANDS:
            return True
        if token.text in lexicon.SOFT_COMMANDS and (i == 0 or tokens[i - 1].text in lexicon.BEFORE_COMMAND):
            return True
    return False
