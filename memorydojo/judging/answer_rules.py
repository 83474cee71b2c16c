"""The offline judge of answers to held-out questions: fixed rules for each type of question, without a model.

It sees question, reference and answer, and nothing else. Stated for readers in ``docs/offline-judge.md``; the agreement
with hand-made verdicts is measured by ``tests/judging/test_answer_rules.py``.

All texts are read alike: case folded, accents dropped, number words up to twenty as digits, amounts and thousands
without signs and commas, words stemmed roughly. An empty answer is wrong.

- *fact*: the reference, or one of the alternatives that it names ("... is also acceptable"), is in the answer: all of
  its numbers, and at least ``MOST`` of its content words that are not in the question (all of them if there are three
  or fewer). A bracketed addition counts as an alternative. An answer that says it does not know is wrong.
- *time*: as *fact*, but a count of days, weeks or months may be one off.
- *update*: as *fact*; in addition, if a sentence of the answer has the reference, no later sentence may say "still",
  "but now" or "actually" with another number or none of its words.
- *preference*: the reference is a rubric. Of the content words of its sentences that say what the user would like
  (those without "not"), the answer has at least ``RUBRIC_WORDS``, or a third if there are fewer than nine, the
  question's own words left out.
- *abstention*: the answer says that it is not known, was not told, or is missing.
"""

import re
import unicodedata
from collections.abc import Iterator

from memorydojo.history import HeldOutQuestion

MOST = 0.75
RUBRIC_WORDS = 3

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
}
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_STOP = frozenset(
    "a about above acceptable after all also am an and any are as at be been before being but by can could day did do "
    "does each for from had has have having he her his how i if in including into is it its last may me might more my "
    "not of off on one or our out over she should so some such than that the their them then there they this those to "
    "up user was we were what when where which while who will with would you your s t m re ve ll d".split()
)
_ALTERNATIVE = re.compile(r"(?<=[.;])\s+|\s*\bor\b\s*(?=\d)|\s*[()]\s*")
_ACCEPTED = re.compile(r"\balso (?:be )?(?:acceptable|accepted|correct|fine)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"\b(?:(?:do|does|did|has|have|could|can) not|\w{2,8}n't|cannot|never|no) (?:\w+ ){0,3}?"
    r"(?:know|say|said|tell|told|mention|mentioned|find|found|recall|remember|specify|specified|information|record|"
    r"memory|memories|provide|provided|answer|determine|have)\b|\b(?:unknown|not known|not mentioned|not specified|"
    r"not told|not provided|not enough information|no information|there is no (?:mention|record)|unclear|missing)\b",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\b(\d+)\s+(day|week|month|year)s?\b")
_FORGIVEN = frozenset({"day", "week", "month"})
_RETAKEN = re.compile(r"\b(?:still|but now|actually|no longer|not any ?more)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NEGATIVE = re.compile(r"\b(?:not|n't|never|avoid|dislike\w*)\b", re.IGNORECASE)


class AnswerRules:
    """Marks answers by fixed rules: deterministic, offline, blind to runs and memories."""

    id = "answer-rules"
    version = "1"

    def correct(self, question: HeldOutQuestion, answer: str) -> bool:
        """Whether an answer is right.

        Raises:
            UnknownNameError: The question is of no known type.
        """
        kind = question.judged_as
        if not answer.strip():
            return False
        unknown = _UNKNOWN.search(answer) is not None
        if kind == "abstention":
            return unknown
        reference = str(question.reference)
        if kind == "preference":
            return _uses(reference, question.text, answer)
        if unknown and len(_words(answer)) <= len(_words(reference)) + 12:
            return False
        if kind == "update" and _taken_back(reference, question.text, answer):
            return False
        return any(_holds(part, question.text, answer, off_by_one=kind == "time") for part in _alternatives(reference))


def _folded(text: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(_NUMBERS.get(word, word) for word in _THOUSANDS.sub("", plain).replace("’", "'").split(" "))


def _words(text: str) -> list[str]:
    """The words and numbers of a text, in order."""
    return [_NUMBERS.get(word, word) for word in _WORD.findall(_folded(text))]


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ies|ied|ed|es|s|e|y)$", "", word) if len(word) > 3 and word.isalpha() else word


def _content(text: str) -> dict[str, None]:
    """The stems of the content words, in order, each once; numbers are not among them."""
    return dict.fromkeys(_stem(word) for word in _words(text) if word not in _STOP and word.isalpha())


def _numbers(text: str) -> set[str]:
    return {word for word in _words(text) if not word.isalpha()}


def _alternatives(reference: str) -> Iterator[str]:
    """The answers that a reference accepts: what stands before the first of them, and each further one."""
    parts = [part for part in _ALTERNATIVE.split(reference) if part.strip(" .")]
    if _ACCEPTED.search(reference):
        yield parts[0]
        yield from (part for part in parts[1:] if _TIMES.search(_folded(part)) or _numbers(part))
        return
    yield reference
    bracket = re.fullmatch(r"(.+?)\s*\(([^()]+)\)\.?", reference.strip())
    if bracket:
        yield from bracket.groups()


def _holds(reference: str, question: str, answer: str, *, off_by_one: bool) -> bool:
    """Whether the answer has all that the reference says."""
    numbers, said = _numbers(reference), _numbers(answer)
    if off_by_one:
        spans = dict.fromkeys(_TIMES.findall(" ".join(_words(reference))))
        given = _TIMES.findall(" ".join(_words(answer)))
        for count, unit in spans:
            slack = 1 if unit in _FORGIVEN else 0
            if not any(u == unit and abs(int(c) - int(count)) <= slack for c, u in given):
                return False
            numbers.discard(count)
    if not numbers <= said:
        return False
    asked = _content(question)
    wanted = [stem for stem in _content(reference) if stem not in asked] or (
        [] if _numbers(reference) else list(_content(reference))
    )
    if not wanted:
        return True
    if off_by_one and _TIMES.search(" ".join(_words(reference))):
        wanted = [stem for stem in wanted if stem not in ("day", "week", "month", "year")]
    found = sum(stem in _content(answer) for stem in wanted)
    return found >= (len(wanted) if len(wanted) <= 3 else MOST * len(wanted))


def _taken_back(reference: str, question: str, answer: str) -> bool:
    """Whether the answer goes on from the reference to something else that is to hold instead."""
    given = False
    for sentence in _SENTENCE.split(answer):
        if _holds(reference, question, sentence, off_by_one=False):
            given = True
        elif given and _RETAKEN.search(sentence):
            return True
    return False


def _uses(rubric: str, question: str, answer: str) -> bool:
    """Whether the answer takes up what the rubric says that the user would like."""
    liked = " ".join(s for s in _SENTENCE.split(rubric) if not _NEGATIVE.search(s)) or rubric
    asked = {*_content(question), *map(_stem, ("prefer", "preferred", "response", "responses", "suggest"))}
    asked |= {*map(_stem, ("suggestions", "suggestion", "recommendations", "like", "likes"))}
    wanted = [stem for stem in _content(liked) if stem not in asked]
    found = sum(stem in _content(answer) for stem in wanted)
    return found >= min(RUBRIC_WORDS, max(1, round(len(wanted) / 3)))
