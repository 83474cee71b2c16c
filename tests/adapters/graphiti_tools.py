"""What the tests of the Graphiti adapter share."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memorydojo.adapters.graphiti import GraphitiAdapter, GraphitiConfig
from memorydojo.models.simulated import SimulatedModels
from memorydojo.record import MemoryEntry, Message, SessionRecord, Snapshot
from memorydojo.simulator.embedder import MiniLMEmbedder
from memorydojo.testing import make_session

EMBEDDER = MiniLMEmbedder()

Answer = Callable[[Mapping[str, Any]], Any]


def form(request: Mapping[str, Any]) -> str:
    """The form of answer that a request asks for; ``"score"`` for the reranker's."""
    schema = (request.get("response_format") or {}).get("json_schema")
    return str(schema["name"]) if schema else "score"


def reply(content: Any, *, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"message": message, "finish_reason": finish_reason}], "usage": {}}


class Scripted(SimulatedModels):
    """Answers by the simulator but for the given forms, and records all requests.

    Args:
        answers: By form: the data of the answer, a whole response (with ``choices``), an error to raise, or a function
            of the request that gives one of them.
    """

    def __init__(self, **answers: Any) -> None:
        super().__init__(GraphitiAdapter.simulate, embedder=EMBEDDER)
        self.answers, self.requests, self.embedded = answers, list[Mapping[str, Any]](), list[str]()

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        answer = self.answers.get(form(request))
        if callable(answer):
            answer = answer(request)
        if answer is None:
            return super().chat(request)
        if isinstance(answer, BaseException):
            raise answer
        return answer if "choices" in answer else reply(json.dumps(answer))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.embedded.extend(texts)
        return super().embed(texts)

    def asked(self, name: str) -> list[str]:
        """The last messages of all requests for one form of answer."""
        return [str(r["messages"][-1]["content"]) for r in self.requests if form(r) == name]


def facts(*triples: tuple[str, str, str], valid_at: str | None = "2024-05-15T00:00:00Z") -> dict[str, Any]:
    """Answers for `Scripted` that make these facts of the next session: source, target, text."""
    names = dict.fromkeys(name for source, target, _ in triples for name in (source, target))
    edges = [
        {
            "source_entity_name": source,
            "target_entity_name": target,
            "relation_type": "RELATES_TO",
            "fact": text,
            "valid_at": valid_at,
            "invalid_at": None,
        }
        for source, target, text in triples
    ]
    return {
        "ExtractedEntities": {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]},
        "ExtractedEdges": {"edges": edges},
    }


def open_graphiti(directory: Path, models: Any = None, **settings: Any) -> GraphitiAdapter:
    directory.mkdir(exist_ok=True)
    return GraphitiAdapter.open(directory, models or Scripted(), GraphitiConfig(**settings))


def entries(snapshot: Snapshot, kind: str) -> list[MemoryEntry]:
    return [entry for entry in snapshot.entries.values() if entry.kind == kind]


def texts(snapshot: Snapshot) -> list[str]:
    """The facts' texts, without their relations."""
    return [entry.text.rpartition("\n")[0] for entry in entries(snapshot, "fact")]


def session(number: int, *said: str) -> SessionRecord:
    """A session in which the user says each of these."""
    record = make_session(number)
    return record.model_copy(update={"messages": tuple(Message(role="user", text=text) for text in said)})
