"""A-MEM's two requests and their answers: what an answer must look like, and the simulated answers.

Imports nothing of a-mem, so that the simulated model works on saved requests alone.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorydojo.adapters._state import unicode
from memorydojo.errors import InvalidInputError, ModelError
from memorydojo.simulator.extraction import FEATURES, Fact, Line, extract
from memorydojo.simulator.prose import TARGET, sentences
from memorydojo.simulator.transcript import lines

_ANALYSED = "Content for analysis:\n            "
_CONTENT = re.compile(r"\n *content: ")
_KEYWORDS = re.compile(r"\n *keywords: ")
_NEIGHBOURS = re.compile(r"\n\n *The nearest neighbors memories \(each line starts with memory_id\):\n")
_NUMBER = re.compile(r"\n *The number of neighbors is (\d+)\.\n")
_ROW = re.compile(r"^ *memory_id:(\S+)\ttalk start time:", re.MULTILINE)
_FIELDS = ("memory context", "memory keywords", "memory tags")
_WORD = re.compile(r"[A-Za-z][A-Za-z-]{3,}")
_TAGGED = {"standing": "standing instruction", "preference": "preference", "policy": "policy"}
_MOST_KEYWORDS, _MOST_TAGS, _CONTEXT_FACTS, _SHARED = 7, 8, 2, 2
_NOTHING = "A session from which nothing lasting follows."
_COMMON = frozenset(
    "about above after again also always another asked assistant away back been before being both came come could does "
    "done down each else even every find following from further future give given have here into just know last like "
    "make many more most much must need never next once only other over please same should since some such sure take "
    "than that their them then there these they this those through under until used user using very want wants well "
    "were what when where which while will with within without would your".split()
)


def properties(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a request wants of its answer; none if the request is none of A-MEM's."""
    try:
        return dict(response_format["json_schema"]["schema"]["properties"])
    except (KeyError, TypeError, ValueError):
        return {}


