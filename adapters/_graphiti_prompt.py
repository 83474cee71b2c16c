"""Graphiti's requests: how sessions go in, and the simulated answers to everything that it asks.

Imports nothing of graphiti-core, so that the simulated model works on saved requests alone. The rules for readers are
in ``docs/simulator-memory.md``. What a section of a request holds is cut out by the fixed text around it: the first
opening, since what comes before is on one line, and the last closing, since a session may contain anything.
"""

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memorydojo.errors import InvalidInputError
from memorydojo.record import Message
from memorydojo.simulator.extraction import Fact, Line, extract
from memorydojo.simulator.prose import TARGET

SCORE_ROLE = "You are an expert at rating passage relevance. Respond with only a number from 0-100."
SCORE_QUESTION = """Rate how well this passage answers or relates to the query. Use a scale from 0 to 100.

Query: {query}

Passage: {passage}

Provide only a number between 0 and 100 (no explanation, just the number):"""

RELEVANCE_ROLE = "You are an expert tasked with determining whether the passage is relevant to the query"
RELEVANCE_QUESTION = "\n".join(
    (
        "",
        *(
            " " * 27 + line
            for line in (  # as in Graphiti's source
                'Respond with "True" if PASSAGE is relevant to QUERY and "False" otherwise.',
                "<PASSAGE>",
                "{passage}",
                "</PASSAGE>",
                "<QUERY>",
                "{query}",
                "</QUERY>",
                "",
            )
        ),
    )
)

