"""One run: a trajectory, one memory, at most one payload."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from memorydojo._base import problems
from memorydojo._load import load_function
from memorydojo.adapter import AdapterConfig, MemoryAdapter, load_adapter
from memorydojo.attack import Attack
from memorydojo.defense import check_defense
from memorydojo.errors import InvalidInputError
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING, Models
from memorydojo.models.keys import Keys
from memorydojo.running.execution import execute, label
from memorydojo.runs.model import Insertion, RunPlan
from memorydojo.shipped import find_payload, objectives
from memorydojo.trajectory import Trajectory

if TYPE_CHECKING:
    from memorydojo.runs import Run


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
    settings = checked_settings(adapter, memory_settings or {})
    name = memory if isinstance(memory, str) else f"{memory.__module__}:{memory.__qualname__}"
    if "<locals>" in name:
        raise InvalidInputError(
            f"the memory adapter {name!r} is defined inside a function, where a run that is started again could not "
            "find it; define it at the top level of a module or notebook"
        )
    fields = {
        "trajectory": trajectory,
        "insertion": _resolve(attack, trajectory) if attack is not None else None,
        "memory": name,
        "memory_settings": settings.model_dump(mode="json"),
        "model": model,
        "memory_model": memory_model or model,
        "embedding_model": embedding_model,
        "defense": defense,
        "agent": agent,
        "seed": seed,
        "on_failure": on_failure,
    }
    try:
        return RunPlan.model_validate(fields)
    except ValidationError as error:
        raise InvalidInputError(f"the run cannot be planned: {problems(error, RunPlan, fields)}") from None


def checked_settings(adapter: type[MemoryAdapter], settings: Mapping[str, Any]) -> AdapterConfig:
    """The whole settings of a memory system.

    Raises:
        InvalidInputError: A setting is unknown or not possible.
    """
    try:
        checked: AdapterConfig = adapter.Config.model_validate(dict(settings))
    except ValidationError as error:
        raise InvalidInputError(
            f"the settings of memory system {adapter.name!r} are not valid: {problems(error, adapter.Config, settings)}"
        ) from None
    return checked


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
        answers=Path(answers).absolute() if answers is not None else None,  # workers may be elsewhere
    )


def check_tasks(trajectory: Trajectory) -> None:
    """Looks up every task of a trajectory, so that an unknown one fails before anything runs.

    Raises:
        UnknownNameError: No such domain or task.
    """
    from memorydojo.running.environment import user_task

    for session in trajectory.sessions:
        user_task(session.domain, session.task_id)
