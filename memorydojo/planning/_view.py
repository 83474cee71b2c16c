"""What sweeps look like before they run: as declared, as expanded, and as a dry run tells them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memorydojo._display import counted, plain, verb
from memorydojo.models.config import SIMULATED
from memorydojo.view import LONGEST, Column, View, cut, fields

if TYPE_CHECKING:
    from pathlib import Path

    from memorydojo.planning.estimate import Cell, DryRun
    from memorydojo.planning.expand import Expansion
    from memorydojo.planning.payloads import MissingFile
    from memorydojo.planning.sweep_plan import PayloadChoice, SweepPlan

_NO_MODEL = "simulated: the agent is the offline simulator; such runs say nothing about a language model."


def plan_view(plan: "SweepPlan") -> View:
    """What is crossed."""
    models = [
        f"{one.agent} (memory {one.memory})" if one.memory not in (None, one.agent) else one.agent
        for one in plan.models
    ]
    simulated = any(one.agent == SIMULATED for one in plan.models)
    rows = [
        ("description", plan.description or None),
        ("collections", _listed(plan.collections)),
        ("trajectory files", _listed(file.path for file in plan.trajectory_files)),
        ("trajectories", _listed(plan.trajectories)),
        ("memories", _listed(f"{m.name} {_settings(m.settings)}".strip() for m in plan.memories)),
        ("models", _listed(models)),
        ("objectives", _listed(plan.objectives)),
        ("payloads", _listed(map(_payload, plan.payloads))),
        ("insertion", _listed(map(str, plan.insertion)) if plan.payloads else None),
        ("defenses", _listed(plan.defenses) if plan.defenses != ("none",) else None),
        ("seeds", _listed(map(str, plan.seeds))),
        ("clean runs too", plan.clean),
        ("agent", plan.agent),
        ("after a failure", plan.on_failure),
    ]
    notes = ["Every combination is a run; memorydojo.planning.dry_run counts them."]
    return fields(f"Sweep {plan.name}", rows, simulated=simulated, notes=[*notes, _NO_MODEL] if simulated else notes)


def _settings(settings: Mapping[str, object]) -> str:
    return f"({', '.join(f'{name}={value!r}' for name, value in settings.items())})" if settings else ""


def _payload(choice: "PayloadChoice") -> str:
    return choice.path or str(choice.id)


def _listed(names: Iterable[str]) -> str | None:
    found, more = cut(list(names), "other")
    return ", ".join([*found, more] if more else found) or None


def expansion_view(expansion: "Expansion") -> View:
    """The runs by what they have in common."""
    from memorydojo.planning.estimate import cells_of

    runs = list(expansion.plans.values())
    notes = []
    if expansion.duplicates:
        notes.append(f"{counted(expansion.duplicates, 'combination')} equal to an earlier one: run once.")
    sessions = sum(len(run.trajectory) for run in runs)
    title = f"{counted(len(runs), 'run')}, {counted(sessions, 'task session')}"
    table = _cells(cells_of(runs), title, notes)
    return replace(table, parts=_missing(expansion.missing))


def dry_run_view(
    report: "DryRun", *, description: str = "", directory: "Path | None" = None, limit: int | None = LONGEST
) -> View:
    """Everything that a dry run tells.

    Args:
        report: The dry run.
        description: What the sweep is for.
        directory: The directory that it is to be saved in.
        limit: How many parts of the sweep to show; None for all.
    """
    from memorydojo.planning.expand import say_others

    where = f" in {plain(str(directory))}" if directory is not None else ""
    notes = [f"{counted(report.runs, 'run')}, {report.done} of them done{where}"]
    if any(missing.kind == "trajectory" for missing in report.missing):
        notes.append("counted with the task sessions of a collection that ships, as a trajectory file is missing;")
        notes.append("its history sessions are not known and not counted")
    if report.duplicates:
        are = verb(report.duplicates)
        notes.append(f"{counted(report.duplicates, 'combination')} {are} equal to another one and {are} run once")
    notes.append(_sessions(report.task_sessions, report.history_sessions))
    notes.append(f"of these taken over from another run: {_sessions(report.shared.task, report.shared.history)}")
    if report.shareable != report.shared:
        notes.append(f"  with --share: {report.shareable.task} and {report.shareable.history}; see docs/sweeps.md")
    table = _cells(report.cells, "", [], limit=limit)
    last = [f"models to declare in a file for --models: {', '.join(report.models)}"] if report.models else []
    if report.other_runs and directory is not None:
        last.append(say_others(report.other_runs, directory))
    elif report.other_runs:
        last.append(
            f"{counted(len(report.other_runs), 'run')} in the directory not of this plan; metrics count them too"
        )
    if table.simulated:
        last.append(_NO_MODEL)
    return View(
        f"{report.name}: {description}" if description else report.name,
        simulated=table.simulated,
        notes=notes,
        parts=[table, *_estimates(report), *([View(notes=last)] if last else []), *_missing(report.missing)],
    )


def _sessions(task: int, history: int) -> str:
    return f"{counted(task, 'task session')}, {counted(history, 'history session')}"


def _cells(cells: "Sequence[Cell]", title: str, notes: Sequence[str], *, limit: int | None = LONGEST) -> View:
    shown, more = cut(cells, "part", limit=limit)
    simulated = any(cell.model == SIMULATED for cell in cells)
    return View(
        title,
        ("model", "memory", "condition", "objective", Column("runs", number=True), Column("sessions", number=True)),
        [(c.model, c.memory, c.condition, c.objective, c.runs, c.task_sessions) for c in shown],
        more=more,
        notes=[*notes, *([_NO_MODEL] if simulated and title else [])],
        simulated=simulated,
    )


def _estimates(report: "DryRun") -> Iterable[View]:
    """What models will be asked, and what the numbers come from."""
    notes = []
    for basis in dict.fromkeys(e.basis for e in report.estimates):
        memories = ", ".join(dict.fromkeys(e.memory for e in report.estimates if e.basis == basis))
        notes.append(f"basis for {memories}: {basis}")
    if report.estimates:
        notes.append(
            "Real models may reason, repeat and retry: expect more. Judges other than the offline one come on top."
        )
    if report.history_sessions:
        notes.append("History sessions are not in the estimate.")
    if report.not_estimated:
        notes.append(f"not in the estimate, as nothing was measured: {', '.join(report.not_estimated)}")
    numbers = [Column(name, number=True) for name in ("calls", "tokens in", "tokens out")]
    if report.estimates or notes:
        yield View(
            "estimate for what is not done yet:" if report.estimates else "",
            ["memory", "asked as", "model", *numbers],
            [
                (e.memory, e.role, e.model, f"{e.calls:,}", f"{e.input_tokens:,}", f"{e.output_tokens:,}")
                for e in report.estimates
            ],
            notes=notes,
        )


def _missing(missing: "Sequence[MissingFile]") -> list[View]:
    if not missing:
        return []
    are, them = verb(len(missing)), verb(len(missing), "it", "them")
    shown, more = cut(missing, "file")
    return [
        View(
            notes=[f"{counted(len(missing), 'file')} {are} missing; the sweep needs {them}. Make {them} with:"],
            commands=[*(one.command for one in shown), *([f"{more}; --json lists all"] if more else [])],
        )
    ]
