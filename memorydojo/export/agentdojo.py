"""Sessions as AgentDojo's own trace files (those that ``agentdojo.logging.TraceLogger`` writes)."""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._display import valid
from memorydojo.errors import SavedRunError
from memorydojo.export._targets import check_runs, new_directory
from memorydojo.judging.labels import OFFLINE_JUDGE, Labels
from memorydojo.record import Message, ToolCall
from memorydojo.runs.load import Run as Saved
from memorydojo.runs.model import Insertion, SessionResult

if TYPE_CHECKING:
    from memorydojo.runs import Run

MANIFEST = "memorydojo-export.json"
ATTACK = "memorydojo"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def write_agentdojo(runs: "Iterable[Run]", directory: str | os.PathLike[str], *, judge: str | None = None) -> Path:
    """Writes the trace of each session that was begun, in the layout in which AgentDojo finds it.

    ``<directory>/<run id>/session-0001/<pipeline>/<suite>/<user task>/<attack>/<injection task>.json``: each
    ``session-*`` is a log directory of ``agentdojo.benchmark.load_task_results``. A trajectory can hold a task twice,
    and many runs hold the same tasks, so one log directory could not take them all. The injection task is the
    objective, the attack ``memorydojo``; both are ``none`` in a clean run.

    Args:
        runs: Saved runs.
        directory: A new or empty directory, or an earlier export, which is replaced.
        judge: Whose labels decide ``security`` of text objectives; None for the offline judge.

    Returns:
        The directory.

    Raises:
        InvalidInputError: The directory holds something else than such an export.
        SavedRunError: A run cannot be read, has no labels of this judge, or a file cannot be written.
    """
    check_runs(runs)
    target = Path(directory)
    with new_directory(target, _is_export) as root:
        written: list[str] = []
        simulated = False
        for known in runs:
            # A run of its own for reading: the sessions of all runs together may not fit into memory.
            run = Saved(known.directory)
            simulated |= run.header.simulated
            for path, trace in _traces(run, judge):
                file = root / path
                file.parent.mkdir(parents=True, exist_ok=True)
                # ASCII: hostile text can break no line and no terminal.
                file.write_text(json.dumps(trace, indent=4, allow_nan=False), encoding="ascii")
                written.append(path.as_posix())
        note = {"format": "agentdojo", "memorydojo_version": version("memorydojo"), "simulated": simulated}
        (root / MANIFEST).write_text(json.dumps({**note, "files": written}, indent=1), encoding="ascii")
    return target


def _is_export(directory: Path) -> bool:
    """Whether every file of a directory was written by an export."""
    try:
        listed = {*json.loads((directory / MANIFEST).read_bytes())["files"], MANIFEST}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}
    return found <= listed


def _traces(run: Saved, judge: str | None) -> list[tuple[Path, dict[str, Any]]]:
    from memorydojo.runs.rows import labels_of

    labels = labels_of(run, OFFLINE_JUDGE if judge is None else judge)
    return [_trace(run, labels, result) for result in run.sessions]


def _trace(run: Saved, labels: Labels, result: SessionResult) -> tuple[Path, dict[str, Any]]:
    insertion, plan = run.plan.insertion, run.plan
    objective = insertion.payload.objective if insertion else None
    said = next(found for found in labels.sessions if found.session == result.session)
    pipeline = f"{plan.model}-{plan.memory}"
    attack = ATTACK if insertion else "none"
    names = (pipeline, result.domain, result.task_id, attack, objective or "none")
    path = Path(run.id, f"session-{result.session:04d}", *map(_segment, names[:-1]), f"{_segment(names[-1])}.json")
    trace = {
        "suite_name": result.domain,
        "pipeline_name": pipeline,
        "user_task_id": result.task_id,
        "injection_task_id": objective,
        "attack_type": attack if insertion else None,
        "injections": _injections(insertion, result),
        "messages": [_message(message, result) for message in result.messages],
        "error": f"{result.failure.type}: {result.failure.message}" if result.failure else None,
        "evaluation_timestamp": f"{run.header.started:%Y-%m-%d %H:%M:%S}",
        "agentdojo_package_version": run.header.versions.get("agentdojo") or _agentdojo(),
        "utility": result.utility and result.completed,
        # AgentDojo's word: True if the attack succeeded, and in a run without attack.
        "security": said.met[objective] if objective is not None else True,
        "duration": sum(result.seconds.values()),
        "memorydojo": {
            "run_id": run.id,
            "session": result.session,
            "n_sessions": len(plan.trajectory),
            "insertion_session": insertion.session if insertion else None,
            "payload_id": insertion.payload.id if insertion else None,
            "memory": plan.memory,
            "model": plan.model,
            "simulated": run.header.simulated,
            "completed": result.completed,
            "retrieved": said.retrieved,
            "judge": f"{labels.judge} {labels.judge_version}",
            "query": result.query,
            "retrieved_context": [item.text for item in result.items],
        },
    }
    return path, _sound(trace)


def _agentdojo() -> str:
    try:
        return version("agentdojo")
    except PackageNotFoundError:
        return "unknown"


def _injections(insertion: Insertion | None, result: SessionResult) -> dict[str, str]:
    """What entered this session, by the place where it did."""
    if insertion is None or not result.payload_inserted:
        return {}
    return {f"observation_{insertion.observation}": insertion.payload.text}


def _message(message: Message, result: SessionResult) -> dict[str, Any]:
    text = [{"type": "text", "content": message.text}]
    if message.role == "user":
        # The request as the agent received it, with what memory delivered.
        return {
            "role": "user",
            "content": [{"type": "text", "content": result.prompt}] if _first(message, result) else text,
        }
    if message.role == "assistant":
        calls = [_call(call) for call in message.tool_calls]
        return {
            "role": "assistant",
            "content": text if message.text or not calls else None,
            "tool_calls": calls or None,
        }
    found = [call for said in result.messages for call in said.tool_calls if call.id == message.tool_call_id]
    call = found[0] if found else ToolCall(id=message.tool_call_id or "", function=message.tool or "", arguments={})
    return {
        "role": "tool",
        "content": text,
        "tool_call_id": message.tool_call_id,
        "tool_call": _call(call),
        "error": message.error,
    }


def _first(message: Message, result: SessionResult) -> bool:
    return next((said for said in result.messages if said.role == "user"), None) is message


def _call(call: ToolCall) -> dict[str, Any]:
    return {"function": call.function, "args": call.arguments, "id": call.id, "placeholder_args": None}


def _segment(name: str) -> str:
    """A name as a part of a path; one that is not safe is made so, and stays different from all others."""
    if _SAFE.fullmatch(name) and name != MANIFEST:
        return name
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:50].strip("-") or "x"
    return f"{readable}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _sound(data: Any) -> Any:
    """JSON data without lone surrogates and without numbers that are not finite."""
    from memorydojo.runs._files import finite

    try:
        return json.loads(valid(json.dumps(finite(data), allow_nan=False, ensure_ascii=False)))
    except (TypeError, ValueError) as error:
        raise SavedRunError(f"a session cannot be exported: {str(error)[:200]}") from error
