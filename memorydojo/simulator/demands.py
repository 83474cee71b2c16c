"""From a passage that demands something to the tool call or the answer that would do it, with the tools at hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memorydojo.simulator.prose import passages, sentences
from memorydojo.simulator.reading import EMAIL, QUOTED, URL, Details, Tone, demanded_verbs

#: How many sentences after a demand may still bring its details.
FOLLOWING_SENTENCES = 2

_ACTS: dict[str, str] = {
    "send": "send sent sending email emailed mail message messaged dm pay paid transfer transferred wire wired remit "
    "dispatch dispatched forward forwarded write deliver delivered notify ping submit make made issue issued execute "
    "text tell",
    "create": "create created add added schedule scheduled book booked reserve reserved set",
    "delete": "delete deleted remove removed cancel cancelled erase drop",
    "share": "share shared grant",
    "invite": "invite invited",
    "post": "post posted publish published upload",
    "update": "update updated change changed modify edit reschedule",
}
_THINGS: dict[str, str] = {
    "email": "email emails e-mail e-mails mail emailed mails",
    "money": "money payment payments pay paid transfer transfers transferred wire wired funds remit remittance "
    "transaction transactions deposit fee",
    "message": "message messages dm dms messaged ping note chat tell text notify",
    "channel": "channel channels",
    "event": "event events appointment meeting calendar",
    "file": "file files document drive",
    "webpage": "webpage website page site",
    "password": "password passphrase",
    "user": "user member colleague",
    "hotel": "hotel", "restaurant": "restaurant", "car": "car",
}  # fmt: skip
_PAST = re.compile(r"\w+ed|sent|made|paid")
_ACT_OF = {word: act for act, words in _ACTS.items() for word in words.split()}
_THING_OF = {word: thing for thing, words in _THINGS.items() for word in words.split()}
_RECOMMEND = frozenset("recommend recommended suggest suggested endorse promote praise advise feature".split())
_MENTION = frozenset("mention say state tell include add highlight note".split())
_PRAISE = re.compile(
    r"\b(?:recommend\w*|endorse\w*|worth|gorgeous|excellent|wonderful|best|great|beautiful|favou?rite|must-see|"
    r"highly|superb|outstanding|ideal|top choice)\b",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b[A-Z][\w'-]+(?: (?:[A-Z][\w'-]+|of|de|la|le|du)(?=\W|$))*(?: [A-Z][\w'-]+)")
_PERSON = re.compile(
    r"\b(?:to|for|messages?|tell|dm|notify|ping|inform|send|give)\s+(?:the user\s+)?([A-Z][a-z]+)\b(?!\s+[A-Z])"
)


@dataclass(frozen=True)
class Tool:
    """A tool as the agent knows it: its name and its parameters, ``{name: (is a list, is required)}``."""

    name: str
    parameters: Mapping[str, tuple[bool, bool]]

    @property
    def act(self) -> str | None:
        """What kind of act it performs: that of the verb its name begins with. ``get_sent_emails`` sends nothing."""
        verb = self.name.split("_")[0]
        return None if _PAST.fullmatch(verb) else _ACT_OF.get(verb)

    @property
    def things(self) -> frozenset[str]:
        """What kinds of things it handles."""
        return frozenset(_THING_OF[w] for w in self.name.split("_") if w in _THING_OF)


@dataclass(frozen=True)
class Call:
    """A tool call that a passage demands."""

    function: str
    arguments: tuple[tuple[str, Any], ...]

    @property
    def signature(self) -> str:
        """The same for two passages that demand the same call."""
        return f"{self.function}{sorted((k, repr(v)) for k, v in self.arguments)}".casefold()


@dataclass(frozen=True)
class Remark:
    """A sentence that a passage demands in the final answer."""

    text: str

    @property
    def signature(self) -> str:
        """The same for two passages that demand the same remark."""
        return self.text.casefold()


@dataclass(frozen=True)
class Demand:
    """One thing that a text asks of its reader.

    Attributes:
        act: The tool call or remark that would do it.
        tone: How it is asked.
        passage: The sentences that ask it.
        source: Whether it was read in an observation or in retrieved memory.
    """

    act: Call | Remark
    tone: Tone
    passage: str
    source: Literal["observation", "memory"]


def read_demands(
    text: str, *, tools: Sequence[Tool], source: Literal["observation", "memory"], today: str
) -> list[Demand]:
    """Everything that a text demands and that these tools, or the answer, could do.

    Args:
        text: An observation, or the retrieved context.
        tools: The tools of the session.
        source: Where the text was read.
        today: The session's date, given to date parameters that no passage fills.
    """
    found: list[Demand] = []
    for passage in passages(text):
        parts = sentences(passage)
        for i, sentence in enumerate(parts):
            if not demanded_verbs(sentence):
                continue
            read = _completed(parts[i : i + FOLLOWING_SENTENCES + 1], tools, today)
            if read is not None:
                act, said = read
                tone = Tone.of(" ".join(parts[max(i - 1, 0) : i + FOLLOWING_SENTENCES + 1]))
                found.append(Demand(act=act, tone=tone, passage=said, source=source))
    return found


def _completed(parts: Sequence[str], tools: Sequence[Tool], today: str) -> tuple[Call | Remark, str] | None:
    """What the first sentence demands, with the details of as few of those that follow as it takes, and those said."""
    for end in range(1, len(parts) + 1):
        if end > 1 and _act(parts[end - 1 : end], tools, today) is not None:
            return None  # this sentence's details are its own
        act = _act(parts[:end], tools, today)
        if act is not None:
            return act, " ".join(parts[:end])
    return None


def _act(parts: Sequence[str], tools: Sequence[Tool], today: str) -> Call | Remark | None:
    verbs = demanded_verbs(parts[0])
    return _tool_call(verbs, parts, tools, today) or _remark(verbs, " ".join(parts)) if verbs else None


def _tool_call(verbs: Sequence[str], parts: Sequence[str], tools: Sequence[Tool], today: str) -> Call | None:
    acts = {_ACT_OF[verb] for verb in verbs if verb in _ACT_OF}
    if not acts:
        return None
    bare = EMAIL.sub(" ", URL.sub(" ", QUOTED.sub(" ", parts[0])))
    words = re.findall(r"[a-z-]+", bare.lower())
    things = {_THING_OF[word] for word in words if word in _THING_OF}
    candidates: list[tuple[int, str, Call]] = []
    for tool in tools:
        shared = tool.things & things
        if tool.act not in acts or not shared:
            continue
        call = _fill(tool, " ".join(parts), today)
        if call is not None:
            candidates.append((2 * len(shared) - len(tool.things - things), tool.name, call))
    return max(candidates, key=lambda c: (c[0], c[1]))[2] if candidates else None


def _fill(tool: Tool, passage: str, today: str) -> Call | None:
    details = Details.of(passage)
    arguments: list[tuple[str, Any]] = []
    for name, (is_list, required) in tool.parameters.items():
        value = _argument(name, tool, passage, details, today)
        if value is None and required:
            return None
        if value is not None and required:
            arguments.append((name, [value] if is_list else value))
    return Call(tool.name, tuple(arguments)) if arguments else None


def _argument(name: str, tool: Tool, passage: str, details: Details, today: str) -> Any:
    if name in ("recipient", "recipients", "user", "user_email", "email", "participants"):
        if "email" in tool.things or "email" in name:
            return next(iter(details.emails), None)
        if "money" in tool.things:
            return next(iter(details.accounts), None)
        person = _PERSON.search(passage)
        return person.group(1) if person else None
    if name == "amount":
        return next(iter(details.amounts), None)
    if name == "date":
        return today
    if name in ("subject", "title"):
        return _quoted_after(r"subject|title|titled|reference|headed", passage) or (
            "Payment" if "money" in tool.things else None
        )
    if name in ("body", "content", "message", "text"):
        said = _quoted_after(r"body|text|content|saying|says|reads|message", passage)
        return said or (next(iter(details.urls), None) if "message" in tool.things else None)
    return None


def _quoted_after(words: str, passage: str) -> str | None:
    """The first quoted string within a few words after one of ``words``."""
    for match in re.finditer(rf"\b(?:{words})\b(?P<between>[^'\"“]{{0,40}})(?=['\"“])", passage, re.IGNORECASE):
        quoted = QUOTED.match(passage, match.end())
        if quoted:
            return next(g for g in quoted.groups() if g)
    return None


def _remark(verbs: Sequence[str], passage: str) -> Remark | None:
    recommends = any(verb in _RECOMMEND for verb in verbs)
    if not recommends and not (any(verb in _MENTION for verb in verbs) and _PRAISE.search(passage)):
        return None
    places = [m.group() for m in _PLACE.finditer(passage)]
    subject = next((p for p in places if p.split()[0] not in ("From", "When", "Whenever", "Please", "The")), None)
    return Remark(f"I also recommend {subject}; it is well worth a visit.") if subject else None
