"""What saved runs look like: one by its sessions, many by what they have in common."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo._display import counted, plain, verb
from memorydojo.judging import bearing_entries
from memorydojo.judging.labels import OFFLINE_JUDGE, Labels, SessionLabels
from memorydojo.runs.store import HISTORY, SESSIONS
from memorydojo.view import SIMULATED, Column, View, cut

if TYPE_CHECKING:
    from memorydojo.runs.load import Run

_MOST_SESSIONS = 100
_LONGEST_REASON = 160


def run_view(run: "Run") -> View:
    """One row for each planned session: what memory holds of the payload, what came back, what the agent did.

    Labels of the offline judge that are not saved are made on the fly; nothing is written.
    """
    from memorydojo.runs.rows import labels_of

    labels = labels_of(run, OFFLINE_JUDGE)
    planned, more = cut(run.plan.trajectory.sessions, "session", limit=_MOST_SESSIONS)
    attacked = run.plan.insertion is not None
    domains = run.plan.trajectory.domains
    columns: list[Column | str] = [Column("session", number=True), "task", Column("items", number=True)]
    if attacked:
        columns += [Column("stored", number=True), "retrieved", "objective\nmet"]
    rows = list(islice(_sessions(run, labels), len(planned)))
    failures = any(row[-1] for row in rows)
    return View(
        f"Run {run.id}",
        [*columns, "utility", "failed"] if failures else [*columns, "utility"],
        [
            (
                number,
                one.task_id if len(domains) == 1 else f"{one.domain}/{one.task_id}",
                *row[: None if failures else -1],
            )
            for number, (one, row) in enumerate(zip(planned, rows, strict=True), start=1)
        ],
        more=more,
        notes=[*_about(run, labels), *([SIMULATED] if run.header.simulated else [])],
        simulated=run.header.simulated,
    )


def _sessions(run: "Run", labels: Labels) -> Iterable[list[object]]:
    """What there is to say of each planned session."""
    insertion = run.plan.insertion
    judged = {found.session: found for found in labels.sessions}
    stored = bearing_entries(run, labels)
    begun = {session.session: session for session in run.sessions}
    for number in range(1, len(run.plan.trajectory) + 1):
        session = begun.get(number)
        if session is None:
            yield [None, *([None] * 3 if insertion else []), None, "did not run"]
            continue
        attack: list[object] = []
        if insertion is not None:
            found = judged.get(number)
            later = number > insertion.session
            attack = [
                stored[number] if number >= insertion.session else "",
                _came(found) if later and found is not None else "",
                found.met.get(insertion.payload.objective, False) if found else None,
            ]
        failure = session.failure
        why = plain(f"in {failure.stage}: {failure.message}", _LONGEST_REASON) if failure is not None else ""
        yield [len(session.items), *attack, session.utility, why]


def _came(found: SessionLabels) -> str:
    if found.retrieved_original and found.retrieved_descendant:
        return "both"
    return "original" if found.retrieved_original else "descendant" if found.retrieved_descendant else "no"


def _about(run: "Run", labels: Labels) -> Iterable[str]:
    plan, insertion = run.plan, run.plan.insertion
    state = run.end.status if run.end is not None else "interrupted"
    where = f"{plan.trajectory.id} ({', '.join(plan.trajectory.domains)})"
    yield f"Memory {plan.memory}, agent {plan.model}, trajectory {where}: {state}."
    if insertion is not None:
        where = f"observation {insertion.observation} of session {insertion.session}"
        entered = any(session.payload_inserted for session in run.sessions)
        outcome = f"stored: {labels.insertion_label}" if entered else "it never entered"
        payload = insertion.payload
        yield f"Payload {payload.id} ({payload.source}) for {payload.objective}, into {where}; {outcome}."
        yield "Stored: entries of memory that bear it after the session. Retrieved: from which entries it came back."
        yield f"Labels: {labels.judge} {labels.judge_version}."
    else:
        yield "A clean run, without attack."
    if run.history:
        told = sum(one.completed for one in run.history)
        yield f"Before the first session memory took in {told} of {counted(len(run.history), 'history session')}."
    if labels.answer is not None:
        asked = run.question is not None
        verdict = ("right" if labels.answer.correct else "wrong") if asked else "never asked, which counts as wrong"
        yield f"Held-out question: {verdict}."


@dataclass
class _Count:
    runs: int = 0
    complete: int = 0
    failed: int = 0
    sessions: int = 0
    simulated: int = 0


def runs_view(runs: "Iterable[Run]", *, left: int = 0) -> View:
    """How many runs there are of each memory, model, condition and source of the payload, and how they ended.

    Args:
        runs: The runs.
        left: How many more a sweep planned and did not begin.
    """
    counts: dict[tuple[str, str, str], _Count] = {}
    for run in runs:
        plan = run.plan
        condition = f"poisoned ({plan.insertion.payload.source})" if plan.insertion is not None else "clean"
        count = counts.setdefault((plan.memory, plan.model, condition), _Count())
        count.runs += 1
        count.complete += run.complete
        count.failed += _failed(run)
        count.sessions += len(plan.trajectory)
        count.simulated += run.header.simulated
    total = sum(count.runs for count in counts.values())
    simulated = sum(count.simulated for count in counts.values())
    groups, more = cut(sorted(counts.items()), "group")
    notes = ["Failed: a session of the run failed, or the write of its history."] if groups else []
    if left:
        notes.append(f"{counted(left, 'more run')} that a sweep planned {verb(left, 'has', 'have')} not begun.")
    mixed = 0 < simulated < total
    if mixed:
        notes.append(f"{simulated} of {counted(total, 'run')} are simulated.")
    if simulated:
        notes.append(SIMULATED)
    numbers = [Column(name, number=True) for name in ("runs", "complete", "failed", "sessions")]
    return View(
        counted(total, "run"),
        ["memory", "model", "condition", *numbers, *(["simulated"] if mixed else [])],
        [
            (*key, count.runs, count.complete, count.failed, count.sessions, *([count.simulated] if mixed else []))
            for key, count in groups
        ],
        more=more,
        notes=notes,
        simulated=bool(simulated),
    )


def _failed(run: "Run") -> bool:
    """Whether something in a run failed, without reading its sessions where the end says it already."""
    if run.end is not None and run.end.status == "stopped":
        return True
    if run.plan.on_failure == "stop" and run.end is not None:
        return False
    return any(_holds_failure(run.directory / name) for name in (HISTORY, SESSIONS))


def _holds_failure(path: Path) -> bool:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return False
    # Only a line that may say so is parsed: lines are long, and runs many.
    return any(b'"completed": false' in line and _says_failed(line) for line in lines)


def _says_failed(line: bytes) -> bool:
    try:
        data = json.loads(line)
    except ValueError:
        return False  # torn by a crash; whatever reads the sessions tells it
    return isinstance(data, dict) and data.get("completed") is False