_FORM_FOLLOWS = "\n\nRespond with a JSON object in the following format:\n\n"
_CALLED = "Called "
_SPEAKER = re.compile(r"^(user|assistant|tool [\w.-]+)(?: \(error\))?: ", re.MULTILINE)
_NAME = re.compile(
    r"(?<![.\w@/-])(?:[Tt]he user|User|user|[Tt]he assistant|Assistant|assistant)\b(?!['’]s)"
    r"|(?<![.\w@/-])[A-Z][\w&-]*(?: (?:of |de |van )?[A-Z][\w&-]*)*"
)
_NO_NAMES = frozenset(
    "i a an the this that these those it he she we they you if when whenever while once after before from for in on at "
    "to by as and or but so then also all any each every no not never always please note there here what which who how "
    "why where monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december today tomorrow yesterday going until during some future remember "
    "your my our their its his her only both".split()
)
_DATE = re.compile(r"\d{1,4}[-/.:]\d")
_LONGEST_QUOTED_NAME = 6
_RELATIONS = (
    ("ASKED", re.compile(r"\basked\b", re.IGNORECASE)),
    ("WANTS", re.compile(r"\b(?:wants?|prefers?|likes?|wishes)\b", re.IGNORECASE)),
    ("SHOULD", re.compile(r"\b(?:should|must|shall|ha(?:s|ve) to|needs? to)\b", re.IGNORECASE)),
    ("USED", re.compile(r"\bused\b", re.IGNORECASE)),
    ("IS", re.compile(r"\b(?:is|are|was|were)\b", re.IGNORECASE)),
)
_NEGATION = re.compile(r"\b(?:no longer|not|never|don't|doesn't|isn't|aren't)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_LONGEST_SUMMARY = 1000
_SUMMARY_FACTS = 3
_STEM = 5


def episode_text(messages: Iterable[Message]) -> str:
    """The session as one episode in Graphiti's form for conversations: ``speaker: text``.

    An observation is said by its tool; tool calls are lines of the assistant's.
    """
    lines = []
    for message in messages:
        if message.role == "tool":
            # A tool's name is no text of a session, but a user's own environment may name one anyhow.
            speaker = "tool " + (re.sub(r"[^\w.-]+", "_", message.tool or "") or "unknown")
            lines.append(f"{speaker} (error): {message.error}" if message.error else f"{speaker}: {message.text}")
        else:
            if message.text or not message.tool_calls:
                lines.append(f"{message.role}: {message.text}")
            lines.extend(f"assistant: {_CALLED}{call.text()}" for call in message.tool_calls)
    return "\n".join(lines)


def episode_lines(text: str) -> list[Line]:
    """Who says what in an episode."""
    starts = list(_SPEAKER.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    lines = []
    for match, stop in zip(starts, ends, strict=True):
        said = text[match.end() : stop].rstrip("\n")
        if match.group(1) == "user":
            lines.append(Line("user", said))
        elif match.group(1) != "assistant":
            lines.append(Line("tool", said))
        elif said.startswith(_CALLED):
            lines.append(Line("call", said.removeprefix(_CALLED)))
        else:
            lines.append(Line("assistant", said))
    return lines


def simulated_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers one of Graphiti's requests from its own text.

    Raises:
        InvalidInputError: Graphiti makes no such request.
    """
    messages = request["messages"]
    prompt = str(messages[-1]["content"])
    if str(messages[0]["content"]) == SCORE_ROLE:
        return {"role": "assistant", "content": str(_score(prompt))}
    if str(messages[0]["content"]) == RELEVANCE_ROLE:
        return {"role": "assistant", "content": "True"}  # it has no probabilities to give
    answer = _ANSWERS.get(_form(request, prompt))
    if answer is None:
        raise InvalidInputError("this is no request of Graphiti: it asks for no form of answer that Graphiti knows")
    return {"role": "assistant", "content": json.dumps(answer(prompt), ensure_ascii=False)}


def _form(request: Mapping[str, Any], prompt: str) -> str:
    """The name of the form in which an answer is wanted."""
    schema = (request.get("response_format") or {}).get("json_schema")
    if schema is not None:
        return str(schema.get("name"))
    try:
        return str(json.loads(prompt.rpartition(_FORM_FOLLOWS)[2])["title"])
    except (ValueError, KeyError, TypeError):
        return ""


def named_ends(fact: Fact) -> tuple[str, str] | None:
    """The two entities that a fact joins, or None if it names too few."""
    names = _names(fact.text)
    if len(names) == 1 and fact.role != "tool":
        speaker = "user" if fact.role == "user" else "assistant"
        names = [speaker, *names] if names[0] != speaker else names
    if len(names) < 2:
        return None
    others = [name for name in names[1:] if name not in ("user", "assistant")]
    addresses = [name for name in others if TARGET.fullmatch(name)]
    return names[0], addresses[0] if addresses else (others or names[1:])[-1]


def _names(text: str) -> list[str]:
    """What a text names, in order: user and assistant, addresses, links, accounts, quoted names, capitalized names."""
    found: list[tuple[int, str]] = []
    rest = list(text)
    for match in TARGET.finditer(text):
        rest[match.start() : match.end()] = " " * len(match.group())
        name = match.group().strip("\"'“”")
        quoted = name != match.group()
        named = 0 < len(name.split()) <= _LONGEST_QUOTED_NAME and not _DATE.match(name)
        if (quoted and named) or (not quoted and name[0] not in "$€£"):
            found.append((match.start(), name))
    for match in _NAME.finditer("".join(rest)):
        name = re.sub(r"^[Tt]he (?=user|assistant)", "", match.group())
        if name.lower() in ("user", "assistant"):
            found.append((match.start(), name.lower()))
            continue
        words = name.split()
        while words and words[0].lower() in _NO_NAMES:
            words.pop(0)
        # A single capital at the start of a sentence is spelling, unless something is said to belong to it.
        begins = re.search(r"(?:^|[.!?:]\s+)$", text[: match.start()]) is not None and words == name.split()
        owns = text[match.end() : match.end() + 2] in ("'s", "’s")
        if words and (len(words) > 1 or not begins or owns):
            found.append((match.start(), " ".join(words)))
    return _unique(name for _, name in sorted(found, key=lambda pair: pair[0]))


def _unique(names: Iterable[str]) -> list[str]:
    """The first of each name in any spelling."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(name.casefold(), name)
    return list(found.values())


def _entities(prompt: str) -> dict[str, Any]:
    if prompt.partition("\n</ENTITY TYPES>\n\n")[2].startswith("<TEXT>\n"):
        text = _section(prompt, "\n<TEXT>\n", "\n</TEXT>\n\nGuidelines:")
    else:
        text = _section(prompt, "\n</PREVIOUS MESSAGES>\n\n<CURRENT MESSAGE>\n", "\n</CURRENT MESSAGE>\n\n1. **Speaker")
    lines = episode_lines(text)
    speakers = [role for role in ("user", "assistant") if any(line.role == role for line in lines)]
    names = [name for fact in extract(lines) if (ends := named_ends(fact)) for name in ends]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in _unique([*speakers, *names])]}


def _edges(prompt: str) -> dict[str, Any]:
    text = _section(prompt, "\n</PREVIOUS_MESSAGES>\n\n<CURRENT_MESSAGE>\n", "\n</CURRENT_MESSAGE>\n\n<ENTITIES>\n")
    after = prompt[prompt.rindex("\n</CURRENT_MESSAGE>\n\n<ENTITIES>\n") :]
    entities = json.loads(_section(after, "<ENTITIES>\n", "\n</ENTITIES>"))
    known = {str(entity["name"]).casefold(): str(entity["name"]) for entity in entities}
    time = _section(after, "<REFERENCE_TIME>\n", "  # ISO 8601")
    edges = []
    for fact in extract(episode_lines(text)):
        ends = [known.get(name.casefold()) for name in named_ends(fact) or ()]
        if ends and all(ends) and ends[0] != ends[1]:
            relation = next((name for name, pattern in _RELATIONS if pattern.search(fact.text)), "RELATES_TO")
            edges.append(
                {
                    "source_entity_name": ends[0],
                    "target_entity_name": ends[1],
                    "relation_type": relation,
                    "fact": fact.text,
                    "valid_at": _utc(time),
                    "invalid_at": None,
                }
            )
    return {"edges": edges}


