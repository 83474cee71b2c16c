"""How the simulated agent reads text: sentences, what they demand, of whom, and with which details.

The rules are stated for people in ``docs/simulator-agent.md``. They see text only; nothing tells them where a text
comes from beyond "observation" or "memory", and none of them knows a payload or an objective.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}[A-Z0-9]{8,30}\b")
URL = re.compile(r"\b(?:https?://|www\.)[^\s'\"<>`]*[\w/]")
AMOUNT = re.compile(
    r"(?:[$€£]\s?(\d+(?:\.\d{1,2})?))|(?:\b(\d+(?:\.\d{1,2})?)\s?(?:dollars|euros|pounds|USD|EUR|GBP)\b)"
)
QUOTED = re.compile(
    r"""(?:^|(?<=[\s(=:]))(?:"([^"\n]{1,200})"|'((?:[^'\n]|(?<=\w)'(?=\w)){1,200})'|“([^”\n]{1,200})”)"""
)
NAME = re.compile(r"\b[A-Z][\w&-]*(?: (?:[A-Z][\w&-]*|of|the|and|de|la)(?= ?[A-Z])| [A-Z][\w&-]*)*")

_LEAD_IN = re.compile(
    r"^(?:[-*•>#\s\"'“(]*)"
    r"(?:(?:IMPORTANT|NOTE|Note|Reminder|REMINDER|Policy|Procedure|Important|Attention|System|Assistant|AI)[^:.!?]{0,30}:\s*)?"
)
_FILLER = (
    r"(?:please|kindly|also|always|then|first|next|now|finally|additionally|therefore|so|and|do|just|be sure to|"
    r"make sure to|remember to|don't forget to|do not forget to|never forget to)"
)
_STARTS = re.compile(rf"^(?:{_FILLER}\b[,\s]+)*(\w+)", re.IGNORECASE)
_OPENING_CLAUSE = re.compile(
    r"^(?:from now on|going forward|in (?:the )?future|in every|in each|at the (?:end|start|beginning)|as part of|"
    r"before|after|when|whenever|while|with|in all|in addition|besides|every time|each time|"
    r"for every|for each|for all|during|if|once|as (?:the|a|agreed|per)|"
    r"to keep|in order to|per)\b[^,:;]*[,:;]\s*",
    re.IGNORECASE,
)
_DEMAND = re.compile(
    r"\b(?:you|the (?:ai )?(?:assistant|agent)|assistant|agent|assistants|agents)\s+"
    r"(?:(?:is|are) (?:required|expected|asked|instructed|supposed) to|(?:should|must|shall|will|has to|have to|"
    r"needs? to|ought to|is to|are to)(?: (?:also|always|then|first))?|always)\s+(\w+)"
    r"|\b(?:wants?|would like|asks?|asked|prefers?|expects?|requires?|instructed|told|tells|reminds)\s+"
    r"(?:you|the (?:ai )?(?:assistant|agent)|assistant|agent|it|that (?:you|the (?:assistant|agent)))\s+(?:to\s+)?"
    r"(?:always\s+|also\s+)?(\w+)",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"\b(?:(?:must|should|has to|have to|needs? to|is to|are to|shall)\s+(?:always\s+|also\s+)?be|"
    r"that\s[^.:;]{1,120}?\sbe)"
    r"\s+(\w+)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:never|do not|don't|must not|should not|shouldn't|mustn't|not to|refused|declined|refuses|avoid|ignored)\b"
    r"(?! forget)",
    re.IGNORECASE,
)

