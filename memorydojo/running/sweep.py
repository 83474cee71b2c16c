"""Many runs into one directory, resumed where they were left."""

import functools
import gc
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo._display import counted, plain, verb
from memorydojo.errors import RunInUseError
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.running.checkpoint import Checkpoint, left_in
from memorydojo.running.course import is_ready
from memorydojo.running.execution import execute, execute_prefix, label, remove_left, remove_prefix
from memorydojo.running.interrupt import SweepInterrupted, first_interrupt_waits, not_for_workers
from memorydojo.running.line import routes_of
from memorydojo.running.prefix import Job, Prefix, tree, trunk_of
from memorydojo.running.runner import access_to, check_tasks
from memorydojo.running.schedule import executed, threads_unless, window_of
from memorydojo.runs.model import RunPlan
from memorydojo.runs.planned import all_complete, plan_runs
from memorydojo.runs.store import RunDirectory, run_id

if TYPE_CHECKING:
    import networkx as nx

    from memorydojo.planning import SweepPlan
    from memorydojo.planning.progress import Progress
    from memorydojo.runs import Runs

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
    share: bool | None = None,
    repeat_failed: bool = False,
    progress: "Progress | bool" = True,
) -> "Runs":
    """Runs plans and labels them with the offline judge. Called again, it goes on where it was left.

    Args:
        plans: What to run: plans from `plan_run`, or a whole `SweepPlan`. Equal plans are run once. With a `SweepPlan`
            a `SweepWarning` names runs in the directory that do not belong to it.
        directory: Where the runs are saved; new, empty, or a directory of runs.
        executor: Any `concurrent.futures.Executor`; None for eight threads. It is not shut down.
        models: Which models there are; see `run`.
        keys: Keys of endpoints that are not in the environment.
        replay: Where answers come from; see `run`.
        answers: The file of recorded answers; see `run`.
        keep_memory: Keep the memory systems' own files in the runs' directories.
        share: Whether runs share the sessions that they begin with; None shares where that is exact. See
            ``docs/prefix-sharing.md``.
        repeat_failed: Run anew what is complete and has sessions that failed, as after an outage of an endpoint. What
            the earlier attempt saved is kept beside it, and counts in no metric.
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
    store = RunDirectory(Path(directory).absolute())
    for plan in wanted.values():
        store.history_of(plan)  # workers in other processes find the histories there
    if repeat_failed:
        _reopen_failed(store, wanted)
    done = {identity for identity in wanted if identity in store.complete_ids()}
    if len(done) < len(wanted):
        plan_runs(store.path, wanted)
    finished = len(done)

    graph = tree(
        wanted.values(),
        share=sharing(share, access),
        done=done,
        ready=functools.partial(is_ready, directory=store.path, access=access),
    )
    in_use: set[str] = set()
    try:
        with (
            _loaded_code_left_alone(),
            first_interrupt_waits() as interrupt,
            shown(progress, list(wanted.values()), store.path) as show,
            threads_unless(executor) as workers,
        ):
            work = _Work(store, graph, workers, access=access, keep_memory=keep_memory)
            jobs = executed(graph, work.submit, window=window_of(workers), stop=interrupt.wanted)
            for node, ran in jobs:
                if node in wanted and ran:
                    finished += 1
                    if show is not None:
                        show(finished, len(wanted), node)
                elif node in wanted:
                    in_use.add(node)
                work.tidy(node)
    finally:
        access.settle(store.path)
    if interrupt.asked and finished < len(wanted):
        raise SweepInterrupted(
            f"stopped: {finished} of {counted(len(wanted), 'run')} {verb(finished)} done and saved in "
            f"{plain(str(store.path))}; run the same again to go on"
        )
    in_use -= store.complete_ids()
    if in_use:
        raise RunInUseError(
            f"{len(in_use)} of {counted(len(wanted), 'run')} in {plain(str(store.path))} {verb(len(in_use))} being "
            f"written by another process, for example {min(in_use)!r}; all others are done. Wait until that process "
            "ends, then call again"
        )
    all_complete(store.path, wanted)
    remove_left(store.path, wanted)
    _remove_checkpoints(store, wanted.values())
    saved = load_runs(store.path)
    return Runs([label(saved[identity]) for identity in wanted])


class _Work:
    """The jobs of a sweep.

    Args:
        store: The directory of the runs.
        graph: The tree of the jobs.
        executor: Who does them.
        access: Models, keys and replay.
        keep_memory: Keep the memory systems' own files.
    """

    def __init__(
        self,
        store: RunDirectory,
        graph: "nx.DiGraph[str]",
        executor: Executor,
        *,
        access: Access,
        keep_memory: bool,
    ) -> None:
        self._store, self._graph, self._executor, self._access = store, graph, executor, access
        self._run = functools.partial(_unless_in_use, directory=store.path, access=access, keep_memory=keep_memory)
        self._grow = functools.partial(_prefix_unless_in_use, directory=store.path, access=access)

    def submit(self, node: str) -> "Future[bool] | None":
        """Hands a job out, unless it is for runs that somebody else has completed by now."""
        job: Job = self._graph.nodes[node]["job"]
        trunk = trunk_of(self._graph, node)
        with not_for_workers():
            if isinstance(job, RunPlan):
                return self._executor.submit(self._run, job, trunk)
            return self._executor.submit(self._grow, job, trunk) if _needed(self._store, self._graph, node) else None

    def tidy(self, node: str) -> None:
        """Removes the checkpoints above a job that no run below them needs any more."""
        for prefix in trunk_of(self._graph, node):
            if not _needed(self._store, self._graph, prefix.id):
                remove_prefix(prefix, self._store.path)


def _needed(store: RunDirectory, graph: "nx.DiGraph[str]", prefix: str) -> bool:
    """Whether a run that goes on from a prefix is still to be done."""
    import networkx as nx

    below = (node for node in nx.descendants(graph, prefix) if isinstance(graph.nodes[node]["job"], RunPlan))
    return not all(map(store.is_complete, below))


def _remove_checkpoints(store: RunDirectory, plans: Iterable[RunPlan]) -> None:
    """Removes checkpoints that a sweep left that was killed between its last run and their removal."""
    left = left_in(store.path)
    if left:
        graph = tree(plans, share=lambda _: True)
        for node in left.intersection(graph):
            if not _needed(store, graph, node):
                remove_prefix(graph.nodes[node]["job"], store.path)


def sharing(share: bool | None, access: Access) -> Callable[[RunPlan], bool]:
    """Which runs may share sessions.

    Args:
        share: True for all, False for none, None for those of which sharing changes nothing: every model is simulated,
            and no defense is a user's own, so that equal sessions end equally however often they are run.
        access: Which models there are.
    """
    if share is not None:
        return lambda _: share

    def exact(plan: RunPlan) -> bool:
        routes = routes_of(plan, access).values()
        return all(route.backend.kind == "simulated" for route in routes) and ":" not in (plan.defense or "")

    return exact


def _reopen_failed(store: RunDirectory, wanted: Iterable[str]) -> None:
    """Makes complete runs with failed sessions interrupted ones; what another process is at is left to it.

    Shared sessions that failed are run anew too: their checkpoint would hand the failure down.
    """
    from memorydojo.runs import Run

    for identity in left_in(store.path):
        checkpoint = Checkpoint(store.path, identity)
        state = checkpoint.read()
        if state is not None and not state.ran_whole:
            with suppress(RunInUseError), checkpoint.claimed():
                checkpoint.remove()
    for identity in store.complete_ids().intersection(wanted):
        folder = store.path / "runs" / identity
        if not Run(folder).ran_whole:
            with suppress(RunInUseError), store.claim(identity) as claim:
                if claim.complete and not Run(folder).ran_whole:  # another process may have repeated it
                    claim.reopen()


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


def _unless_in_use(
    plan: RunPlan, trunk: Sequence[Prefix], *, directory: Path, access: Access, keep_memory: bool
) -> bool:
    """Runs a plan, unless another process is at it; whether it is complete now."""
    _prepare_worker(plan, access)
    try:
        execute(plan, directory, access=access, keep_memory=keep_memory, trunk=trunk)
    except RunInUseError:
        return False
    return True


def _prefix_unless_in_use(prefix: Prefix, trunk: Sequence[Prefix], *, directory: Path, access: Access) -> bool:
    """Runs shared sessions, unless another process is at them; whether their checkpoint is there now."""
    _prepare_worker(prefix.plan, access)
    try:
        execute_prefix(prefix, directory, access=access, trunk=trunk)
    except RunInUseError:
        return False
    return True


def _prepare_worker(plan: RunPlan, access: Access) -> None:
    """Makes sure that this process ends with its parent, and has the keys that the plan needs.

    Raises:
        InvalidInputError: A key that the caller's environment holds is missing in this worker's.
    """
    end_with_the_parent()
    access.check(plan.model, plan.memory_model, plan.embedding_model)


def end_with_the_parent() -> None:
    """Ends a worker process when the process that started it is gone; it would wait for work for ever otherwise.

    A job does this too, but a worker that has not had one yet would be left: give this to a pool as its initializer.
    """
    _watch_the_parent(os.getpid())


@functools.lru_cache(maxsize=1)
def _watch_the_parent(process: int) -> None:
    """Starts the watch, once.

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