def _resolutions(prompt: str) -> dict[str, Any]:
    after = prompt[prompt.rindex("\n</CURRENT MESSAGE>\n\n<ENTITIES>\n") :]
    entities = json.loads(_section(after, "<ENTITIES>\n", "\n</ENTITIES>\n\n<EXISTING"))
    existing = json.loads(_section(after, "<EXISTING ENTITIES>\n", "\n</EXISTING ENTITIES>"))
    known = {_plain(str(entity["name"])): entity["candidate_id"] for entity in reversed(existing)}
    return {
        "entity_resolutions": [
            {"id": e["id"], "name": e["name"], "duplicate_candidate_id": known.get(_plain(str(e["name"])), -1)}
            for e in entities
        ]
    }


def _duplicates(prompt: str) -> dict[str, Any]:
    existing = ast.literal_eval(_section(prompt, "<EXISTING FACTS>\n", "\n</EXISTING FACTS>", last=False))
    others = ast.literal_eval(
        _section(prompt, "<FACT INVALIDATION CANDIDATES>\n", "\n</FACT INVALIDATION CANDIDATES>", last=False)
    )
    new = _section(prompt, "\n<NEW FACT>\n", "\n</NEW FACT>\n\nYou will receive TWO lists")
    return {
        "duplicate_facts": [fact["idx"] for fact in existing if _plain(fact["fact"]) == _plain(new)],
        "contradicted_facts": [fact["idx"] for fact in [*existing, *others] if _contradict(new, fact["fact"])],
    }


def _contradict(new: str, old: str) -> bool:
    """Whether two facts say the same of another address, link, account or amount, or one denies the other."""
    if _plain(new) == _plain(old):
        return False
    denied = _plain(_NEGATION.sub("", new)) == _plain(_NEGATION.sub("", old))
    others = TARGET.search(new) is not None and _plain(TARGET.sub("", new)) == _plain(TARGET.sub("", old))
    return denied or others


def _timestamps(prompt: str) -> dict[str, Any]:
    return {"valid_at": _utc(_section(prompt, "\n<REFERENCE TIME>\n", "\n</REFERENCE TIME>")), "invalid_at": None}


def _summaries(prompt: str) -> dict[str, Any]:
    after = prompt[prompt.rindex("\n<ENTITIES>\n") :]
    entities = json.loads(_section(after, "<ENTITIES>\n", "\n</ENTITIES>"))
    messages = _section(prompt, "\n<MESSAGES>\n", "\n</MESSAGES>\n").split("\n")
    facts = extract(episode_lines(str(json.loads(messages[-1]))))
    return {"summaries": [s for entity in entities if (s := _summary(entity, facts))["summary"]]}


def _summary(entity: Mapping[str, Any], facts: Sequence[Fact]) -> dict[str, str]:
    """The newest lines of the summary that fit; without a summary, the first facts that name the entity."""
    name, old = str(entity["name"]), str(entity.get("summary") or "")
    lines = old.split("\n") if old else []
    if not lines:
        lines = [fact.text for fact in facts if name.casefold() in fact.text.casefold()][:_SUMMARY_FACTS]
    while len(lines) > 1 and len("\n".join(lines)) > _LONGEST_SUMMARY:
        lines.pop(0)
    return {"name": name, "summary": "\n".join(lines)[:_LONGEST_SUMMARY]}


def _score(prompt: str) -> int:
    """How many of their words query and passage share: the cosine of their sets, from 0 to 100."""
    query = _section(prompt, "\nQuery: ", "\n\nPassage: ", last=False)
    passage = _section(prompt, "\n\nPassage: ", "\n\nProvide only a number between 0 and 100")
    asked, said = (
        {word.casefold()[:_STEM] for word in _WORD.findall(text) if len(word) > 2} for text in (query, passage)
    )
    return round(100 * len(asked & said) / math.sqrt(max(len(asked) * len(said), 1)))


def _section(prompt: str, opening: str, closing: str, *, last: bool = True) -> str:
    start = prompt.find(opening)
    start = start + len(opening) if start >= 0 else len(prompt)
    end = prompt.rfind(closing) if last else prompt.find(closing, start)
    if end < start:
        raise InvalidInputError(f"this is no request of Graphiti: it has no section after {opening.strip()!r}")
    return prompt[start:end]


def _plain(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text.casefold()) if word not in ("the", "a", "an"))


def _utc(time: str) -> str | None:
    try:
        moment = datetime.fromisoformat(time.strip())
    except ValueError:
        return None
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "ExtractedEntities": _entities,
    "NodeResolutions": _resolutions,
    "ExtractedEdges": _edges,
    "EdgeDuplicate": _duplicates,
    "EdgeTimestamps": _timestamps,
    "SummarizedEntities": _summaries,
}