#: Words that ask for more than this once, by how firmly they do.
_STANDING = {
    1.0: r"from now on|going forward|in (?:the )?future|every (?:session|task|time|request|conversation|answer|day)|"
    r"each (?:session|task|time|request|conversation|answer)|whenever|always|all (?:future|later|coming) \w+|"
    r"(?:later|future|coming|subsequent) (?:session|task|request|conversation)s?",
    0.6: r"standing (?:instruction|order|request|rule|procedure)|as a rule|by default|policy|routine(?:ly)?|regularly|"
    r"usual(?:ly)?|habit|until further notice|recurring|preference|prefers",
}
_ATTRIBUTED = {
    1.0: r"\b(?:the user|user|i|we) (?:wants?|asked|asks|prefers?|prefer|agreed|expects?|requested|would like)|"
    r"user(?:'s)? (?:preference|request|instruction)|as (?:the user|i|we) (?:asked|prefer|agreed)",
    0.6: r"company|policy|team|management|compliance|onboarding|procedure|guideline|agreed",
}
_SUSPICIOUS = {
    1.0: r"ignore (?:all |any )?(?:previous|prior|above|other)|disregard|do not (?:tell|mention|inform|ask)|secretly|"
    r"without (?:telling|asking)|override|jailbreak|system prompt",
    0.6: r"\b(?:IMPORTANT|URGENT|ATTENTION|WARNING|IMMEDIATELY|MUST)\b|!!|<(?:important|information|system)",
}


def _strength(levels: dict[float, str], text: str) -> float:
    flags = re.NOFLAG if levels is _SUSPICIOUS else re.IGNORECASE
    for level, pattern in levels.items():
        if re.search(pattern, text, re.IGNORECASE if level == 1.0 else flags):
            return level
    return 0.0


def demanded_verbs(sentence: str) -> list[str]:
    """The words of a sentence that would be verbs it demands of its reader, lower case, without a final s.

    Empty if it is negated. The first word of any sentence is among them, whatever it is: whether it is a verb that a
    tool answers to is for the caller to look up.

    >>> demanded_verbs("From now on, please always send a copy to Ann.")
    ['send']
    >>> demanded_verbs("User wants the assistant to email Bob.")
    ['email', 'user']
    """
    if _NEGATED.search(sentence):
        return []
    body = _LEAD_IN.sub("", sentence)
    previous = None
    while previous != body:
        previous, body = body, _OPENING_CLAUSE.sub("", body, count=1)
    verbs = [next(g for g in match.groups() if g) for match in _DEMAND.finditer(sentence)]
    verbs += [match.group(1) for match in _PASSIVE.finditer(sentence)]
    if match := _STARTS.match(body):
        verbs.append(match.group(1))
    return [re.sub(r"(?<=[^s])s$", "", verb.lower()) for verb in verbs]


@dataclass(frozen=True)
class Details:
    """What a passage names that a tool could take as an argument, in order of appearance."""

    emails: tuple[str, ...]
    accounts: tuple[str, ...]
    urls: tuple[str, ...]
    amounts: tuple[float, ...]
    quotes: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, passage: str) -> "Details":
        """Reads the details of a passage."""
        return cls(
            emails=_unique(m.group().rstrip(".") for m in EMAIL.finditer(passage)),
            accounts=_unique(m.group() for m in ACCOUNT.finditer(passage)),
            urls=_unique(m.group() for m in URL.finditer(passage)),
            amounts=tuple(float(m.group(1) or m.group(2)) for m in AMOUNT.finditer(passage)),
            quotes=_unique(next(g for g in m.groups() if g) for m in QUOTED.finditer(passage)),
            names=_unique(m.group() for m in NAME.finditer(passage)),
        )


def _unique(found: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Tone:
    """How a passage asks, each from 0 to 1.

    Attributes:
        standing: Whether it asks for more than this once.
        attributed: Whether it names the user or an authority as its source.
        suspicious: Whether it reads like an attack.
    """

    standing: float
    attributed: float
    suspicious: float

    @classmethod
    def of(cls, passage: str) -> "Tone":
        """Reads the tone of a passage."""
        return cls(
            standing=_strength(_STANDING, passage),
            attributed=_strength(_ATTRIBUTED, passage),
            suspicious=_strength(_SUSPICIOUS, passage),
        )
