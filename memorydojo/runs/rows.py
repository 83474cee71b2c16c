"""The session table of saved runs (columns: `memorydojo.runs.table`)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from memorydojo.errors import SavedRunError
from memorydojo.judging import Facts, OverlapJudge, earliest_failed_checks, label_run
from memorydojo.judging.labels import OFFLINE_JUDGE, POISON, Labels, SessionLabels
from memorydojo.objective import Objective
from memorydojo.runs.load import Run, judge_again
from memorydojo.runs.model import SessionResult
from memorydojo.runs.table import MET_PREFIX, check_session_table, in_saved_dtypes

NOT_BEGUN = "not begun"
PASSED = "none"


def session_table(
    runs: Sequence[Run], judge: str = OFFLINE_JUDGE, *, objectives: Mapping[str, Objective] | None = None
) -> pd.DataFrame:
    """One row for each planned session of each run; see `memorydojo.runs.load.Runs.session_table`.

    Raises:
        SavedRunError: A run has no labels of this judge, labels of two versions of it are mixed, or a file is damaged.
    """
    rows: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    for known in runs:
        # A run of its own for reading: the sessions of all runs together may not fit into memory.
        run = Run(known.directory)
        labels = labels_of(run, judge, objectives=objectives)
        versions.setdefault(labels.judge_version, run.id)
        rows.extend(_run_rows(run, labels))
    if len(versions) > 1:
        found = "; ".join(f"version {version}, for example {run!r}" for version, run in sorted(versions.items()))
        raise SavedRunError(
            f"labels of several versions of the judge {judge!r} are mixed: {found}. Label the older runs again: "
            f"{judge_again(judge, runs[0].directory.parent.parent)}"
        )
    met = sorted({name for row in rows for name in row if name.startswith(MET_PREFIX)})
    columns = [*COLUMNS, *met]
    table = pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype=object) for name in columns})
    return in_saved_dtypes(check_session_table(table))


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
    return label_run(Facts(run.header, run.sessions), judge=OverlapJudge(), objectives=objectives)


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
                "domain": planned.domain,
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
    }


COLUMNS = (
    *("run_id", "session", "n_sessions", "insertion_session", "domain", "objective_domain"),
    *("inserted", "retrieved", "retrieved_original", "retrieved_descendant"),
    *("objective_met", "utility", "completed"),
    *("memory", "model", "collection", "trajectory_id", "objective", "payload_id", "defense", "simulated"),
    *("condition", "payload_source", "payload_sha256", "payload_inserted", "insertion_observation", "insertion_label"),
    *("insertion_unjudged", "retrieval_unjudged", "origin_unjudged", "objective_unjudged"),
    *("seed", "judge", "task_id", "flags", "failed_stage", "n_items", "context_chars"),
    *("failed_check", "retrieved_routes", "retrieved_kinds"),
)
"""The columns of the table, before one ``met_<objective id>`` for each objective that was evaluated."""
