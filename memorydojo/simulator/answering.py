"""The simulated agent answers the held-out question by quoting what memory delivered, by stated rules.

It sees the question, its date and the delivered texts, and nothing else. The same rules for readers:
``docs/simulator-agent.md``.

1. *Sentences.* The delivered texts are split into sentences (`prose`), each once. A sentence's date is the first ISO
   date in it, else the first one in its text.
2. *Score.* The share of the question's content words that a sentence has, each weighted by how rare it is among the
   sentences; words that only shape a question ("how many days", "together") do not count. A word that only the sentence
   before it in the same passage has counts half. A sentence that asks something gets a tenth of its score.
3. *Nothing found.* If words of the question with more than ``MISSING`` of its weight stand nowhere in what was
   delivered, or the best score is below ``ENOUGH``, the answer is that it is not known.
4. *Advice.* Asked for a suggestion, it quotes up to ``MOST_QUOTED`` sentences that state a preference or habit of the
   user, the best first, whatever their score; without any it is not known.
5. *Counting time.* "How many days/weeks/months ... between/passed": the time between the dates of the best two
   sentences of different dates. "... ago": between the best dated sentence and the question's date.
6. *Several.* If the question asks for more than one thing ("two", "both", "together", "total", "all", "list"), it
   quotes up to ``MOST_QUOTED`` sentences that score at least ``ALSO`` of the best. It adds up nothing.
7. *One.* Else it quotes one sentence: of those that score at least ``ALSO`` of the best the one with the latest date;
   of equally late or undated ones the best, then the one that was delivered first. The sentence after it in the same
   passage is quoted too.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from memorydojo.simulator.prose import passages, sentences, stems

ENOUGH = 0.4
MISSING = 0.5
ALSO = 0.75
MOST_QUOTED = 3
UNKNOWN = "I do not know; my memories do not say."

_ASKED = 0.1
_BEFORE = 0.5
_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_ADVICE = re.compile(r"\b(?:suggest|recommend(?: me)?|advice|advise|tips?|ideas?|what should i)\b", re.IGNORECASE)
_PAST_ADVICE = re.compile(r"\byou(?: once)? (?:suggest|recommend)ed|\bdid you\b", re.IGNORECASE)
_PREFERENCE = re.compile(
    r"\b(?:I|my|me|user)\b.*\b(?:prefer\w*|favou?rite|likes?|loves?|enjoys?|hates?|dislikes?|always|never|usual\w*|"
    r"allergic|needs?)\b|\b(?:my|user['’]s) (?:\w+ )?favou?rite\b|\bfavou?rite\b.*\b(?:for|of) (?:me|user)\b",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"\bhow many (day|week|month)s\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|passed|after|before|since)\b", re.IGNORECASE)
_AGO = re.compile(r"\bago\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:two|three|four|both|together|total|altogether|all|list)\b", re.IGNORECASE)
_SHAPING = stems(
    "how many much long often did does day days week weeks month months passed between ago since two three four both "
    "together total altogether all list once name where recommend suggest tell told mention say said"
)
_DAYS = {"day": 1, "week": 7, "month": 30}
_SPEAKER = re.compile(r"^(?:User|Assistant): ")


@dataclass(frozen=True)
class _Said:
    """A sentence of what was delivered.

    Attributes:
        text: The sentence.
        following: The one after it in the same passage, or an empty text.
        order: Its place among all sentences.
        date: Its date, if one is known.
        score: How much of the question it has.
    """

    text: str
    following: str
    order: int
    date: date | None
    score: float


def answer(question: str, memories: Sequence[str], *, today: datetime | None) -> str:
    """The answer to a question from delivered memories.

    Args:
        question: What is asked.
        memories: The delivered texts, in order.
        today: The question's date.
    """
    reading = _Reading(question, memories)
    said = reading.said
    if _ADVICE.search(question) and not _PAST_ADVICE.search(question):
        stated = [s for s in said if _PREFERENCE.search(s.text) and not s.text.endswith("?")]
        return " ".join(s.text for s in stated[:MOST_QUOTED]) or UNKNOWN
    if not said or reading.missing > MISSING or said[0].score < ENOUGH:
        return UNKNOWN
    if counted := _COUNTED.search(question):
        time = _time(question, said, today)
        if time is not None:
            unit = counted.group(1).lower()
            return f"{round(abs(time) / _DAYS[unit])} {unit}s"
    near = [s for s in said if s.score >= ALSO * said[0].score]
    if _SEVERAL.search(question):
        return " ".join(s.text for s in near[:MOST_QUOTED])
    best = max(near, key=lambda s: (s.date or date.min, s.score, -s.order))
    return f"{best.text} {best.following}".strip()


def _time(question: str, said: Sequence[_Said], today: datetime | None) -> int | None:
    """The days that the question asks for, if the memories hold the dates."""
    dated = [s.date for s in said if s.date is not None and s.score > 0]
    if not dated:
        return None
    if _AGO.search(question):
        return (today.date() - dated[0]).days if today is not None else None
    other = next((found for found in dated if found != dated[0]), None)
    return (other - dated[0]).days if other is not None and _BETWEEN.search(question) else None


class _Reading:
    """The sentences of what was delivered, against a question."""

    def __init__(self, question: str, memories: Sequence[str]) -> None:
        found: dict[str, tuple[frozenset[str], str, date | None]] = {}
        words: dict[str, frozenset[str]] = {}
        for memory in memories:
            whole = _date(memory)
            for passage in passages(memory):
                before: frozenset[str] = frozenset()
                said = [_SPEAKER.sub("", sentence) for sentence in sentences(passage)]
                for text, following in zip(said, [*said[1:], ""], strict=True):
                    words[text] = stems(text)
                    found.setdefault(text, (before, following, _date(text) or whole))
                    before = words[text]
        often = Counter(stem for text in words.values() for stem in text)
        self.weights = {
            stem: math.log(1 + len(found) / (1 + max(often[stem], 1)))
            for stem in stems(question)
            if stem not in _SHAPING
        }
        self.missing = self._share(self.weights.keys() - often.keys())
        scored = (
            _Said(text, following, order, when, self._score(text, words[text], before))
            for order, (text, (before, following, when)) in enumerate(found.items())
        )
        self.said = sorted(scored, key=lambda s: (-s.score, s.order))

    def _share(self, words: Iterable[str]) -> float:
        whole = sum(self.weights.values())
        return sum(self.weights.get(word, 0.0) for word in words) / whole if whole else 0.0

    def _score(self, text: str, own: frozenset[str], before: frozenset[str]) -> float:
        score = self._share(own) + _BEFORE * self._share(before - own)
        return score * (_ASKED if text.endswith("?") else 1)


def _date(text: str) -> date | None:
    for match in _DATE.finditer(text):
        try:
            return date(*(int(part) for part in match.groups()))
        except ValueError:
            continue  # no such day
    return None
