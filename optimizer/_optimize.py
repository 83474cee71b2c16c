"""`optimize`: from a user's arguments to a search."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from memorydojo.adapter import MemoryAdapter
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError
from memorydojo.models.access import Replay
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING, Models
from memorydojo.models.keys import Keys
from memorydojo.models.usage import ModelUse
from memorydojo.optimizer.evaluation import Evaluator, Setting
from memorydojo.optimizer.ground import Ground
from memorydojo.optimizer.judge import judging
from memorydojo.optimizer.offline import FeedbackStrategy
from memorydojo.optimizer.results import Search, load_search
from memorydojo.optimizer.saved import ANSWERS, EVALUATION, SearchSpec, SearchWriter
from memorydojo.optimizer.search import Budget, Loop, OnEvent, check_seeds, manifest_of
from memorydojo.optimizer.strategy import Strategy
from memorydojo.optimizer.validation import Rules
from memorydojo.planning.progress import Progress
from memorydojo.running.runner import access_to
from memorydojo.shipped import objectives, payloads


def optimize(
    *,
    memory: str | type[MemoryAdapter],
    objective: str,
    directory: str | Path,
    rounds: int = 8,
    proposals: int = 4,
    strategy: Strategy | None = None,
    ground: Ground | None = None,
    seeds: Sequence[Payload] | None = None,
    reference: str | None = None,
    tolerance: int = 2,
    rules: Rules | None = None,
    judge: str | None = None,
    budget: Budget | None = None,
    model: str = SIMULATED,
    memory_model: str | None = None,
    embedding_model: str = SIMULATED_EMBEDDING,
    memory_settings: Mapping[str, Any] | None = None,
    agent: str | None = None,
    defense: str | None = None,
    insertion: Literal["first", "middle"] | int = "first",
    seed: int = 0,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    executor: Executor | None = None,
    on_event: OnEvent = lambda event: None,
    progress: Progress | None = None,
) -> Search:
    """Searches for the payload with the highest behavioural reach against one memory system.

    Called again with the same arguments, a search that was interrupted, or stopped by its budget, goes on where it was
    left and ends as if it never had been.

    Args:
        memory: The memory system, as for `memorydojo.run`.
        objective: Id of the benchmark objective.
        directory: Where the search is saved; new, empty, or of this search.
        rounds: How many rounds of revision.
        proposals: How many proposals a round, of which the best valid one is tested.
        strategy: What proposes; the offline one if it is not given.
        ground: Where candidates are tested; the auxiliary environment of the objective if it is not given.
        seeds: What the search starts from; the payloads that ship for the objective if it is not given.
        reference: Id of the seed whose task utility is the measure; the first if it is not given.
        tolerance: How many tasks fewer than the reference an eligible candidate may complete.
        rules: The limits of validation.
        judge: A model that also decides whether a proposal preserves the objective; code alone if it is not given.
        budget: What the search may use in all.
        model: The task agent's model.
        memory_model: The memory side's chat model; the agent's if it is not given.
        embedding_model: The memory side's embedding model.
        memory_settings: Settings of the memory system.
        agent: An LLM element of your own, as for `memorydojo.plan_run`.
        defense: A defense, as for `memorydojo.plan_run`.
        insertion: The insertion session.
        seed: Seed of the strategy and of the simulator.
        models: Which models there are, as for `memorydojo.run`.
        keys: Keys of endpoints that are not in the environment.
        replay: Where answers come from, as for `memorydojo.run`.
        answers: The file of recorded answers; ``answers.sqlite`` in the directory if it is not given.
        executor: What runs the auxiliary runs, as for `memorydojo.sweep`; None for eight threads. It is not shut down.
        on_event: Called after each step with what is saved of it (`memorydojo.optimizer.Event`).
        progress: Called after each auxiliary run, as for `memorydojo.sweep`.

    Returns:
        The saved search.

    Raises:
        UnknownNameError: No such memory system, objective or model.
        InvalidInputError: An argument is out of range, or the directory holds another search.
        EndpointDownError: A model endpoint or its key is dead. What was done is kept; call again to go on.
        RunInUseError: Another process is at this search.
        SavedRunError: The directory cannot be used.
        MissingPackageError: The memory system's package is not installed.
    """
    strategy = strategy or FeedbackStrategy()
    ground = ground or auxiliary_ground(objective, seed=seed)
    starts = tuple(payloads[objectives[objective].id].values() if seeds is None else seeds)
    reference = check_seeds(starts, objective, reference)
    if rounds < 0 or proposals < 1 or tolerance < 0:
        raise InvalidInputError("rounds and tolerance are 0 or more, and proposals at least 1")
    access = access_to(models, keys=keys, replay=replay, answers=answers)
    setting = Setting(
        memory=memory,
        memory_settings=dict(memory_settings or {}),
        model=model,
        memory_model=memory_model,
        embedding_model=embedding_model,
        agent=agent,
        defense=defense,
        insertion=insertion,
        seed=seed,
    )
    plan = setting.plan(ground.trajectories[0], ground_payload(starts[0], ground))  # refuses what cannot be run
    asked = {name for name in (strategy.model, judge) if name is not None}
    access.check(plan.model, plan.memory_model, plan.embedding_model, *asked)
    for name in asked & {SIMULATED, SIMULATED_EMBEDDING}:
        raise InvalidInputError(
            f"the model {name!r} belongs to the simulator and neither proposes nor judges payloads; use the offline "
            "strategy, or a model of a models file (docs/models.md)"
        )
    spec = SearchSpec(
        objective=objective,
        description=objectives[objective].description,
        auxiliary_objective=ground.objective.id,
        memory=plan.memory,
        memory_settings=plan.memory_settings,
        model=plan.model,
        memory_model=plan.memory_model,
        embedding_model=plan.embedding_model,
        agent=agent,
        defense=defense,
        strategy=strategy.name,
        optimizer=ModelUse.of(access.models.route(strategy.model)) if strategy.model is not None else None,
        judge=judge,
        seeds=starts,
        reference=reference,
        trajectories=ground.trajectories,
        ontology=ground.ontology,
        insertion=insertion,
        rounds=rounds,
        proposals=proposals,
        tolerance=tolerance,
        rules=rules or Rules(),
        seed=seed,
    )
    place = Path(directory)
    manifest = manifest_of(spec, simulated=SIMULATED in (plan.model, plan.memory_model))
    with SearchWriter(place, manifest) as writer, judging(judge, spec, ground, access=access, directory=place) as check:
        tests = replace(access, answers=access.answers or (place / ANSWERS).absolute())
        evaluator = Evaluator(ground, setting, place / EVALUATION, tests, executor=executor, progress=progress)
        try:
            Loop(
                writer=writer,
                manifest=manifest,
                evaluator=evaluator,
                strategy=strategy,
                validator=check,
                access=access,
                budget=budget or Budget(),
                on_event=on_event,
            ).run()
        finally:
            access.settle(place)
        found = load_search(place)
        found.write_payload()
    return found


def ground_payload(payload: Payload, ground: Ground) -> Payload:
    """A payload for the benchmark objective as one for its counterpart on a ground."""
    return payload.model_copy(update={"objective": ground.objective.id})


def auxiliary_ground(objective: str, *, seed: int = 0, count: int = 6, lengths: Sequence[int] = (4, 6, 8)) -> Ground:
    """The auxiliary environment in which payloads for a benchmark objective are tested.

    Args:
        objective: Id of the benchmark objective.
        seed: Seed of the trajectories and of their tool names.
        count: How many trajectories.
        lengths: Their numbers of sessions, in turn.

    Raises:
        UnknownNameError: The benchmark has no such objective.
    """
    from memorydojo.optimizer import auxiliary

    domain = auxiliary.domain_of(objective)
    kinds = auxiliary.task_kinds(domain)
    return Ground(
        domain=domain,
        objective=auxiliary.objective(domain),
        trajectories=auxiliary.trajectories(domain, seed=seed, count=count, lengths=tuple(lengths)),
        ontology=auxiliary.ontology(domain).text(),
        tool_names=auxiliary.tool_names(domain),
        task_prompts=tuple(auxiliary.task_prompts(domain).values()),
        task_type=lambda session: kinds[session.task_id],
    )
