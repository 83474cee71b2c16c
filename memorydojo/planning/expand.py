"""From a declared sweep to its runs."""

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from memorydojo._base import Place
from memorydojo._display import counted, plain, verb
from memorydojo.attack import Attack, Payload
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.planning.payloads import MissingFile, payload_for
from memorydojo.planning.sweep_plan import NO_DEFENSE, OWN_DOMAIN, SweepPlan
from memorydojo.runs.model import RunPlan
from memorydojo.runs.store import HEADER, run_id
from memorydojo.shipped import objectives
from memorydojo.trajectory import Trajectory
from memorydojo.view import View, Viewed

_SHOWN = 3


@dataclass(frozen=True)
class Expansion(Viewed):
    """The runs of a sweep.

    Attributes:
        plans: The runs by id, in order; equal ones once.
        duplicates: How many combinations were equal to an earlier one.
        missing: Payload and trajectory files that are not there. The runs that need them are among the plans with
            stand-ins, so that they can be counted; they cannot be run.
    """

    plans: dict[str, RunPlan]
    duplicates: int
    missing: tuple[MissingFile, ...]

    @classmethod
    def of(cls, plans: Iterable[RunPlan]) -> "Expansion":
        """Runs that were planned one by one."""
        given = list(plans)
        unique = {run_id(plan): plan for plan in given}
        return cls(unique, len(given) - len(unique), ())

    def view(self) -> View:
        """The runs by what they have in common, and what is missing."""
        from memorydojo.planning._view import expansion_view

        return expansion_view(self)

    def __repr__(self) -> str:
        return f"<Expansion: {counted(len(self.plans), 'run')}, {counted(len(self.missing), 'missing file')}>"

    def runnable(self) -> list[RunPlan]:
        """The runs, if none of them needs a file that is missing.

        Raises:
            InvalidInputError: Payload files are missing; the message says which, and the command that makes them.
        """
        if self.missing:
            shown = "; ".join(f"{plain(str(m.path))} (make it with: {m.command})" for m in self.missing[:_SHOWN])
            more = f"; and {len(self.missing) - _SHOWN} more" if len(self.missing) > _SHOWN else ""
            kinds = " and ".join(dict.fromkeys(m.kind for m in self.missing))
            number = len(self.missing)
            raise InvalidInputError(
                f"{counted(number, f'{kinds} file')} of this sweep {verb(number)} missing: {shown}{more}. Nothing has "
                "run. Make them, or leave them out of the plan; --dry-run lists them all"
            )
        return list(self.plans.values())


def expand(plan: SweepPlan) -> Expansion:
    """All runs of a sweep, in the order that `SweepPlan` states.

    Raises:
        InvalidInputError: A name is unknown, or a combination is impossible; the message names file, line and field.
    """
    _check(plan)
    missing: dict[MissingFile, None] = {}
    expanded = Expansion.of(_combinations(plan, _trajectories(plan, missing), missing))
    return replace(expanded, missing=tuple(missing))


def _combinations(
    plan: SweepPlan, trajectories: Sequence[Trajectory], missing: dict[MissingFile, None]
) -> Iterator[RunPlan]:
    from memorydojo.running.runner import plan_run

    for model, memory, defense, seed in itertools.product(plan.models, plan.memories, plan.defenses, plan.seeds):
        for trajectory in trajectories:
            for attack in _attacks(plan, trajectory, memory.name, missing):
                with _at(plan, ("insertion",), trajectory):
                    yield plan_run(
                        trajectory,
                        memory.name,
                        attack=attack,
                        model=model.agent,
                        memory_model=model.memory,
                        embedding_model=model.embedding,
                        memory_settings=memory.settings,
                        defense=None if defense == NO_DEFENSE else defense,
                        agent=plan.agent,
                        seed=seed,
                        on_failure=plan.on_failure,
                    )


def _attacks(
    plan: SweepPlan, trajectory: Trajectory, memory: str, missing: dict[MissingFile, None]
) -> Iterator[Attack | None]:
    """What a trajectory is run with: nothing if clean runs are wanted, then each attack."""
    if plan.clean:
        yield None
    for place, name in enumerate(plan.objectives):
        objective = _own_domain(plan, place, trajectory) if name == OWN_DOMAIN else name
        for session in plan.insertion:
            for number, choice in enumerate(plan.payloads):
                with _at(plan, ("payloads", number)):
                    payload = payload_for(choice, memory=memory, objective=objective, source=plan.source)
                if payload is None:
                    continue
                if isinstance(payload, MissingFile):
                    missing[payload] = None
                    text = f"(the payload of {payload.path} is not there yet)"
                    payload = Payload(
                        id=choice.id or payload.path.stem,
                        objective=objective,
                        text=text,
                        source=choice.source or "user",
                    )
                yield Attack(objective=objective, payload=payload, session=session, observation=plan.observation)


def _own_domain(plan: SweepPlan, place: int, trajectory: Trajectory) -> str:
    if len(trajectory.domains) == 1:
        return trajectory.domains[0]
    raise InvalidInputError(
        f"{plan.source.where(('objectives', place))}: the trajectory {plain(trajectory.id)!r} has sessions in "
        f"{', '.join(map(plain, trajectory.domains))}, so {OWN_DOMAIN!r} names no objective for it; name the "
        f"objectives: {', '.join(objectives)}"
    )


