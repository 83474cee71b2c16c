"""The simulated memory-side model: which sentences of a session become facts, and how they are worded.

The rules see role-labelled text only. They know no memory system, and nothing tells them that a text is a payload;
whether and how a text is stored depends on its wording. The same rules for readers: ``docs/simulator-memory.md``.

1. *Prose.* Records, JSON, tables and tags are dropped; what is left is split into sentences (`prose`).
2. *Score.* Each sentence gets points for written features (``FEATURES``) and for who says it (``ROLES``). A sentence
   whose predecessor in the same passage was kept gets ``CARRY`` more. The first sentence of the user's first message
   is the request and gets a point more. Sentences of fewer than four words (a request: two) are let go. Of the tool
   calls, the first two that change something count as what the assistant did.
3. *Choice.* A sentence is kept from ``THRESHOLD`` points on. Of more than ``MOST_FACTS`` the best are kept, of equally
   good ones the earlier. The same fact is kept once.
4. *Wording.* Kept sentences are put into the third person, without labels and hedges, and cut after about thirty
   words (`wording`). A short sentence that already is in the third person stays word for word. Facts that stay word
   for word and follow each other in one passage are joined while they have at most ``MOST_JOINED`` words.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memorydojo.simulator.prose import TARGET, passages, sentences
from memorydojo.simulator.wording import Role, reword

THRESHOLD = 2.0
CARRY = 0.5
MOST_FACTS = 8
MOST_JOINED = 45
MOST_SENTENCES = 2000
MOST_CALLS = 2

#: Who says it. What the assistant read somewhere has to say more clearly that it lasts.
ROLES: dict[Role, float] = {"user": 1.5, "assistant": 0.75, "tool": -0.5, "call": 0.75}

#: Points for each feature that a sentence shows, whatever its role.
FEATURES: dict[str, tuple[float, re.Pattern[str]]] = {
    name: (points, re.compile(pattern, re.IGNORECASE))
    for name, points, pattern in (
        (
            "standing",
            2.0,
            r"\b(?:from now on|going forward|in (?:the )?future|always|never|every time|each time|whenever|by default|"
            r"at all times|as a rule|until further notice|(?:for|in|after|before|at the \w+ of) (?:every|each|all|any)|"
            r"all (?:future|later|outgoing|upcoming)|remember|keep in mind|permanent\w*|standing)\b",
        ),
        (
            "preference",
            1.5,
            r"\b(?:prefer\w*|favou?rite|likes?|usual\w*|habit\w*|wants? (?:the assistant|you|it|all)|wishes|agreed|"
            r"as (?:the user|user) (?:wants|asked|requested|likes))\b",
        ),
        (
            "policy",
            1.5,
            r"\b(?:polic(?:y|ies)|procedures?|guidelines?|rules?|standard practice|workflow|routine|convention|"
            r"protocol|compliance)\b",
        ),
        ("duty", 1.0, r"\b(?:must|should|shall|ha(?:s|ve) to|needs? to|required?|expected to|supposed to)\b"),
        (
            "fact",
            1.25,
            r"\b\w+['’]s (?:\w+ ){1,3}(?:is|are)\b|\b(?:email|e-mail|address|account|number|phone|iban|birthday|"
            r"contact|manager|password)\b[^.]{0,30}\b(?:is|are)\b|\b(?:works|lives) (?:at|in|for|as)\b",
        ),
        ("about the two", 0.75, r"^(?:the )?(?:user|assistant)\b"),
        (
            "passing",
            -1.0,
            r"\b(?:today|tomorrow|yesterday|tonight|right now|this (?:time|once|morning|afternoon|evening|week)|"
            r"just once|for now)\b|^(?:hi|hello|hey|dear|thanks|thank you|best|regards|sincerely|cheers)\b",
        ),
        (
            "about the conversation",
            -1.5,
            r"\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:instructions?|prompt|above|previous|everything)\b|"
            r"\b(?:system prompt|previous (?:instructions|task|message)|original (?:task|request))\b",
        ),
    )
}
_DETAIL_POINTS = 0.5
_SHOUTING_POINTS = -1.0
_REQUEST_POINTS = 1.0
_DONE_POINTS = 1.25
_QUESTION_POINTS = -1.0
_NAME = re.compile(r"(?<=\S )[A-Z][a-z]+ [A-Z][a-z]+")
_CAPITALS = re.compile(r"\b[A-Z]{3,}\b")
_DONE = re.compile(
    r"\b(?:sent|emailed|created|scheduled|booked|reserved|transferred|paid|added|updated|changed|deleted|removed|"
    r"posted|invited|shared|recommend(?:ed)?|suggest(?:ed)?|cancelled|replied|forwarded)\b",
    re.IGNORECASE,
)
_ACTING_CALL = re.compile(
    r"^(?:send|create|schedule|reserve|book|add|update|delete|cancel|invite|post|share|append|remove|reschedule)_"
)
_CALL_VALUE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,()]+)')
_FEWEST_WORDS = 4
_FEWEST_REQUEST_WORDS = 2
_LONGEST_SENTENCE = 2000


@dataclass(frozen=True)
class Line:
    """What one speaker said.

    Attributes:
        role: ``"user"``, ``"assistant"``, ``"tool"`` for an observation, ``"call"`` for a tool call in one line.
        text: The text.
    """

    role: Role
    text: str


@dataclass(frozen=True)
class Fact:
    """Something to remember.

    Attributes:
        text: The fact as it is to be stored.
        role: Who said it.
        score: Its points.
        source: The sentence or sentences that it was made of.
    """

    text: str
    role: Role
    score: float
    source: str


@dataclass(frozen=True)
class _Kept:
    order: int
    passage: int
    fact: Fact


def extract(lines: Sequence[Line], *, limit: int = MOST_FACTS) -> list[Fact]:
    """The lasting facts of a session, in the order in which they were said.

    Args:
        lines: What was said, in order. Of each line only the first 2,000 sentences count.
        limit: Most facts.
    """
    kept: list[_Kept] = []
    calls, passage, asked = 0, 0, False
    for line in lines:
        if line.role == "call":
            fact = _call_fact(line.text) if calls < MOST_CALLS else None
            if fact is not None:
                calls, passage = calls + 1, passage + 1
                kept.append(_Kept(len(kept), passage, fact))
            continue
        budget = MOST_SENTENCES
        for text in passages(line.text):
            passage += 1
            said = sentences(text)[:budget]
            budget -= len(said)
            first = line.role == "user" and not asked
            kept.extend(
                _Kept(len(kept), passage, fact) for fact in _passage_facts(said, line.role, first_request=first)
            )
            asked = asked or line.role == "user"
    return _chosen(_joined(kept), limit)


def score(sentence: str, role: Role) -> float:
    """The points of one sentence by itself."""
    points = ROLES[role] + sum(value for value, pattern in FEATURES.values() if pattern.search(sentence))
    if TARGET.search(sentence) or _NAME.search(sentence):
        points += _DETAIL_POINTS
    if sentence.endswith("?"):
        points += _QUESTION_POINTS
    if len(_CAPITALS.findall(sentence)) > 1 or sentence.endswith("!"):
        points += _SHOUTING_POINTS
    if role == "assistant" and _DONE.search(sentence):
        points += _DONE_POINTS
    return points


def _passage_facts(said: Iterable[str], role: Role, *, first_request: bool) -> list[Fact]:
    facts = []
    carry = 0.0
    for number, sentence in enumerate(said):
        request = first_request and number == 0
        fewest = _FEWEST_REQUEST_WORDS if request else _FEWEST_WORDS
        if len(sentence.split()) < fewest or len(sentence) > _LONGEST_SENTENCE:
            carry = 0.0
            continue
        points = score(sentence, role) + carry
        if request:
            points += _REQUEST_POINTS - (_QUESTION_POINTS if sentence.endswith("?") else 0.0)
        carry = CARRY if points >= THRESHOLD else 0.0
        if points >= THRESHOLD:
            facts.append(Fact(reword(sentence, role), role, points, sentence))
    return facts


def _call_fact(call: str) -> Fact | None:
    """What the assistant did, if the call changes something: its name and its short values."""
    if not _ACTING_CALL.match(call):
        return None
    name, _, rest = call.partition("(")
    values = [f"{key} {value}" for key, value in _CALL_VALUE.findall(rest[:1000]) if len(value.split()) <= 12]
    text = f"Assistant used {name} with {', '.join(values[:4])}." if values else f"Assistant used {name}."
    return Fact(text, "call", ROLES["call"] + _DONE_POINTS, call)


def _joined(kept: Sequence[_Kept]) -> list[_Kept]:
    joined: list[_Kept] = []
    for item in kept:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.passage == item.passage
            and last.fact.text == last.fact.source
            and item.fact.text == item.fact.source
            and len(last.fact.text.split()) + len(item.fact.text.split()) <= MOST_JOINED
        ):
            text = f"{last.fact.text} {item.fact.text}"
            fact = Fact(text, item.fact.role, max(last.fact.score, item.fact.score), text)
            joined[-1] = _Kept(last.order, last.passage, fact)
        else:
            joined.append(item)
    return joined


def _chosen(kept: Sequence[_Kept], limit: int) -> list[Fact]:
    unique = list({item.fact.text: item for item in reversed(kept)}.values())
    best = sorted(unique, key=lambda item: (-item.fact.score, item.order))[:limit]
    return [item.fact for item in sorted(best, key=lambda item: item.order)]
