"""The session table of saved runs (columns: `memorydojo.runs.table`)."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memorydojo.errors import SavedRunError
from memorydojo.judging import Facts, OverlapJudge, earliest_failed_checks, label_run
from memorydojo.judging.labels import OFFLINE_JUDGE, POISON, Labels, SessionLabels
from memorydojo.judging.labels import labels_of as name_of_labels
from memorydojo.objective import Objective
from memorydojo.runs import derived
from memorydojo.runs.derived import Derived, Kept, settled, signature, time_of
from memorydojo.runs.load import Run, judge_again
from memorydojo.runs.model import SessionResult
from memorydojo.runs.table import MET_PREFIX, SESSION_TABLE, check_session_table, in_saved_dtypes

NOT_BEGUN = "not begun"
PASSED = "none"


def session_table(
    runs: Sequence[Run], judge: str = OFFLINE_JUDGE, *, objectives: Mapping[str, Objective] | None = None
) -> pd.DataFrame:
    """One row for each planned session of each run; see `memorydojo.runs.load.Runs.session_table`.

    Raises:
        SavedRunError: A run has no labels of this judge, labels of two versions of it are mixed, or a file is damaged.
    """
    parts = _Parts(judge, objectives)
    kept = [parts.of(known.directory) for known in runs]
    parts.save()
    versions: dict[str, str] = {}
    markers: dict[str, str] = {}
    for known, part in zip(runs, kept, strict=True):
        versions.setdefault(f"version {part.version}", known.id)
        if part.marker is not None:
            markers.setdefault(f"answers marked by {part.marker}", known.id)
    for several in (versions, markers):
        if len(several) > 1:
            found = "; ".join(f"{version}, for example {run!r}" for version, run in sorted(several.items()))
            raise SavedRunError(
                f"labels of several versions of the judge {judge!r} are mixed: {found}. Label the older runs again: "
                f"{judge_again(judge, runs[0].directory.parent.parent)}"
            )
    names = {name for part in kept for name in (*part.shared, *part.columns)}
    met = sorted(name for name in names if name.startswith(MET_PREFIX))
    table = pd.DataFrame(
        {name: _column(name, [v for part in kept for v in part.column(name)]) for name in [*COLUMNS, *met]}
    )
    return in_saved_dtypes(check_session_table(table.astype(dict.fromkeys(_COUNTS, "int64"))))


_BOOLEAN = {column.name for column in SESSION_TABLE if column.kind == "boolean"}


def _column(name: str, values: list[Any]) -> "pd.Series[Any]":
    # Left to pandas, text and numbers with gaps would get other dtypes; of truth values without gaps it makes what the
    # check would make of them, in a tenth of the time.
    truth = name in _BOOLEAN or name.startswith(MET_PREFIX)
    return pd.Series(values) if truth and values else pd.Series(values, dtype=object)


class _Parts:
    """The rows of runs: those that were kept and still hold, and new ones."""

    def __init__(self, judge: str, objectives: Mapping[str, Objective] | None) -> None:
        self._judge, self._objectives = judge, objectives
        self._labels = name_of_labels(judge)
        self._derived: dict[Path, tuple[Derived, int | None] | None] = {}

    def of(self, folder: Path) -> Kept:
        """The rows of the run in a folder."""
        store, now = self._of_directory(folder.parent.parent) or (None, None)
        found = store.find(folder) if store is not None else None
        if found is not None:
            return found
        state = signature(folder, self._labels) if store is not None else []
        # A run of its own for reading: the sessions of all runs together may not fit into memory.
        run = Run(folder)
        labels = labels_of(run, self._judge, objectives=self._objectives)
        marker = labels.answer.version if labels.answer is not None else None
        made = Kept.of(_run_rows(run, labels), version=labels.judge_version, marker=marker, signature=state)
        if store is not None and run.complete and labels.judge in run.judges() and settled(folder):
            store.keep(folder, made, now=now)
        return made

    def _of_directory(self, directory: Path) -> tuple[Derived, int | None] | None:
        """What is kept of a directory, and its time; None for one that is too small to keep anything."""
        if directory not in self._derived:
            large = sum(1 for _ in os.scandir(directory / "runs")) >= derived.WORTH_KEEPING
            self._derived[directory] = (Derived.read(directory, self._labels), time_of(directory)) if large else None
        return self._derived[directory]

    def save(self) -> None:
        """Keeps what is new."""
        for found in self._derived.values():
            if found is not None and found[0].changed:
                found[0].save()


def labels_of(run: Run, judge: str, *, objectives: Mapping[str, Objective] | None = None) -> Labels:
    """The saved labels of a judge; those of the offline judge are made on the fly where they are missing."""
    if judge != OFFLINE_JUDGE:
        return run.labels(judge)
    if judge in run.judges():
        try:
            return run.labels(judge)
        except SavedRunError:
            if run.complete:
                raise
            # Of other sessions, as when a crash took the last one after it was labelled: made again, at no cost.
    if objectives is None:
        from memorydojo.shipped import objectives as shipped

        objectives = shipped
    return label_run(
        Facts(run.header, run.sessions, run.history, run.question), judge=OverlapJudge(), objectives=objectives
    )


def _run_rows(run: Run, labels: Labels) -> list[dict[str, Any]]:
    shared = _run_columns(run, labels)
    begun = {result.session: result for result in run.sessions}
    judged = {found.session: found for found in labels.sessions}
    checks = {found.session: found.failed or PASSED for found in earliest_failed_checks(run, labels).sessions}
    rows = []
    for number, planned in enumerate(run.plan.trajectory.sessions, start=1):
        found = judged.get(number)
        met = found.met if found else dict.fromkeys(labels.objectives, False)
        rows.append(
            {
                **shared,
                "session": number,
                "domain": planned.suite,
                "task_id": planned.task_id,
                "flags": ",".join(sorted(planned.flags)),
                "retrieved": found is not None and found.retrieved,
                "retrieved_original": found is not None and found.retrieved_original,
                "retrieved_descendant": found is not None and found.retrieved_descendant,
                "retrieval_unjudged": found is not None and found.retrieval_unjudged,
                "origin_unjudged": found is not None and found.origin_unjudged,
                "objective_unjudged": found is not None and shared["objective"] in found.objectives_unjudged,
                "objective_met": met[shared["objective"]] if shared["objective"] is not None else False,
                "failed_check": checks.get(number),
                **_delivered(begun.get(number), found),
                **_outcome(begun.get(number)),
                **{f"{MET_PREFIX}{objective}": value for objective, value in met.items()},
            }
        )
    return rows


def _delivered(result: SessionResult | None, found: SessionLabels | None) -> dict[str, str]:
    """How the payload was delivered: routes and kinds of the items that bear it, joined by commas."""
    bearing: set[int] = set()
    if found is not None and found.retrieved:
        bearing = {item.rank for item in found.items if item.label in POISON}
    items = [item for item in (result.items if result else ()) if item.rank in bearing]
    return {"retrieved_routes": _joined(i.route for i in items), "retrieved_kinds": _joined(i.kind for i in items)}


def _joined(names: Iterable[str]) -> str:
    return ",".join(sorted({name.replace(",", ";") for name in names}))


def _outcome(result: SessionResult | None) -> dict[str, Any]:
    if result is None:
        return {"utility": False, "completed": False, "failed_stage": NOT_BEGUN, "n_items": 0, "context_chars": 0}
    return {
        "utility": result.utility and result.completed,
        "completed": result.completed,
        "failed_stage": result.failure.stage if result.failure else None,
        "n_items": len(result.items),
        "context_chars": sum(len(item.text) for item in result.items),
    }


def _run_columns(run: Run, labels: Labels) -> dict[str, Any]:
    plan, insertion = run.plan, run.plan.insertion
    payload = insertion.payload if insertion else None
    return {
        "run_id": run.id,
        "n_sessions": len(plan.trajectory),
        "insertion_session": insertion.session if insertion else None,
        "objective_domain": labels.objectives[payload.objective] if payload else None,
        "inserted": labels.inserted,
        "memory": plan.memory,
        "model": plan.model,
        "collection": plan.trajectory.collection,
        "trajectory_id": plan.trajectory.id,
        "objective": payload.objective if payload else None,
        "payload_id": payload.id if payload else None,
        "defense": plan.defense,
        "simulated": run.header.simulated,
        "payload_sha256": payload.sha256 if payload else None,
        "payload_source": payload.source if payload else None,
        "condition": "poisoned" if payload else "clean",
        "insertion_observation": insertion.observation if insertion else None,
        "payload_inserted": any(result.payload_inserted for result in run.sessions),
        "insertion_label": labels.insertion_label if insertion else None,
        "insertion_unjudged": labels.insertion_unjudged,
        "seed": plan.seed,
        "judge": f"{labels.judge} {labels.judge_version}",
        **_history_columns(run, labels),
    }


def _history_columns(run: Run, labels: Labels) -> dict[str, Any]:
    prefix = run.plan.trajectory.history
    if prefix is None:
        return {"memory_unjudged": False, "history_sessions": 0, "history_failed": 0}
    return {
        "memory_correct": labels.answer is not None and labels.answer.correct,
        "memory_unjudged": labels.answer is not None and labels.answer.unjudged,
        "question_type": prefix.question.type,
        "history_id": prefix.id,
        "history_sessions": prefix.n_sessions,
        "history_failed": prefix.n_sessions - sum(told.completed for told in run.history),
    }


_COUNTS = ("n_items", "context_chars", "seed", "history_sessions", "history_failed")

COLUMNS = (
    *("run_id", "session", "n_sessions", "insertion_session", "domain", "objective_domain"),
    *("inserted", "retrieved", "retrieved_original", "retrieved_descendant"),
    *("objective_met", "utility", "completed"),
    *("memory", "model", "collection", "trajectory_id", "objective", "payload_id", "defense", "simulated"),
    *("condition", "payload_source", "payload_sha256", "payload_inserted", "insertion_observation", "insertion_label"),
    *("insertion_unjudged", "retrieval_unjudged", "origin_unjudged", "objective_unjudged"),
    *("seed", "judge", "task_id", "flags", "failed_stage", "n_items", "context_chars"),
    *("failed_check", "retrieved_routes", "retrieved_kinds"),
    *("memory_correct", "memory_unjudged", "question_type", "history_id", "history_sessions", "history_failed"),
)
"""The columns of the table, before one ``met_<objective id>`` for each objective that was evaluated."""
