"""What a sweep will do, before it does it: runs, sessions, what they share, and what models will be asked."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._display import counted, plain
from memorydojo.models.config import SIMULATED, Models
from memorydojo.planning.expand import Expansion, expand, not_in_plan
from memorydojo.planning.growth import COUNTS, Measured, PerSession
from memorydojo.planning.payloads import MissingFile
from memorydojo.planning.sharing import SharedSessions, Stretch, shared_sessions, stretches
from memorydojo.planning.sweep_plan import SweepPlan
from memorydojo.running.prefix import before_first
from memorydojo.runs.model import RunPlan
from memorydojo.view import View, Viewed

if TYPE_CHECKING:
    from memorydojo.runs import Run

_ROLES = ("agent", "memory", "embedding")


@dataclass(frozen=True)
class Cell:
    """A part of a sweep: one row of a table of results.

    Attributes:
        model: The task agent's model.
        memory: The memory system.
        condition: ``"clean"``, or the source of the payload: ``"seed"``, ``"optimized"`` or ``"user"``.
        objective: Id of the objective; None without attack.
        runs: Its runs.
        task_sessions: Their planned task sessions.
    """

    model: str
    memory: str
    condition: str
    objective: str | None
    runs: int
    task_sessions: int


@dataclass(frozen=True)
class Estimate:
    """What one model will be asked in one role by runs of one memory system.

    Attributes:
        memory: The memory system.
        role: ``"agent"``, ``"memory"`` or ``"embedding"``.
        model: The model's name.
        calls: Requests.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        basis: What the numbers come from.
    """

    memory: str
    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    basis: str


@dataclass(frozen=True)
class DryRun(Viewed):
    """What a sweep will do.

    Attributes:
        name: The plan's name.
        runs: All runs of the plan.
        done: Of these, runs that the directory already holds, complete.
        duplicates: Combinations that are equal to another one and are run once.
        task_sessions: Planned task sessions of all runs.
        history_sessions: History sessions of all runs; those of trajectory files that are missing are not known.
        shared: Of both, those that runs take over from another one instead of running them again.
        shareable: The same if every run shared, as with ``share=True``.
        cells: The parts of the sweep.
        models: Names of models that are not declared.
        missing: Payload and trajectory files that are not there.
        estimates: What models will be asked for the runs that are not done.
        not_estimated: Memory systems whose own calls nobody has measured; they are in no sum.
        other_runs: Ids of runs in the directory that do not belong to the plan.
    """

    name: str
    runs: int
    done: int
    duplicates: int
    task_sessions: int
    history_sessions: int
    shared: SharedSessions
    shareable: SharedSessions
    cells: tuple[Cell, ...]
    models: tuple[str, ...]
    missing: tuple[MissingFile, ...]
    estimates: tuple[Estimate, ...]
    not_estimated: tuple[str, ...]
    other_runs: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON data; missing files with the command that makes each."""
        missing = [{"path": str(m.path), "kind": m.kind, "command": m.command} for m in self.missing]
        return {**asdict(self), "missing": missing}

    def view(self) -> View:
        """Runs, sessions, the parts of the sweep, and what models will be asked."""
        from memorydojo.planning._view import dry_run_view

        return dry_run_view(self)

    def __repr__(self) -> str:
        return f"<DryRun {plain(self.name)!r}: {counted(self.runs, 'run')}, {self.done} of them done>"


def dry_run(
    sweep: "SweepPlan | Expansion | Iterable[RunPlan]",
    *,
    directory: str | Path | None = None,
    models: Models | None = None,
    share: bool | None = None,
) -> DryRun:
    """What a sweep will do.

    Args:
        sweep: The sweep.
        directory: The directory that it is to be saved in; runs that are there count as done, and what they asked is
            the basis of the estimate.
        models: Which models there are; see `memorydojo.sweep`.
        share: Whether runs share the sessions that they begin with; see `memorydojo.sweep`.

    Raises:
        InvalidInputError: The plan is not possible; see `expand`.
        SavedRunError: The directory holds something else, or runs that cannot be read.
    """
    name = sweep.name if isinstance(sweep, SweepPlan) else "sweep"
    if isinstance(sweep, SweepPlan):
        sweep = expand(sweep)
    if not isinstance(sweep, Expansion):
        sweep = Expansion.of(sweep)
    plans = sweep.plans
    saved = _saved(directory)
    done = {identity for identity in plans if identity in saved and saved[identity].complete}
    todo = [plan for identity, plan in plans.items() if identity not in done]
    ahead = list(stretches(todo, share=share, models=models))
    estimates, unknown = _estimates(ahead, [run for run in saved.values() if run.complete], directory)
    known = list(plans.values())
    return DryRun(
        name=name,
        runs=len(plans),
        done=len(done),
        duplicates=sweep.duplicates,
        task_sessions=sum(len(plan.trajectory) for plan in plans.values()),
        history_sessions=sum(before_first(plan) for plan in known),
        shared=shared_sessions(known, share=share, models=models),
        shareable=shared_sessions(known, share=True, models=models),
        cells=cells_of(plans.values()),
        models=_undeclared(known, models),
        missing=sweep.missing,
        estimates=estimates,
        not_estimated=unknown,
        other_runs=tuple(not_in_plan(list(plans.values()), directory)) if directory is not None else (),
    )


