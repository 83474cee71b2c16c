"""What a trace page shows, as JSON data: facts of the run, labels beside them, and the ways of the payload.

Texts are kept once in a list and named by their place in it; a run delivers the same texts again and again.
"""

import json
from typing import Any

from memorydojo.judging import (
    CHECKS,
    POISON,
    EntryVersion,
    ItemLabel,
    Labels,
    ProvenanceGraph,
    SessionLabels,
    Step,
    earliest_failed_checks,
    provenance_graph,
)
from memorydojo.judging.graph import ItemNode, Node, SessionNode
from memorydojo.record import Action, MemoryItem, Message
from memorydojo.runs.load import Run
from memorydojo.runs.model import Failure, SessionResult
from memorydojo.trajectory import Session
from memorydojo.viewer._spans import Mark, changes, marks


def trace_data(run: Run, labels: Labels) -> dict[str, Any]:
    """All that the page of one run shows."""
    return _Trace(run, labels).data()


class _Trace:
    def __init__(self, run: Run, labels: Labels) -> None:
        self.run, self.labels = run, labels
        self.graph: ProvenanceGraph = provenance_graph(run, labels)
        self.insertion = run.plan.insertion
        self.texts: dict[str, int] = {}
        self.said = {(entry.session, entry.entry_id): entry for entry in labels.entries}
        self.entry_at = {entry_id: at for at, entry_id in enumerate(self.graph.provenance.versions)}
        found = self.graph.provenance
        self.origin = dict.fromkeys(found.original, "original") | dict.fromkeys(found.descendants, "descendant")
        self.known_marks: dict[tuple[str, tuple[int, int] | None], list[Mark]] = {}

    def data(self) -> dict[str, Any]:
        sessions = self._sessions()
        entries = [self._entry(entry_id) for entry_id in self.graph.provenance.versions]
        header, plan = self.run.header, self.run.plan
        payload = self.insertion.payload if self.insertion else None
        return {
            "run": {
                "id": self.run.id,
                "simulated": header.simulated,
                "status": self.run.end.status if self.run.end else "interrupted",
                "memory": plan.memory,
                "model": plan.model,
                "memoryModel": plan.memory_model,
                "defense": plan.defense,
                "trajectory": plan.trajectory.id,
                "collection": plan.trajectory.collection,
                "judge": f"{self.labels.judge} {self.labels.judge_version}",
                "started": header.started.isoformat(),
            },
            "attack": payload
            and self.insertion
            and {
                "objective": payload.objective,
                "payload": payload.id,
                "text": self._text(payload.text),
                "session": self.insertion.session,
                "observation": self.insertion.observation,
                "inserted": self.labels.inserted,
                "label": self.labels.insertion_label,
                "indirect": self.graph.indirect_sessions(),
                "firstLost": earliest_failed_checks(self.run, self.labels).first_lost(),
            },
            "checks": CHECKS,
            "history": self._history(),
            "sessions": sessions,
            "entries": entries,
            "texts": list(self.texts),
        }

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _marks(self, text: str, span: tuple[int, int] | None, *, bears: bool) -> list[Mark]:
        if not bears or self.insertion is None:
            return []
        key = (text, span)
        if key not in self.known_marks:
            self.known_marks[key] = marks(self.insertion.payload.text, text, span)
        return self.known_marks[key]

    def _sessions(self) -> list[dict[str, Any]]:
        begun = {result.session: result for result in self.run.sessions}
        judged = {found.session: found for found in self.labels.sessions}
        failed = {found.session: found.failed for found in earliest_failed_checks(self.run, self.labels).sessions}
        return [
            {
                "number": number,
                "domain": planned.domain,
                "task": planned.task_id,
                "flags": sorted(planned.flags),
                "check": failed.get(number),
                **self._happened(begun.get(number), judged.get(number), planned),
            }
            for number, planned in enumerate(self.run.plan.trajectory.sessions, start=1)
        ]

    def _happened(self, result: SessionResult | None, said: SessionLabels | None, planned: Session) -> dict[str, Any]:
        if result is None:
            return {"begun": False, "completed": False, "items": [], "actions": [], "messages": []}
        labels = {item.rank: item for item in said.items} if said else {}
        objective = self.insertion.payload.objective if self.insertion else None
        failure = result.failure
        return {
            "begun": True,
            "completed": result.completed,
            "time": result.time.isoformat(),
            "utility": result.utility,
            "utilityError": result.utility_error,
            "failure": _failure(failure),
            "entered": result.payload_inserted,
            "original": said is not None and said.retrieved_original,
            "descendant": said is not None and said.retrieved_descendant,
            "met": said is not None and objective is not None and said.met.get(objective, False),
            "query": self._text(result.query),
            "final": None if result.final_response is None else self._text(result.final_response),
            "items": [self._item(result.session, item, labels.get(item.rank)) for item in result.items],
            "actions": [self._action(action) for action in result.actions],
            "messages": [self._message(message) for message in result.messages],
            "usage": [used.model_dump() for used in result.usage],
            "seconds": result.seconds,
        }

    def _history(self) -> dict[str, Any] | None:
        """What came before the task sessions, and the question after them."""
        prefix, asked = self.run.plan.trajectory.history, self.run.question
        if prefix is None:
            return None
        return {
            "id": prefix.id,
            "planned": prefix.n_sessions,
            "sessions": [
                {
                    "time": told.time.isoformat(),
                    "completed": told.completed,
                    "failure": _failure(told.failure),
                    "usage": [used.model_dump() for used in told.usage],
                    "seconds": told.seconds,
                }
                for told in self.run.history
            ],
            "correct": self.labels.answer is not None and self.labels.answer.correct,
            "question": asked
            and {
                "type": asked.question.type,
                "text": self._text(asked.query),
                "reference": self._text(str(asked.question.reference)),
                "answer": None if asked.answer is None else self._text(asked.answer),
                "failure": _failure(asked.failure),
                "items": [self._item(0, item, None) for item in asked.items],
                "usage": [used.model_dump() for used in asked.usage],
                "seconds": asked.seconds,
            },
        }

    def _item(self, session: int, item: MemoryItem, label: ItemLabel | None) -> dict[str, Any]:
        bears = label is not None and label.label in POISON
        return {
            "rank": item.rank,
            "entries": list(item.entry_ids),
            "kind": item.kind,
            "route": item.route,
            "via": item.via,
            "score": item.score,
            "text": self._text(item.text),
            "label": label.label if label else None,
            "bears": bears,
            "original": label is not None and label.original,
            "descendant": label is not None and label.descendant,
            "bearers": list(label.entry_ids) if label else [],
            "marks": self._marks(item.text, label.span if label else None, bears=bears),
            "chain": [self._step(step) for step in self.graph.chain(session, item.rank)] if label else [],
        }

    def _step(self, step: Step) -> list[Any]:
        return [step.kind, self._node(step.source), self._node(step.target)]

    def _node(self, node: Node) -> list[Any]:
        if isinstance(node, SessionNode):
            return ["session", node.session]
        if isinstance(node, ItemNode):
            return ["item", node.session, node.rank]
        return ["version", self.entry_at[node.entry_id], node.number]

    def _action(self, action: Action) -> dict[str, Any]:
        return {
            "call": action.function,
            "arguments": self._text(_json(action.arguments)),
            "observation": self._text(action.observation),
            "error": action.error,
            "depth": action.depth,
            "poisoned": action.poisoned,
            "marks": self._marks(action.observation, None, bears=action.poisoned),
        }

    def _message(self, message: Message) -> dict[str, Any]:
        return {
            "role": message.role,
            "tool": message.tool,
            "text": self._text(message.text),
            "error": message.error,
            "calls": [self._text(call.text()) for call in message.tool_calls],
        }

    def _entry(self, entry_id: str) -> dict[str, Any]:
        versions = self.graph.provenance.versions[entry_id]
        kinds = [version.entry.kind for version in versions if version.entry]
        before: list[EntryVersion | None] = [None, *versions]
        return {
            "id": entry_id,
            "kind": kinds[-1],
            "origin": self.origin.get(entry_id, "other"),
            "versions": [self._version(old, new) for old, new in zip(before, versions, strict=False)],
        }

    def _version(self, before: EntryVersion | None, version: EntryVersion) -> dict[str, Any]:
        entry = version.entry
        base = {"number": version.number, "session": version.session, "change": version.change}
        if entry is None:
            return base
        said = self.said.get((version.session, version.entry_id))
        bears = said is not None and said.label in POISON
        old = before.entry if before else None
        return {
            **base,
            "kind": entry.kind,
            "text": self._text(entry.text),
            "label": said.label if said else None,
            "bears": bears,
            "marks": self._marks(entry.text, said.span if said else None, bears=bears),
            "links": list(entry.links),
            "metadata": self._text(_json(entry.metadata)) if entry.metadata else None,
            "difference": changes(old.text, entry.text) if old and version.change == "rewritten" else None,
        }


def _failure(failure: Failure | None) -> dict[str, str] | None:
    if failure is None:
        return None
    return {"stage": failure.stage, "type": failure.type, "message": failure.message}


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1)
