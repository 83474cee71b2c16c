"""Many runs into one directory, resumed where they were left."""

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.models.access import Replay
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.running.runner import access_to, check_tasks, execute, label
from memorydojo.runs.model import RunPlan

if TYPE_CHECKING:
    from memorydojo.runs import Runs

#: How many runs are handed to an executor ahead of those that have ended.
WINDOW = 512

Progress = Callable[[int, int, str], None]


def sweep(
    plans: Iterable[RunPlan],
    *,
    directory: str | Path,
    executor: Executor | None = None,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    keep_memory: bool = False,
    progress: Progress | None = None,
) -> "Runs":
    """Runs plans and labels them with the offline judge. Called again, it goes on where it was left.

    Args:
        plans: What to run, from `plan_run`. Equal plans are run once.
        directory: Where the runs are saved; new, empty, or a directory of runs.
        executor: Any `concurrent.futures.Executor`; None runs them here, one after another. It is not shut down.
        models: Which models there are; see `run`.
        keys: Keys of endpoints that are not in the environment.
        replay: Where answers come from; see `run`.
        answers: The file of recorded answers; see `run`.
        keep_memory: Keep the memory systems' own files in the runs' directories.
        progress: Called after each run with the number of runs done, the number of all, and the run's id.

    Returns:
        The runs of the plans, in the order of the plans.

    Raises:
        UnknownNameError: A plan names an unknown model, domain or task; nothing has run then.
        InvalidInputError: A key is missing; nothing has run then.
        EndpointDownError: A model endpoint or its key is dead. What was saved stays; call again to go on.
        SavedRunError: The directory cannot be used.
        MissingPackageError: A memory system's package is not installed.
    """
    from memorydojo.runs import RunDirectory, Runs, load_runs, run_id

    wanted = {run_id(plan): plan for plan in plans}
    for trajectory in {
        json.dumps(p.trajectory.model_dump(mode="json")): p.trajectory for p in wanted.values()
    }.values():
        check_tasks(trajectory)
    access = access_to(models, keys=keys, replay=replay, answers=answers)
    access.check(*{name for p in wanted.values() for name in (p.model, p.memory_model, p.embedding_model)})
    store = RunDirectory(directory)
    done = [identity for identity in wanted if identity in store.complete_ids()]
    todo = [plan for identity, plan in wanted.items() if identity not in done]
    finished = len(done)

    def ended(identity: str) -> None:
        nonlocal finished
        finished += 1
        if progress is not None:
            progress(finished, len(wanted), identity)

    if executor is None:
        for plan in todo:
            ended(execute(plan, store.path, access=access, keep_memory=keep_memory))
    else:
        job = functools.partial(execute, directory=store.path, access=access, keep_memory=keep_memory)
        _submit(todo, executor, job, ended=ended)
    saved = load_runs(store.path)
    return Runs([label(saved[identity]) for identity in wanted])


def _submit(
    plans: Sequence[RunPlan], executor: Executor, job: Callable[[RunPlan], str], *, ended: Callable[[str], None]
) -> None:
    """Keeps a bounded window of runs with the executor. After an error nothing new starts; what runs is waited for."""
    waiting = list(reversed(plans))
    running: set[Future[str]] = set()
    problem: BaseException | None = None
    while running or (waiting and problem is None):
        while waiting and problem is None and len(running) < WINDOW:
            running.add(executor.submit(job, waiting.pop()))
        over, running = wait(running, return_when=FIRST_COMPLETED)
        for future in over:
            error = future.exception()
            if error is None:
                ended(future.result())
            else:
                problem = problem or error
                waiting.clear()
    if problem is not None:
        raise problem