def checked_answer(text: str, response_format: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer, decoded as A-MEM decodes it.

    Raises:
        ModelError: A-MEM would go on without what the answer should have said, or fail in the middle of the write.
    """
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise ModelError(f"the chat model's answer is no JSON ({error}): {text[:200]!r}") from error
    if not isinstance(answer, dict):
        raise ModelError(f"the chat model's answer is no JSON object: {text[:200]!r}")
    return {name: _checked(answer, name, kind) for name, kind in properties(response_format).items()}


def _checked(answer: Mapping[str, Any], name: str, kind: Mapping[str, Any]) -> Any:
    if name not in answer:
        raise ModelError(f"the chat model's answer lacks {name!r}: {str(answer)[:200]!r}")
    if not _is(answer[name], kind):
        raise ModelError(f"the chat model's answer has {name!r} in a wrong form: {str(answer[name])[:200]!r}")
    return _valid(answer[name])


def _is(value: Any, kind: Mapping[str, Any]) -> bool:
    if kind["type"] == "array":
        return isinstance(value, list) and all(_is(item, kind["items"]) for item in value)
    return isinstance(value, {"string": str, "boolean": bool}[kind["type"]])


def _valid(value: Any) -> Any:
    if isinstance(value, list):
        return [_valid(item) for item in value]
    return unicode(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Neighbour:
    """A stored note as an evolution request shows it."""

    id: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]


def simulated_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers one of A-MEM's requests by the rules in ``docs/simulator-memory.md``, from its own text only.

    Raises:
        InvalidInputError: It is no request of A-MEM.
    """
    wanted = properties(request.get("response_format") or {})
    prompt = str(request["messages"][-1]["content"])
    if "should_evolve" in wanted:
        answer = _evolution(prompt)
    elif "keywords" in wanted and _ANALYSED in prompt:
        answer = _analysis(lines(prompt.partition(_ANALYSED)[2]))
    else:
        raise InvalidInputError("this is no request of A-MEM: it asks neither for an analysis nor for an evolution")
    return {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}


def _analysis(said: Sequence[Line]) -> dict[str, Any]:
    best = extract(said, limit=_CONTEXT_FACTS)
    return {
        "keywords": _keywords(said),
        "context": " ".join(fact.text for fact in best) or _NOTHING,
        "tags": _tags(said),
    }


def _keywords(said: Sequence[Line]) -> list[str]:
    """The most frequent words of the request and the facts; of equally frequent ones the first."""
    request = next((line.text for line in said if line.role == "user"), "")
    texts = [request[:2000], *(fact.text for fact in extract(said))]
    words = (word.lower() for text in texts for word in _WORD.findall(TARGET.sub(" ", text)))
    return [word for word, _ in Counter(w for w in words if w not in _COMMON).most_common(_MOST_KEYWORDS)]


def _tags(said: Sequence[Line]) -> list[str]:
    """What the session's tools are about, and which kinds of lasting facts it has."""
    names = [line.text.partition("(")[0] for line in said if line.role == "call"]
    things = [" ".join(name.split("_")[1:]) or name for name in dict.fromkeys(names)]
    kinds = [tag for name, tag in _TAGGED.items() if any(_shows(name, fact) for fact in extract(said))]
    return list(dict.fromkeys(["task" if names else "conversation", *things[:3], *kinds]))


def _shows(feature: str, fact: Fact) -> bool:
    return FEATURES[feature][1].search(fact.source) is not None


def _evolution(prompt: str) -> dict[str, Any]:
    content, keywords, neighbours = parse_evolution(prompt)
    said = lines(content)
    shared = [[k for k in keywords if k in neighbour.keywords] for neighbour in neighbours]
    related = [len(common) >= _SHARED for common in shared]
    standing = [fact for fact in extract(said) if _shows("standing", fact)]
    news = max(standing, key=lambda fact: fact.score).text if standing else None
    common = next((common for common, is_related in zip(shared, related, strict=True) if is_related), [])
    pairs = list(zip(neighbours, shared, related, strict=True))
    return {
        "should_evolve": any(related),
        "actions": ["strengthen", "update_neighbor"] if any(related) else [],
        "suggested_connections": [n.id for n, _, is_related in pairs if is_related],
        "tags_to_update": _with(_tags(said), common),
        "new_context_neighborhood": [_context(n.context, news if r else None) for n, _, r in pairs],
        "new_tags_neighborhood": [_with(n.tags, c if r else []) for n, c, r in pairs],
    }


def _with(tags: Sequence[str], shared: Sequence[str]) -> list[str]:
    """Tags with the first shared keyword that is none of them yet."""
    return [*tags, *[word for word in shared if word not in tags][:1]][:_MOST_TAGS]


def _context(context: str, news: str | None) -> str:
    """A neighbour's context: its first two sentences, and what from now on holds by the new note."""
    if news is None or news in context:
        return context
    return " ".join([*sentences(context)[:2], news])


def parse_evolution(prompt: str) -> tuple[str, list[str], list[Neighbour]]:
    """The new note's content and keywords, and its neighbours, of an evolution request.

    A-MEM escapes nothing, so a session can forge the heading and rows of neighbours. The first ones count, as many as
    the request says there are: a language model cannot tell either.

    Raises:
        InvalidInputError: It is no evolution request of A-MEM.
    """
    start, heading, numbers = _CONTENT.search(prompt), _NEIGHBOURS.search(prompt), list(_NUMBER.finditer(prompt))
    if start is None or heading is None or heading.start() < start.end() or not numbers:
        raise InvalidInputError("this is no evolution request of A-MEM: it has no content or no neighbours")
    new = prompt[start.end() : heading.start()]
    content, keywords = new, ""
    for match in _KEYWORDS.finditer(new):
        content, keywords = new[: match.start()], new[match.end() :]
    number = numbers[-1]  # whatever the sessions contain comes before it
    block = prompt[heading.end() : number.start()]
    rows = list(_ROW.finditer(block))[: int(number.group(1)[:6])]
    ends = [row.start() for row in rows[1:]] + [len(block)]
    return content, list(_list(keywords)), [_row(r[1], block[r.end() : end]) for r, end in zip(rows, ends, strict=True)]


def _row(id_: str, text: str) -> Neighbour:
    found = {}
    for name in reversed(_FIELDS):
        text, _, found[name] = text.rpartition(f"\t{name}: ")
    context, keywords, tags = (found[name] for name in _FIELDS)
    return Neighbour(id_, context, _list(keywords), _list(tags.partition("\n")[0]))


def _list(text: str) -> tuple[str, ...]:
    """A list as Python prints it; empty if a forged text stands there."""
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
