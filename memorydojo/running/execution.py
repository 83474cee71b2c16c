"""Executing one plan, or the sessions that several plans share, in a directory of runs."""

import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.errors import RunInUseError
from memorydojo.models.access import Access
from memorydojo.running.checkpoint import Checkpoint, SharedState
from memorydojo.running.course import Attempt, is_ready
from memorydojo.running.prefix import Prefix
from memorydojo.runs._files import disk_errors, saving
from memorydojo.runs.model import RunPlan, SharedSegment
from memorydojo.runs.store import KEPT_MEMORY, RunDirectory, run_id
from memorydojo.shipped import objectives

if TYPE_CHECKING:
    from memorydojo.runs import Run

_ATTEMPTS = "memories-in-use"


def label(run: "Run") -> "Run":
    """Labels a complete run with the offline judge, unless this version's labels of all objectives are there."""
    from memorydojo.judging import OverlapJudge, answers_version, label_run

    judge = OverlapJudge()
    if not run.has_labels(judge.id, version=judge.version, objectives=objectives, answers=answers_version(judge)):
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    return run


def execute(
    plan: RunPlan,
    directory: Path,
    *,
    access: Access | None = None,
    keep_memory: bool = False,
    trunk: Sequence[Prefix] = (),
) -> str:
    """Runs a plan, saves the facts, and labels them with the offline judge, unless the facts are saved already.

    Args:
        plan: The plan.
        directory: The directory of runs.
        access: Models, keys and replay.
        keep_memory: Keep the memory system's own files in the run's directory.
        trunk: Shared sessions that the run can go on from, nearest first. Without the checkpoint of any of them, the
            run starts at its beginning.

    Returns:
        The id of the run.

    Raises:
        EndpointDownError: A model endpoint or its key is dead, or an answer is not recorded in a pure replay. What was
            saved stays, and the run starts again when it is called again.
        RunInUseError: Another process is at this run.
    """
    from memorydojo.judging import Facts, OverlapJudge, label_run

    identity = run_id(plan)
    store = RunDirectory(directory)
    if store.is_complete(identity):
        remove_left(store.path, [identity])
        return identity
    history = store.history_of(plan)
    with disk_errors(store.path), store.claim(identity) as claim:
        if claim.complete:
            return identity
        with _place(store.path / _ATTEMPTS, identity) as (place, token):
            attempt = Attempt(plan, history, store.path, place, token, access or Access())
            with attempt.begun(trunk) as course, claim.begin(course.header(identity)) as writer:
                for told in course.told:
                    writer.append_history(told)
                for result in course.sessions:
                    writer.append(result)
                course.run(len(plan.trajectory), save=writer.append, save_history=writer.append_history)
                if (question := course.question()) is not None:
                    writer.save_question(question)
                writer.end(course.end())
            if keep_memory:
                place.rename(writer.directory / KEPT_MEMORY)
        if plan.insertion is None or plan.insertion.payload.objective in objectives:
            # From the facts at hand: reading them again would cost more. An objective that was registered in another
            # process than this one is evaluated where the sweep was called.
            facts = Facts(writer.header, course.sessions, course.told, question)
            writer.save_labels(label_run(facts, judge=OverlapJudge(), objectives=objectives))
    return identity


def execute_prefix(
    prefix: Prefix, directory: Path, *, access: Access | None = None, trunk: Sequence[Prefix] = ()
) -> None:
    """Runs shared sessions and leaves their checkpoint, unless it is there.

    Args:
        prefix: The sessions.
        directory: The directory of runs.
        access: Models, keys and replay.
        trunk: Shorter prefixes that it can go on from, nearest first.

    Raises:
        EndpointDownError: As of `execute`.
        RunInUseError: Another process is at these sessions.
        MemorySystemError: The memory system gives no copy of itself.
    """
    access = access or Access()
    store = RunDirectory(directory)
    if is_ready(prefix, store.path, access=access):
        return
    history = store.history_of(prefix.plan)
    checkpoint = Checkpoint(store.path, prefix.id)
    with disk_errors(store.path), checkpoint.claimed():
        if is_ready(prefix, store.path, access=access):
            return
        # What another attempt recorded is another sample of a real model's answers, so each attempt has its own token;
        # a replay looks for the answers of the latest one by the name that only depends on the plan.
        name = _token(prefix.id)
        token = name if access.replay != "off" else secrets.token_hex(8)
        with (
            _place(store.path / _ATTEMPTS, prefix.id) as (place, _),
            Attempt(prefix.plan, history, store.path, place, token, access).begun(trunk) as course,
        ):
            first = course.next if course.segments else 0
            course.run(prefix.sessions)
            line, segments = course.line, course.segments
            if line is not None:
                line.link(name)
                own = SharedSegment(token=token, first=first, last=len(course.sessions), **course.opening)
                segments = (*segments, own)
            state = SharedState(
                header=course.header(run_id(prefix.plan)),
                segments=segments,
                told=tuple(course.told),
                sessions=tuple(course.sessions),
                stopped=course.stopped,
                ordinals=line.ordinals() if line is not None else {},
            )
            checkpoint.write(state, None if course.stopped else course.memory, course.environments)


def remove_prefix(prefix: Prefix, directory: Path) -> None:
    """Removes the checkpoint of shared sessions, and what killed attempts at them left, unless somebody is at it."""
    checkpoint = Checkpoint(directory, prefix.id)
    if checkpoint.exists:
        with suppress(RunInUseError), checkpoint.claimed():
            _clear(directory / _ATTEMPTS, _token(prefix.id))
            checkpoint.remove()


def remove_left(directory: Path, complete: Iterable[str]) -> None:
    """Removes the memories of complete runs that lie about.

    A kill after a run's end leaves its memory, and no later attempt at the run clears it away.

    Args:
        directory: The directory of runs.
        complete: Ids of complete runs.
    """
    attempts = directory / _ATTEMPTS
    left = {path.name.partition("-")[0] for path in attempts.glob("*-*")}
    for token in left.intersection(map(_token, complete)):
        _clear(attempts, token)


def _token(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


@contextmanager
def _place(attempts: Path, identity: str) -> Iterator[tuple[Path, str]]:
    """A directory for the memory of one attempt at a run, and what the gateway knows the run by.

    The memory sees this path and the gateway's address, so neither may tell a poisoned run from a clean one. The run
    is claimed, so whatever stands here of it is left of attempts that were killed.
    """
    token = _token(identity)
    with saving(attempts):
        attempts.mkdir(exist_ok=True)
        _clear(attempts, token)
        place = Path(tempfile.mkdtemp(prefix=f"{token}-", dir=attempts))
    try:
        yield place, token
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _clear(attempts: Path, token: str) -> None:
    for left in attempts.glob(f"{token}-*"):
        shutil.rmtree(left, ignore_errors=True)
