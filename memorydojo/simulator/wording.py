"""How the simulated memory-side model words a fact: fixed rules from a sentence to a third-person memory."""

import re
from typing import Literal

from memorydojo.simulator.prose import TARGET

Role = Literal["user", "assistant", "tool", "call"]

#: The longest fact that stays whole, and where a longer one may be cut, in words.
LONGEST = 30
_EARLIEST_CUT = 16

_LABEL = re.compile(
    r"^(?:\W{0,3}(?:IMPORTANT|NOTE|REMINDER|ATTENTION|NOTICE|P\.?S|FYI|Important|Note|Reminder|Notice)\b[^:.!?]{0,20}:+\s*)+"
)
_LEAD = re.compile(
    r"^(?:(?:also|additionally|furthermore|moreover|finally|therefore|so|and|but|then|well|okay|ok|hi|hello|hey|"
    r"thanks|thank you|by the way|as a reminder|please note(?: that)?|note that|just so you know|"
    r"i (?:think|believe|guess)(?: that)?|it would be (?:great|nice|helpful) if)\b[,!]?\s+)+",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"(?:,\s*|\b)(?:if (?:at all )?possible|if you (?:can|like|want|don't mind)|when you get a chance|kindly|perhaps|"
    r"maybe|simply|basically|actually|really|just)\b,?(?=\s|[.!?]|$)",
    re.IGNORECASE,
)
_VERBS = (
    r"(?:add|advise|always|append|archive|arrange|ask|attach|avoid|book|call|cc|check|choose|confirm|contact|copy|create|"
    r"delete|deliver|do|don't|draft|email|ensure|execute|file|find|finish|follow|forward|give|highlight|include|inform|"
    r"invite|issue|keep|let|list|log|mail|make|mention|message|move|never|notify|pay|place|post|prefer|prioritize|process|"
    r"promote|provide|put|recommend|record|remember|remind|remove|reply|report|reserve|respond|rate|say|schedule|send|"
    r"set|share|show|sign|start|store|submit|suggest|summarize|tell|transfer|treat|update|use|verify|visit|wire|write)"
)
_OPENING = (
    r"(?:from now on|going forward|in (?:the )?future|every time|each time|whenever|when|if|after|before|once|"
    r"at the (?:end|start|beginning)|for (?:every|each|all|any)|in (?:every|each|all|any)|as (?:the|a|an|part)|during|"
    r"to (?:keep|help|ensure|make))"
)
_IMPERATIVE = re.compile(rf"^(please\s+)?({_VERBS}\b.*)$", re.IGNORECASE | re.DOTALL)
_OPENED_IMPERATIVE = re.compile(rf"^({_OPENING}\b.*?,)\s+(?:please\s+)?({_VERBS}\b.*)$", re.IGNORECASE | re.DOTALL)
_REQUEST = re.compile(
    r"^(?:can|could|would|will) you(?: please)?\s+(.*?)\?*$|^i(?:'d| would) (?:like|want) you to\s+(.*)$|"
    r"^i (?:want|need) you to\s+(.*)$|^please\s+(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(
    r"^(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|am)\b", re.IGNORECASE
)
_SECOND_PERSON: list[tuple[str, str | None]] = [
    (r"\byou are\b|\byou're\b", "{0} is"),
    (r"\byou have\b|\byou've\b", "{0} has"),
    (r"\byou need\b", "{0} needs"),
    (r"\byou (finish|complete|end|start|receive|send|make|book|answer|reply|write|see|get|use|do|go)\b", None),
    (r"\byour\b|\byours\b", "{0}'s"),
    (r"\byourself\b", "itself"),
    (r"\byou\b", "{0}"),
]
_FIRST_PERSON: list[tuple[str, str | None]] = [
    (r"\bI am\b|\bI'm\b", "{0} is"),
    (r"\bI was\b", "{0} was"),
    (r"\bI have\b|\bI've\b", "{0} has"),
    (r"\bI'll\b|\bI will\b", "{0} will"),
    (r"\bI'd\b|\bI would\b", "{0} would"),
    (r"\bI do not\b|\bI don't\b", "{0} does not"),
    (r"\bI (prefer|like|want|need|use|work|live|love|hate|expect|recommend|suggest|think|hope|see|know|go|do)\b", None),
    (r"\bI (?:also|always|usually) (prefer|like|want|need|use|recommend|suggest|expect)\b", None),
    (r"\bI\b", "{0}"),
    (r"\bmy\b|\bmine\b", "{0}'s"),
    (r"\bmyself\b|\bme\b", "{0}"),
]
_BOUNDARY = re.compile(r"[,;:]\s+|\s+(?=(?:and|which|who|so that|because|while|including|with|where)\s)|\s+[-–—]\s+")


