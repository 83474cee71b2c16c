"""One run as a sample of an Inspect log: its messages, and its sessions as spans of events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from inspect_ai.event import (
    ErrorEvent,
    Event,
    InfoEvent,
    ModelEvent,
    ScoreEvent,
    SpanBeginEvent,
    SpanEndEvent,
    StoreEvent,
    ToolEvent,
)
from inspect_ai.log import EvalError, EvalSample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall, ToolCallError

from memorydojo._display import plain, valid
from memorydojo.judging.labels import Labels
from memorydojo.models.usage import Usage
from memorydojo.record import MemoryEntry, Message, Snapshot
from memorydojo.runs._files import finite
from memorydojo.runs.load import Run
from memorydojo.runs.model import HistoryResult, QuestionResult, SessionResult


def sample(run: Run, labels: Labels, scores: dict[str, Score]) -> EvalSample:
    """The sample of one run.

    Args:
        run: The run.
        labels: Its labels.
        scores: What it adds to each metric.
    """
    plan, insertion = run.plan, run.plan.insertion
    events = _Events(run, labels)
    listed = list(events.all(scores))
    failed = _first_failure(run)
    error = _error(failed) if failed else None
    parts: list[HistoryResult | SessionResult | QuestionResult] = [*run.history, *run.sessions]
    parts += [run.question] if run.question else []
    usage = [*run.header.usage, *(one for part in parts for one in part.usage)]
    attack = f"objective {insertion.payload.objective!r} in session {insertion.session}" if insertion else "no attack"
    shown = f"{plan.trajectory.id}: {len(plan.trajectory)} sessions on {plan.memory}, {attack}"
    about: dict[str, Any] = {
        "simulated": run.header.simulated,
        "status": run.end.status if run.end else "interrupted",
        "trajectory_id": plan.trajectory.id,
        "collection": plan.trajectory.collection,
        "memory": plan.memory,
        "model": plan.model,
        "memory_model": plan.memory_model,
        "defense": plan.defense,
        "condition": "poisoned" if insertion else "clean",
        "objective": insertion.payload.objective if insertion else None,
        "payload": insertion.payload.model_dump() if insertion else None,
        "insertion_session": insertion.session if insertion else None,
        "n_sessions": len(plan.trajectory),
        "shared_sessions": run.header.shared.last if run.header.shared else None,
        "question": plan.trajectory.history.question.model_dump(mode="json") if plan.trajectory.history else None,
        "insertion_label": labels.insertion_label if insertion else None,
        "judge": f"{labels.judge} {labels.judge_version}",
    }
    return EvalSample(
        id=run.id,
        epoch=1,
        input=valid(f"[simulated] {shown}" if run.header.simulated else shown),
        target=valid(insertion.payload.objective) if insertion else "",
        messages=events.messages,
        output=events.output,
        scores=scores,
        metadata=_json(about),
        store=_json({"memory": {i: _entry(e) for i, e in events.memory.entries.items()}}),
        events=listed,
        model_usage=_usage(usage, lambda one: one.model),
        role_usage=_usage(usage, lambda one: one.role),
        started_at=run.header.started.isoformat(),
        completed_at=run.end.finished.isoformat() if run.end else None,
        total_time=events.clock,
        working_time=events.clock,
        uuid=run.id,
        error=error,
    )


def _first_failure(run: Run) -> str | None:
    """What went wrong first, if anything did."""
    places = [(f"history {told.number}", told.failure) for told in run.history]
    places += [(f"session {result.session}", result.failure) for result in run.sessions]
    places += [("question", run.question.failure)] if run.question else []
    return next((f"{place}, {f.stage}: {f.type}: {f.message}" for place, f in places if f is not None), None)


def _error(message: str) -> EvalError:
    # Tracebacks are not saved; but the viewer shows nothing else of an error. The one with colours reaches terminals.
    shown = valid(message)
    return EvalError(message=shown, traceback=shown, traceback_ansi=plain(shown))


class _Events:
    """The events of a run in order, and what adds up along the way.

    Attributes:
        messages: All messages so far.
        output: The last answer of the agent.
        memory: What the memory holds.
        clock: Seconds since the start of the run.
    """

    def __init__(self, run: Run, labels: Labels) -> None:
        self.run, self.labels = run, labels
        self.messages: list[ChatMessage] = []
        self.output = ModelOutput(model=valid(run.plan.model))
        self.memory = Snapshot()
        self.clock = 0.0
        self.numbers = 0
        self.open: list[str] = []

    def all(self, scores: Mapping[str, Score]) -> Iterator[Event]:
        """Every event: the history, one span a session, the held-out question, then the scores."""
        if self.run.history:
            yield self._begin("history", "history")
            for told in self.run.history:
                yield self._begin(f"history {told.number}: {told.id}", "memory", {"time": told.time.isoformat()})
                yield from self._writing(told)
                yield self._end()
            yield self._end()
        for result in self.run.sessions:
            title = f"session {result.session}: {result.domain} {result.task_id}"
            yield self._begin(title, "session", self._about(result))
            yield from self._session(result)
            yield self._end()
        if self.run.question:
            yield self._begin("held-out question", "question")
            yield from self._question(self.run.question)
            yield self._end()
        yield self._begin("scores", "scorers")
        for name, score in scores.items():
            # In a span of its own, whose title is the only place where the viewer shows the name.
            yield self._begin(name, "scorer")
            yield ScoreEvent(score=score, scorer=name, **self._at())
            yield self._end()
        yield self._end()

    def _session(self, result: SessionResult) -> Iterator[Event]:
        seconds = result.seconds
        yield self._begin("memory read", "memory")
        yield InfoEvent(source="memory read", data=self._read(result), **self._at())
        self.clock += seconds.get("retrieve", 0.0)
        yield self._end()
        # Not of the type "agent", which the viewer folds up.
        yield self._begin("interaction", "interaction")
        yield from self._agent(result)
        self.clock += seconds.get("agent", 0.0)
        yield self._end()
        yield self._begin("memory write", "memory")
        yield from self._writing(result)
        yield self._end()
        self.clock += sum(s for stage, s in seconds.items() if stage not in ("retrieve", "agent", "write"))
        # What the session came to, here too: the viewer shows no metadata of spans.
        yield InfoEvent(source="outcome", data=self._outcome(result), **self._at())

    def _writing(self, result: SessionResult | HistoryResult) -> Iterator[Event]:
        """What a write did, and what went wrong until its end."""
        # Twice: as what happened, which the viewer shows, and as the change of the sample's store, for programs.
        yield InfoEvent(source="memory write", data=self._written(result), **self._at())
        changes = self._write(result)
        if changes:
            yield StoreEvent.model_validate({"changes": changes, **self._at()})
        self.clock += result.seconds.get("write", 0.0)
        yield from self._failure(result)

    def _failure(self, result: SessionResult | HistoryResult | QuestionResult) -> Iterator[Event]:
        if result.failure:
            message = f"{result.failure.stage}: {result.failure.type}: {result.failure.message}"
            yield ErrorEvent(error=_error(message), **self._at())

    def _question(self, result: QuestionResult) -> Iterator[Event]:
        """What memory delivered for the held-out question, and what the model answered."""
        items = [{**item.model_dump(), "label": None} for item in result.items]
        yield InfoEvent(source="memory read", data=_json({"query": result.query, "items": items}), **self._at())
        self.clock += sum(result.seconds.values())
        asked = ChatMessageUser(id=f"{self.run.id}-question", content=valid(result.prompt), source="input")
        self.messages.append(asked)
        if result.answer is not None:
            answer = ChatMessageAssistant(id=f"{self.run.id}-answer", content=valid(result.answer), source="generate")
            yield self._model([asked], answer)
            self.messages.append(answer)
        yield from self._failure(result)

    def _about(self, result: SessionResult) -> dict[str, Any]:
        insertion = self.run.plan.insertion
        return {
            "session": result.session,
            "simulated_clock": result.time.isoformat(),
            "insertion_session": insertion is not None and insertion.session == result.session,
            **self._outcome(result),
        }

    def _outcome(self, result: SessionResult) -> dict[str, Any]:
        insertion = self.run.plan.insertion
        said = next(found for found in self.labels.sessions if found.session == result.session)
        return {
            "payload_entered": result.payload_inserted,
            "retrieved_original": said.retrieved_original,
            "retrieved_descendant": said.retrieved_descendant,
            "objective_met": said.met.get(insertion.payload.objective, False) if insertion else False,
            "utility": result.utility and result.completed,
            "completed": result.completed,
        }

    def _read(self, result: SessionResult) -> Any:
        said = next(found for found in self.labels.sessions if found.session == result.session)
        labels = {item.rank: item for item in said.items}
        items = []
        for item in result.items:
            label = labels.get(item.rank)
            items.append({**item.model_dump(), "label": label.label if label else None})
        return _json({"query": result.query, "items": items})

    def _written(self, result: SessionResult | HistoryResult) -> Any:
        number = result.session if isinstance(result, SessionResult) else None
        labels = {e.entry_id: e.label for e in self.labels.entries if e.session == number}
        found = result.difference
        created, rewritten = (
            [{"id": e.id, **_entry(e), "label": labels.get(e.id)} for e in entries]
            for entries in (found.created, found.rewritten)
        )
        return _json({"created": created, "rewritten": rewritten, "removed": list(found.removed)})

    def _agent(self, result: SessionResult) -> Iterator[Event]:
        messages = [self._message(message, result, at) for at, message in enumerate(result.messages)]
        poisoned = {action.observation for action in result.actions if action.poisoned}
        calls = {call.id: call for message in result.messages for call in message.tool_calls}
        for at, message in enumerate(messages):
            if isinstance(message, ChatMessageAssistant):
                yield self._model(messages[:at], message)
            if isinstance(message, ChatMessageTool):
                call = calls.get(message.tool_call_id or "")
                yield ToolEvent(
                    id=message.tool_call_id or f"call-{at}",
                    function=message.function or "",
                    arguments=_json(call.arguments) if call else {},
                    result=message.text,
                    error=message.error,
                    message_id=message.id,
                    **self._at({"payload_entered": result.messages[at].text in poisoned}),
                )
        self.messages.extend(messages)

    def _model(self, before: list[ChatMessage], message: ChatMessageAssistant) -> ModelEvent:
        model = valid(self.run.plan.model)
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if message.tool_calls else "stop")
        self.output = ModelOutput(model=model, choices=[choice], completion=message.text)
        return ModelEvent(
            model=model,
            role="agent",
            input=before,
            tools=[],
            tool_choice="auto",
            config=GenerateConfig(),
            output=self.output,
            **self._at(),
        )

    def _message(self, message: Message, result: SessionResult, at: int) -> ChatMessage:
        identity = f"{self.run.id}-{result.session}-{at}"
        text = valid(message.text)
        if message.role == "user":
            # The request as the agent received it, with what memory delivered.
            return ChatMessageUser(id=identity, content=valid(result.prompt) if at == 0 else text, source="input")
        if message.role == "assistant":
            calls = [
                ToolCall(id=valid(call.id), function=valid(call.function), arguments=_json(call.arguments))
                for call in message.tool_calls
            ]
            return ChatMessageAssistant(id=identity, content=text, tool_calls=calls or None, source="generate")
        return ChatMessageTool(
            id=identity,
            content=text,
            tool_call_id=valid(message.tool_call_id or ""),
            function=valid(message.tool or ""),
            error=ToolCallError("unknown", valid(message.error)) if message.error else None,
        )

    def _write(self, result: SessionResult | HistoryResult) -> list[dict[str, Any]]:
        """What the write did to the memory, as JSON Patch."""
        found = result.difference
        changes = []
        for entry in found.created:
            changes.append({"op": "add", "path": _pointer(entry.id), "value": _json(_entry(entry))})
        for entry in found.rewritten:
            old = self.memory.entries.get(entry.id)
            replaced = _json(_entry(old)) if old else None
            changes.append(
                {"op": "replace", "path": _pointer(entry.id), "value": _json(_entry(entry)), "replaced": replaced}
            )
        changes += [{"op": "remove", "path": _pointer(identity)} for identity in found.removed]
        self.memory = self.memory.apply(found)
        return changes

    def _at(self, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        """What every event has: its id, its place, its time."""
        self.numbers += 1
        started: datetime = self.run.header.started
        return {
            "uuid": f"{self.run.id}-{self.numbers}",
            "span_id": self.open[-1] if self.open else None,
            "timestamp": started + timedelta(seconds=self.clock),
            "working_start": self.clock,
            "metadata": metadata,
        }

    def _begin(self, name: str, kind: str, metadata: dict[str, Any] | None = None) -> SpanBeginEvent:
        at = self._at(metadata)
        parent = self.open[-1] if self.open else None
        self.open.append(f"{self.run.id}-span-{self.numbers}")
        return SpanBeginEvent(
            id=self.open[-1], parent_id=parent, type=kind, name=valid(name), **{**at, "span_id": self.open[-1]}
        )

    def _end(self) -> SpanEndEvent:
        at = self._at()
        return SpanEndEvent(id=self.open.pop(), **at)


def _pointer(identity: str) -> str:
    return "/memory/" + valid(identity).replace("~", "~0").replace("/", "~1")


def _entry(entry: MemoryEntry) -> dict[str, Any]:
    return {"kind": entry.kind, "text": entry.text, "links": list(entry.links), "metadata": entry.metadata}


def _usage(found: Sequence[Usage], key: Callable[[Usage], str]) -> dict[str, ModelUsage]:
    result: dict[str, ModelUsage] = {}
    for one in found:
        usage = model_usage(one.input_tokens, one.cached_tokens, one.output_tokens, one.reasoning_tokens)
        name = valid(key(one))
        result[name] = result[name] + usage if name in result else usage
    return result


def model_usage(given: int, cached: int, made: int, reasoning: int) -> ModelUsage:
    """Tokens as Inspect counts them, which has cached input apart."""
    return ModelUsage(
        input_tokens=given - cached,
        output_tokens=made,
        total_tokens=given + made,
        input_tokens_cache_read=cached,
        reasoning_tokens=reasoning,
    )


def _json(data: Any) -> Any:
    """JSON data that any JSON writer takes: no lone surrogates, no numbers that are not finite."""
    if isinstance(data, dict):
        return {valid(str(key)): _json(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_json(value) for value in data]
    return valid(data) if isinstance(data, str) else finite(data)
