"""The simulated model behind Memora: answers its four requests by stated rules, from their own text alone.

The rules for readers: ``docs/simulator-memory.md``. Which sentences become facts is decided by
`memorydojo.simulator.extraction`; here is what only Memora asks for: indices, cues, updates and the retrieval policy.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from memorydojo.adapters import _memora_requests as requests
from memorydojo.errors import InvalidInputError
from memorydojo.simulator.extraction import Line, extract
from memorydojo.simulator.prose import TARGET

#: Words that carry no topic, and the names that the simulated wording gives to the two speakers.
STOP_WORDS = frozenset(
    "a about after all also always an and any are as ask asked asks assistant at be been before but by call called can "
    "could did do does done each every for from future give given go had has have he her his how i if in into is it "
    "its let like made make me more most my never new no not now of on once one only or other our out over please "
    "said say she should so some than that the their them then there these they this those to too up use used user "
    "user's users very want wants was we were what when where which while who why will with would you your".split()
)
INDEX_WORDS = 8
MOST_CUES = 3
UPDATE_OVERLAP = 0.5
LONGEST_VALUE = 60
EXPAND_WORDS = 2
MOST_EXPANDED = 3
REQUERY_SHARE = 0.5
REQUERY_WORDS = 12
_WORD = re.compile(r"\w[\w'’-]*")
_CLAUSE = re.compile(r"[^\w\s'’-]+")
_DIGIT = re.compile(r"\d")


def simulated_answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers one of Memora's requests.

    Raises:
        InvalidInputError: It is none.
    """
    try:
        rule = _RULES[request["messages"][0]["content"]]
        content = json.loads(request["messages"][1]["content"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInputError("this is no request of Memora") from error
    return {"role": "assistant", "content": json.dumps(rule(content), ensure_ascii=False)}


def topic_words(text: str) -> list[str]:
    """The words of a text that carry its topic, in order, as written.

    >>> topic_words("The user wants the weekly report sent to Ann.")
    ['weekly', 'report', 'sent', 'Ann']
    """
    return [word for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS]


def _topics(text: str) -> dict[str, None]:
    return dict.fromkeys(word.casefold() for word in topic_words(text))


def _facts(content: Mapping[str, Any]) -> dict[str, Any]:
    facts = extract([line for said in content["conversation"] for line in _lines(said)])
    taken: set[str] = set()
    entries = []
    for fact in facts:
        index = _index(fact.text)
        if index in taken:
            index = fact.text
        taken.add(index)
        entries.append({"memory_type": "factual", "index": index, "value": fact.text})
    return {"entries": entries}


def _lines(said: Mapping[str, Any]) -> list[Line]:
    text = str(said.get("text", ""))
    if said["role"] != "assistant":
        return [Line("user" if said["role"] == "user" else "tool", text)]
    return [Line("assistant", text), *(Line("call", str(call)) for call in said.get("calls", ()))]


def _index(text: str) -> str:
    """The first topic words, and the first target (address, link, amount, quoted string) of the text."""
    target = TARGET.search(text)
    words = topic_words(TARGET.sub(" ", text))[:INDEX_WORDS]
    parts = [*words, target.group()] if target else words
    return " ".join(parts) or " ".join(text.split()[:INDEX_WORDS]) or text


def _cues(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"results": [{"memory": m["memory"], "cue_indices": _anchors(m)} for m in content["memories"]]}


def _anchors(memory: Mapping[str, Any]) -> list[str]:
    """Pairs of topic words with nothing but stop words between them; else the first topic words, or the index."""
    pairs: dict[str, None] = {}
    for clause in _CLAUSE.split(TARGET.sub(".", str(memory["value"]))):
        words = [word.casefold() for word in topic_words(clause) if not _DIGIT.search(word)]
        pairs.update(dict.fromkeys(" ".join(words[i : i + 2]) for i in range(0, len(words) - 1, 2)))
    return list(pairs)[:MOST_CUES] or [" ".join(topic_words(str(memory["value"]))[:2]) or str(memory["index"])]


def _decide(content: Mapping[str, Any]) -> dict[str, Any]:
    new = str(content["new"]["value"])
    overlaps = [_overlap(new, str(c["value"])) for c in content["candidates"]]
    best = max(range(len(overlaps)), key=lambda i: (overlaps[i], -i))
    candidate = content["candidates"][best]
    value = _merged(str(candidate["value"]), new)
    if overlaps[best] < UPDATE_OVERLAP or len(value.split()) > LONGEST_VALUE:
        return {
            "should_update": False,
            "best_candidate_index": None,
            "updated_value": None,
            "updated_index": None,
        }
    return {
        "should_update": True,
        "best_candidate_index": candidate["candidate"],
        "updated_value": value,
        "updated_index": candidate["index"],
    }


def _overlap(first: str, second: str) -> float:
    """Shared topic words among all topic words of two texts."""
    a, b = _topics(first).keys(), _topics(second).keys()
    return len(a & b) / len(a | b) if a | b else 1.0


def _merged(old: str, new: str) -> str:
    if new in old:
        return old
    return new if old in new else f"{old} {new}"


def _policy(content: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _topics(str(content["query"]))
    near = [(len(wanted.keys() & _topics(_shown(fact)).keys()), fact["id"]) for fact in content["frontier"]]
    near = sorted((pair for pair in near if pair[0] >= EXPAND_WORDS), key=lambda pair: -pair[0])
    if near:
        return {"action": "EXPAND", "ids": [id_ for _, id_ in near[:MOST_EXPANDED]], "query": ""}
    found = {word for fact in content["working_set"] for word in _topics(_shown(fact))}
    missing = [word for word in wanted if word not in found]
    searched = any(done["action"] == "RE_QUERY" for done in content["trace"])
    if missing and not searched and len(missing) >= REQUERY_SHARE * len(wanted):
        return {"action": "RE_QUERY", "ids": [], "query": " ".join(missing[:REQUERY_WORDS])}
    return {"action": "STOP", "ids": [], "query": ""}


def _shown(fact: Mapping[str, Any]) -> str:
    return f"{fact['index']} {fact['value']}"


_RULES: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    requests.EXTRACT: _facts,
    requests.CUES: _cues,
    requests.DECIDE: _decide,
    requests.POLICY: _policy,
}
