"""What Memora asks of the chat model: its requests, the form of the answers, and the checks on them.

The wording is this project's own, after the published description (arXiv 2602.03315). What comes from sessions and
from the memory is JSON in the user message, so no text of theirs can imitate the form of a request.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from memorydojo.adapters._state import unicode
from memorydojo.record import SessionRecord

EXTRACT = """\
You extract factual memories from one conversation between a user and an assistant that calls tools.

Give every fact that may be useful later, each as an entry of its own; rather one too many than one too few. Leave out \
greetings and filler. Focus on what the user says and on the context as a whole, rather than on the assistant's wording.
- index: a short phrase of about six to eight words that says what the fact is about; it must be clear by itself, so \
name the person, thing or domain.
- value: one or two full, neutral sentences with all details, in the conversation's own words where possible, with \
names in place of pronouns and absolute dates in place of relative ones (the conversation took place at "timestamp").
- memory_type: always "factual".
Use only what the conversation says. If it holds nothing worth remembering, give an empty list.

The conversation is JSON. Answer with one JSON object: {"entries": [{"memory_type": "factual", "index": "...", \
"value": "..."}]}"""

CUES = """\
You make cues: short anchors by which a memory can be found again.

For each memory give one to three cues of two to four words: the main entity (who or what) and one key aspect (an \
event, a preference, a state, an object). Each cue names a different side of the memory. No single generic words, no \
dates, no numbers, and never the memory's own index.

The memories are JSON. Answer with one JSON object that has every memory by its number: {"results": [{"memory": 0, \
"cue_indices": ["...", "..."]}]}"""

DECIDE = """\
You keep a memory tidy. Decide whether a new memory updates one of the existing, similar memories or stands by itself.

Update if both are about the same matter: then give the number of the best candidate, one value that combines what \
both say, and an index that fits it (the old one if it still does). Otherwise do not update; then the other fields are \
null.

The memories are JSON. Answer with one JSON object: {"should_update": true, "best_candidate_index": 0, \
"updated_value": "...", "updated_index": "..."}"""

POLICY = """\
You steer a search in a memory. You see the query, the memories found so far (the working set) and the memories that \
share a cue with them (the frontier), values cut short, and what was done before.

Choose one action:
- STOP if the working set is enough to answer the query, or if nothing better is in sight;
- EXPAND to add memories of the frontier to the working set: give their ids;
- RE_QUERY to search with a better query for what is still missing: give it.

