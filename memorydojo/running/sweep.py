"""Many runs into one directory, resumed where they were left."""

import functools
import gc
import itertools
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo._display import plain
from memorydojo.errors import RunInUseError
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.running.interrupt import Interrupt, SweepInterrupted, first_interrupt_waits, not_for_workers
from memorydojo.running.runner import access_to, check_tasks, execute, label
from memorydojo.runs.model import RunPlan
from memorydojo.runs.store import RunDirectory, run_id

if TYPE_CHECKING:
    from memorydojo.planning import SweepPlan
    from memorydojo.planning.progress import Progress
    from memorydojo.runs import Runs

#: How many runs are handed to an executor ahead of those that have ended.
WINDOW = 512
#: Seconds between looks at whether somebody wants to stop.
LOOK_UP = 0.2

_FREEZING = threading.Lock()
_sweeping = 0


def sweep(
    plans: "Iterable[RunPlan] | SweepPlan",
    *,
    directory: str | Path,
    executor: Executor | None = None,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    keep_memory: bool = False,
    progress: "Progress | bool" = True,
) -> "Runs":
    """Runs plans and labels them with the offline judge. Called again, it goes on where it was left.

    Args:
        plans: What to run: plans from `plan_run`, or a whole `SweepPlan`. Equal plans are run once. After a `SweepPlan`
            a `SweepWarning` names runs in the directory that do not belong to it.
        directory: Where the runs are saved; new, empty, or a directory of runs.
        executor: Any `concurrent.futures.Executor`; None runs them here, one after another. It is not shut down.
        models: Which models there are; see `run`.
        keys: Keys of endpoints that are not in the environment.
        replay: Where answers come from; see `run`.
        answers: The file of recorded answers; see `run`.
        keep_memory: Keep the memory systems' own files in the runs' directories.
        progress: True shows a bar in a terminal or notebook, and nothing elsewhere; a function is called after each run
            with the number of runs done, the number of all, and the run's id.

    Returns:
        The runs of the plans, in the order of the plans.

    Raises:
        UnknownNameError: A plan names an unknown model, domain or task; nothing has run then.
        InvalidInputError: A key or a payload file is missing, or the `SweepPlan` is impossible; nothing has run then.
        EndpointDownError: A model endpoint or its key is dead. What was saved stays; call again to go on.
        SavedRunError: The directory cannot be used.
        RunInUseError: Another process is at some of the runs; all others are done.
        MissingPackageError: A memory system's package is not installed.
        SweepInterrupted: Ctrl-C was pressed. What was under way is saved; call again to go on.
    """
    from memorydojo.planning.expand import runs_of
    from memorydojo.planning.progress import shown
    from memorydojo.runs import Runs, load_runs

    wanted = {run_id(plan): plan for plan in runs_of(plans, directory)}
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

    job = functools.partial(_unless_in_use, directory=store.path, access=access, keep_memory=keep_memory)
    in_use: list[str] = []
    try:
        with (
            _loaded_code_left_alone(),
            first_interrupt_waits() as interrupt,
            shown(progress, list(wanted.values()), store.path) as show,
        ):
            for identity, ran in _results(todo, executor, job, interrupt):
                if not ran:
                    in_use.append(identity)
                    continue
                finished += 1
                if show is not None:
                    show(finished, len(wanted), identity)
    finally:
        access.settle(store.path)
    if interrupt.asked and finished < len(wanted):
        raise SweepInterrupted(
            f"stopped: {finished} of {len(wanted)} runs are done and saved in {plain(str(store.path))}; "
            "run the same again to go on"
        )
    in_use = [identity for identity in in_use if identity not in store.complete_ids()]
    if in_use:
        raise RunInUseError(
            f"{len(in_use)} of {len(wanted)} runs in {plain(str(store.path))} are being written by another process, "
            f"for example {in_use[0]!r}; all others are done. Wait until that process ends, then call again"
        )
    saved = load_runs(store.path)
    return Runs([label(saved[identity]) for identity in wanted])


@contextmanager
def _loaded_code_left_alone() -> Iterator[None]:
    """Lets the garbage collector pass over what is loaded now.

    AgentDojo and the models' packages are several hundred thousand objects; walking them again and again took a fifth
    of the processor's time when many runs overlapped.
    """
    global _sweeping
    with _FREEZING:
        _sweeping += 1
        if _sweeping == 1:
            gc.freeze()
    try:
        yield
    finally:
        with _FREEZING:
            _sweeping -= 1
            if _sweeping == 0:
                gc.unfreeze()


def _unless_in_use(plan: RunPlan, *, directory: Path, access: Access, keep_memory: bool) -> tuple[str, bool]:
    """Runs a plan, unless another process is at it; the run's id, and whether it is complete now."""
    _end_with_the_parent(os.getpid())
    try:
        return execute(plan, directory, access=access, keep_memory=keep_memory), True
    except RunInUseError:
        return run_id(plan), False


@functools.lru_cache(maxsize=1)
def _end_with_the_parent(process: int) -> None:
    """Ends a worker process when the process that started it is gone; it would wait for work for ever otherwise.

    Args:
        process: This process's id: a forked worker inherits what was remembered, but not the thread.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="memorydojo-parent", daemon=True).start()


def _results(
    plans: Sequence[RunPlan],
    executor: Executor | None,
    job: Callable[[RunPlan], tuple[str, bool]],
    interrupt: Interrupt,
) -> Iterator[tuple[str, bool]]:
    """What the job gives for each plan, as it comes.

    A bounded window of runs is with the executor. After an error or Ctrl-C nothing new starts; what runs is waited for.
    """
    if executor is None:
        yield from map(job, itertools.takewhile(lambda _: not interrupt.asked, plans))
        return
    waiting = list(reversed(plans))
    running: set[Future[tuple[str, bool]]] = set()
    problem: BaseException | None = None
    try:
        while running or (waiting and problem is None):
            with not_for_workers():
                while waiting and problem is None and len(running) < WINDOW:
                    running.add(executor.submit(job, waiting.pop()))
            over, running = wait(running, timeout=LOOK_UP, return_when=FIRST_COMPLETED)
            for future in over:
                error = future.exception()
                if error is None:
                    yield future.result()
                else:
                    problem = problem or error
                    waiting.clear()
            if interrupt.asked or problem is not None:
                waiting.clear()
                running = {future for future in running if not future.cancel()}
    except BaseException:
        for future in running:
            future.cancel()
        raise
    if problem is not None:
        raise problem