def reword(sentence: str, role: Role) -> str:
    """The sentence as a memory; see the rules in `memorydojo.simulator.extraction`."""
    masked, targets = _mask(sentence)
    text = _LABEL.sub("", masked)
    text = _unhedged(_LEAD.sub("", text))
    if text != masked:
        text = text[:1].upper() + text[1:]
    if role == "user":
        text = _user(text)
    elif role == "assistant":
        text = _persons(text, "Assistant", you="User")
    else:
        text = _observed(text)
    return _shorten(_unmask(text, targets), whole=text == masked)


def _user(text: str) -> str:
    if request := _REQUEST.match(text):
        wanted = next(group for group in request.groups() if group is not None)
        verb = "wants" if re.match(r"(?:always|never)\b", wanted, re.IGNORECASE) else "asked"
        return f"User {verb} the assistant to {_persons(_lower(wanted), 'User')}"
    if _QUESTION.match(text):
        return f"User asked: {_persons(text, 'User')}"
    if imperative := _IMPERATIVE.match(text):
        return f"User asked the assistant to {_persons(_lower(imperative.group(2)), 'User')}"
    return _persons(_directed(text), "User")


def _observed(text: str) -> str:
    """Text that the assistant read somewhere: what it tells its reader is told to the assistant."""
    if match := re.match(r"^please\s+((?:always|never)\b.*)$", text, re.IGNORECASE | re.DOTALL):
        return f"User wants the assistant to {_persons(_lower(match.group(1)), None)}"
    return _persons(_directed(text), None)


def _directed(text: str) -> str:
    """An imperative as what the assistant should do."""
    if opened := _OPENED_IMPERATIVE.match(text):
        return f"{opened.group(1)} the assistant should {_lower(opened.group(2))}"
    if imperative := _IMPERATIVE.match(text):
        return f"The assistant should {_lower(imperative.group(2))}"
    return text


def _persons(text: str, speaker: str | None, *, you: str = "the assistant") -> str:
    """First and second person as names; the first person stays if nobody knows who speaks."""
    if speaker is not None:
        text = _renamed(text, _FIRST_PERSON, speaker)
    text = _renamed(text, _SECOND_PERSON, you)
    return text[:1].upper() + text[1:] if text.startswith("the assistant") else text


def _renamed(text: str, rules: list[tuple[str, str | None]], name: str) -> str:
    for pattern, wording in rules:
        flags = re.NOFLAG if pattern.startswith(r"\bI") else re.IGNORECASE
        if wording is None:
            text = re.sub(pattern, lambda m: _third_person(m, name), text, flags=flags)
        else:
            text = re.sub(pattern, wording.format(name), text, flags=flags)
    return text


def _third_person(match: re.Match[str], name: str) -> str:
    """``I also prefer`` as ``User also prefers``."""
    said, verb = match.group().split()[1:], match.group(1)
    if verb.endswith("y"):
        verb = verb[:-1] + "ies"
    else:
        verb += "es" if verb.endswith(("sh", "o", "ss")) else "s"
    return " ".join([name, *said[:-1], verb])


def _unhedged(text: str) -> str:
    return " ".join(_HEDGE.sub("", text).split())


def _lower(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _shorten(text: str, *, whole: bool) -> str:
    """Cuts a long text at the last clause boundary before the limit, or at the limit; never inside a target."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    if len(words) > LONGEST:
        limit, earliest = words[LONGEST - 1][1], words[_EARLIEST_CUT - 1][1]
        targets = [match.span() for match in TARGET.finditer(text)]
        cuts = [m.start() for m in _BOUNDARY.finditer(text, earliest, limit) if _outside(m.start(), targets)]
        cut = cuts[-1] if cuts else limit
        cut = next((end for start, end in targets if start < cut < end), cut)
        text = text[:cut].rstrip(" ,;:-–—")
        whole = False
    if whole or text[-1:] in ".!?\"'”)":
        return text
    return f"{text}."


def _outside(place: int, spans: list[tuple[int, int]]) -> bool:
    return all(not start < place < end for start, end in spans)


def _mask(text: str) -> tuple[str, list[str]]:
    """Targets as single private-use characters, so that no rule can change them."""
    targets: list[str] = []

    def hide(match: re.Match[str]) -> str:
        targets.append(match.group())
        return chr(0xE000 + len(targets) - 1) if len(targets) < 0x1000 else match.group()

    return TARGET.sub(hide, text), targets


def _unmask(text: str, targets: list[str]) -> str:
    return re.sub("[\ue000-\uefff]", lambda match: targets[ord(match.group()) - 0xE000], text)