All of this is JSON. Answer with one JSON object: {"action": "STOP", "ids": [], "query": ""}"""

_WORKING_CHARACTERS = 150
_FRONTIER_CHARACTERS = 100


def _text(text: str) -> str:
    text = unicode(text).strip()
    if not text:
        raise ValueError("this text is empty")
    return text


Text = Annotated[str, AfterValidator(_text)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MemoryOutput(_Answer):
    """One extracted fact."""

    memory_type: str
    index: Text
    value: Text


class MemoryOutputs(_Answer):
    """The facts of a session."""

    entries: list[MemoryOutput]


class CueIndices(_Answer):
    """The cues of one memory of the request, by its number."""

    memory: int
    cue_indices: list[Text]


class BatchCueIndices(_Answer):
    """The cues of all memories of the request."""

    results: list[CueIndices]


class MemoryUpdateDecision(_Answer):
    """Whether a new fact rewrites one of the candidates, and how."""

    should_update: bool
    best_candidate_index: int | None
    updated_value: Text | None
    updated_index: Text | None


class PolicyDecision(_Answer):
    """What the retrieval does next."""

    action: Literal["STOP", "EXPAND", "RE_QUERY"]
    ids: list[str]
    query: str


def check_cues(answer: BatchCueIndices, memories: int) -> None:
    """Raises ``ValueError`` unless every memory has one to three cues."""
    if sorted(result.memory for result in answer.results) != list(range(memories)):
        raise ValueError(f"results must name each memory from 0 to {memories - 1} once")
    for result in answer.results:
        if not 1 <= len(result.cue_indices) <= 3:
            raise ValueError(f"memory {result.memory} must have one to three cues, not {len(result.cue_indices)}")


def check_decision(answer: MemoryUpdateDecision, candidates: int) -> None:
    """Raises ``ValueError`` if an update does not say which candidate becomes what."""
    if not answer.should_update:
        return
    if answer.best_candidate_index is None or not 0 <= answer.best_candidate_index < candidates:
        raise ValueError(f"best_candidate_index must be from 0 to {candidates - 1}")
    if answer.updated_value is None or answer.updated_index is None:
        raise ValueError("an update needs updated_value and updated_index")


def check_policy(answer: PolicyDecision) -> None:
    """Raises ``ValueError`` if an action lacks what it needs. Unknown ids are no error: they add nothing."""
    if answer.action == "EXPAND" and not answer.ids:
        raise ValueError("EXPAND needs ids of the frontier")
    if answer.action == "RE_QUERY" and not answer.query.strip():
        raise ValueError("RE_QUERY needs a query")


def extraction(record: SessionRecord, *, max_tokens: int) -> dict[str, Any]:
    """Asks for the facts of a session."""
    conversation: list[dict[str, Any]] = []
    for message in record.messages:
        said: dict[str, Any] = {"role": message.role}
        if message.role == "tool":
            said["tool"] = message.tool or "tool"
        if message.error:
            said["error"] = message.error
        else:
            said["text"] = message.text
        if message.tool_calls:
            said["calls"] = [call.text() for call in message.tool_calls]
        conversation.append(said)
    content = {"timestamp": record.time.isoformat(), "conversation": conversation}
    return _request(EXTRACT, content, temperature=0.1, max_tokens=max_tokens)


def cues(memories: Sequence[tuple[str, str]], *, max_tokens: int) -> dict[str, Any]:
    """Asks for the cues of facts, each given by index and value."""
    content = {"memories": [{"memory": n, "index": i, "value": v} for n, (i, v) in enumerate(memories)]}
    return _request(CUES, content, temperature=0.1, max_tokens=max_tokens)


def decision(new: tuple[str, str], candidates: Sequence[tuple[str, str]], *, max_tokens: int) -> dict[str, Any]:
    """Asks whether a new fact updates one of the candidates, each given by index and value."""
    content = {
        "new": {"index": new[0], "value": new[1]},
        "candidates": [{"candidate": n, "index": i, "value": v} for n, (i, v) in enumerate(candidates)],
    }
    return _request(DECIDE, content, temperature=0.1, max_tokens=max_tokens)


def policy(
    query: str,
    *,
    step: int,
    max_steps: int,
    working: Sequence[tuple[str, str, str]],
    frontier: Sequence[tuple[str, str, str, str]],
    trace: Sequence[Mapping[str, Any]],
    max_tokens: int,
) -> dict[str, Any]:
    """Asks what the retrieval does next.

    Args:
        query: The query that is being answered.
        step: The 1-based step.
        max_steps: How many steps there are.
        working: Id, index and value of the facts found so far.
        frontier: Id, linking cue, index and value of the facts that share a cue with them.
        trace: What was done in the steps before.
        max_tokens: Longest answer.
    """
    content = {
        "query": query,
        "step": step,
        "max_steps": max_steps,
        "working_set": [{"id": id_, "index": i, "value": v[:_WORKING_CHARACTERS]} for id_, i, v in working],
        "frontier": [
            {"id": id_, "cue": cue, "index": i, "value": v[:_FRONTIER_CHARACTERS]} for id_, cue, i, v in frontier
        ],
        "trace": list(trace),
    }
    return _request(POLICY, content, temperature=0.0, max_tokens=max_tokens)


def _request(instructions: str, content: Mapping[str, Any], *, temperature: float, max_tokens: int) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": instructions},
            {"role": "user", "content": unicode(json.dumps(content, ensure_ascii=False))},
        ],
        "temperature": temperature,
        "max_tokens": max_tokens,
    }