def _trajectories(plan: SweepPlan, missing: dict[MissingFile, None]) -> list[Trajectory]:
    from memorydojo.trajectories import collections

    sources: list[collections.Collection] = []
    for place, name in enumerate(plan.collections):
        with _at(plan, ("collections", place)):
            sources.append(collections.load(name))
    for place, file in enumerate(plan.trajectory_files):
        with _at(plan, ("trajectory_files", place)):
            path = plan.source.path(file.path)
            if file.like is not None and not path.exists():
                missing[MissingFile(path, "trajectory", str(file.made_by))] = None
                sources.append(collections.load(file.like))
            else:
                sources.append(collections.load_file(path))
    sources = sources or [collections.load(name) for name in collections.SHIPPED]
    known: dict[str, list[Trajectory]] = {}
    for trajectory in itertools.chain.from_iterable(sources):
        known.setdefault(trajectory.id, []).append(trajectory)
    chosen = []
    for place, name in enumerate(plan.trajectories):
        with _at(plan, ("trajectories", place)):
            if name not in known:
                raise UnknownNameError("trajectory", name, known)
        chosen.extend(known[name])
    return chosen if plan.trajectories else list(itertools.chain.from_iterable(sources))


def _check(plan: SweepPlan) -> None:
    """Looks up every name once, so that an error names the line of the name and not the first run that needs it."""
    from memorydojo._load import load_function
    from memorydojo.adapter import load_adapter
    from memorydojo.defense import check_defense
    from memorydojo.running.runner import checked_settings

    for place, memory in enumerate(plan.memories):
        with _at(plan, ("memories", place, "name")):
            adapter = load_adapter(memory.name)
        with _at(plan, ("memories", place, "settings")):
            checked_settings(adapter, memory.settings)
    for place, name in enumerate(plan.objectives):
        if name != OWN_DOMAIN:
            with _at(plan, ("objectives", place)):
                if name not in objectives:
                    raise UnknownNameError("objective", name, [*objectives, OWN_DOMAIN])
    for place, choice in enumerate(plan.payloads):
        if choice.objective is not None and choice.objective not in objectives:
            with _at(plan, ("payloads", place, "objective")):
                raise UnknownNameError("objective", choice.objective, objectives)
    for place, defense in enumerate(plan.defenses):
        with _at(plan, ("defenses", place)):
            if ":" in defense:
                load_function("defense", defense)
            elif defense != NO_DEFENSE:
                check_defense(defense)


@contextmanager
def _at(plan: SweepPlan, place: Place, trajectory: Trajectory | None = None) -> Iterator[None]:
    """Names the place in the plan, and the trajectory, in errors about what stands there."""
    try:
        yield
    except (UnknownNameError, InvalidInputError) as error:
        about = f" (trajectory {plain(trajectory.id)!r})" if trajectory is not None else ""
        raise InvalidInputError(f"{plan.source.where(place)}{about}: {error}") from error


def runs_of(plans: "SweepPlan | Iterable[RunPlan]", directory: str | os.PathLike[str]) -> list[RunPlan]:
    """The runs of a sweep, however it is given; warns of runs in the directory that a `SweepPlan` does not hold.

    Raises:
        InvalidInputError: The plan is not possible, or payload files are missing.
    """
    if not isinstance(plans, SweepPlan):
        if isinstance(plans, RunPlan):
            raise InvalidInputError("a sweep takes a list of plans: put this one into [...]")
        found = list(plans)
        for plan in found:
            if not isinstance(plan, RunPlan):
                raise InvalidInputError(
                    "a sweep takes plans, from memorydojo.plan_run(trajectory, memory, ...), or a SweepPlan, "
                    f"not {plan!r:.80}"
                )
        return found
    runs = expand(plans).runnable()
    others = not_in_plan(runs, directory)
    if others:
        warnings.warn(say_others(others, directory), SweepWarning, stacklevel=3)
    return runs


class SweepWarning(UserWarning):
    """Something about a sweep that its user should know."""


def say_others(others: Sequence[str], directory: str | os.PathLike[str]) -> str:
    """What to do about runs in a directory that do not belong to its plan."""
    folder, number = plain(str(Path(directory) / "runs")), len(others)
    return (
        f"{counted(number, 'run')} in {folder} {verb(number, 'does', 'do')} not belong to this plan, for example "
        f"{others[0]!r}. {verb(number, 'It stays', 'They stay')}, and whatever reads the directory counts "
        f"{verb(number, 'it', 'them')} too. If {verb(number, 'it is', 'they are')} not wanted, move "
        f"{verb(number, 'its folder', 'their folders')} out of it"
    )


def not_in_plan(plans: Sequence[RunPlan], directory: str | os.PathLike[str]) -> list[str]:
    """Ids of the runs in a directory that are none of these plans: metrics over the directory count them too."""
    wanted = {run_id(plan) for plan in plans}
    there = {path.parent.name for path in Path(directory).glob(f"runs/*/{HEADER}")}
    return sorted(there - wanted)
