"""Executing the jobs of a tree on any executor: what goes on from a job is handed out once that job has ended."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import networkx as nx

#: How many jobs are handed to an executor ahead of those that have ended.
WINDOW = 512

#: How many threads run jobs if nobody says otherwise. Runs of real models mostly wait.
THREADS = 8

#: Seconds between looks at whether somebody wants it to stop.
LOOK_UP = 0.2

_Result = TypeVar("_Result")


@contextmanager
def threads_unless(executor: Executor | None) -> Iterator[Executor]:
    """The executor, or if there is none `THREADS` threads that are gone afterwards."""
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(THREADS, thread_name_prefix="memorydojo-run") as own:
        yield own


def window_of(executor: Executor) -> int:
    """How many jobs to hand an executor at most.

    Handed out early, a job would stand in line before those that come up later, and go on from a checkpoint that waits
    on the disk meanwhile. So an executor of the standard library, which says how many workers it has, gets twice that.
    """
    workers = getattr(executor, "_max_workers", None)
    return 2 * workers if isinstance(workers, int) else WINDOW


def executed(
    graph: "nx.DiGraph[str]",
    submit: Callable[[str], "Future[_Result] | None"],
    *,
    window: int = WINDOW,
    goes_on: Callable[[_Result], bool] = bool,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[str, _Result | None]]:
    """What each job gives, as it comes; no worker ever waits for another job.

    A bounded window of jobs is with the executor. What goes on from a job that has just ended comes first, so that few
    checkpoints lie about. After an error, or once it is to stop, nothing new starts; what runs is waited for.

    Args:
        graph: The jobs; an edge leads to what needs the other's end.
        submit: Hands a job out, or gives None for one that is not needed any more.
        window: How many jobs are handed out at most.
        goes_on: Whether what needs a job can start, by what the job gave; if not, all of it is given with None.
        stop: Whether somebody wants it to stop.
    """
    waiting = [node for node in reversed(list(graph)) if graph.in_degree(node) == 0]
    running: dict[Future[_Result], str] = {}
    problem: BaseException | None = None

    try:
        while running or waiting:
            while waiting and len(running) < window and not stop():
                node = waiting.pop()
                future = submit(node)
                if future is not None:
                    running[future] = node
                else:
                    waiting.extend(reversed(list(graph.successors(node))))
            for future in wait(running, timeout=LOOK_UP, return_when=FIRST_COMPLETED).done:
                node = running.pop(future)
                error = future.exception()
                if error is not None:
                    problem = problem or error
                else:
                    result = future.result()
                    yield node, result
                    if goes_on(result):
                        waiting.extend(reversed(list(graph.successors(node))))
                    else:
                        yield from ((below, None) for below in _below(graph, node))
            if problem is not None or stop():
                waiting.clear()
                running = {future: node for future, node in running.items() if not future.cancel()}
    except BaseException:
        for future in running:
            future.cancel()
        raise
    if problem is not None:
        raise problem


def _below(graph: "nx.DiGraph[str]", node: str) -> list[str]:
    import networkx as nx

    return list(nx.descendants(graph, node))