def _saved(directory: str | Path | None) -> "Mapping[str, Run]":
    from memorydojo.runs import load_runs

    if directory is None or not Path(directory).exists() or not any(Path(directory).iterdir()):
        return {}
    return {run.id: run for run in load_runs(directory)}


def cells_of(plans: Iterable[RunPlan]) -> tuple[Cell, ...]:
    """The parts of a sweep, in the order of their first runs."""
    counts: dict[tuple[str, str, str, str | None], list[int]] = {}
    for plan in plans:
        payload = plan.insertion.payload if plan.insertion else None
        key = (plan.model, plan.memory, payload.source if payload else "clean", payload.objective if payload else None)
        count = counts.setdefault(key, [0, 0])
        count[0] += 1
        count[1] += len(plan.trajectory)
    return tuple(Cell(*key, *count) for key, count in counts.items())


def _undeclared(plans: Iterable[RunPlan], models: Models | None) -> tuple[str, ...]:
    known = models or Models()
    names = dict.fromkeys(n for plan in plans for n in (plan.model, plan.memory_model, plan.embedding_model))
    return tuple(name for name in names if name not in known)


def _estimates(
    ahead: Sequence[Stretch], saved: "Sequence[Run]", directory: str | Path | None
) -> tuple[tuple[Estimate, ...], tuple[str, ...]]:
    """What the sessions will ask, by memory system, role and model; and the memory systems that nothing is known of."""
    from memorydojo.planning.measure import per_session

    measured = measured_offline()
    groups: dict[tuple[str, str, str, str], Counter[int]] = {}
    for stretch in ahead:
        groups.setdefault(_models_of(stretch.plan), Counter()).update(range(stretch.first, stretch.last + 1))
    sums: dict[tuple[str, str, str, str], dict[str, float]] = {}
    unknown: dict[str, None] = {}
    for (memory, *models), times in groups.items():
        runs = [r for r in saved if _models_of(r.plan) == (memory, *models)]
        asked = per_session(runs, agent_messages=False) if runs else measured.memories.get(memory)
        if asked is None:
            unknown[memory] = None
            continue
        basis = _basis(asked, len(runs), directory, longest=max(times, default=0))
        for role, model in zip(_ROLES, models, strict=True):
            if role == "agent" and model == SIMULATED:
                continue  # the simulated agent asks no model
            total = sums.setdefault((memory, role, model, basis), dict.fromkeys(COUNTS, 0.0))
            for name in COUNTS:
                line = getattr(getattr(asked, role), name)
                total[name] += sum(number * line.at(session) for session, number in times.items())
    estimates = (
        Estimate(memory=memory, role=role, model=model, basis=basis, **{name: round(total[name]) for name in COUNTS})
        for (memory, role, model, basis), total in sums.items()
        if round(total["calls"])
    )
    return tuple(estimates), tuple(unknown)


def _models_of(plan: RunPlan) -> tuple[str, str, str, str]:
    return plan.memory, plan.model, plan.memory_model, plan.embedding_model


def _basis(asked: PerSession, runs: int, directory: str | Path | None, *, longest: int) -> str:
    basis = (
        f"{counted(runs, 'saved run')} in {plain(str(directory))}" if runs else "measured offline with the simulator"
    )
    beyond = f", extrapolated beyond session {asked.longest}" if longest > asked.longest else ""
    return f"{basis}, {counted(asked.sessions, 'session')}{beyond}"


def measured_offline() -> Measured:
    """What was measured with the simulator; made by ``python -m memorydojo.planning.measure``."""
    text = (files("memorydojo.planning") / "measured.json").read_text(encoding="utf-8")
    return Measured.model_validate(json.loads(text))
