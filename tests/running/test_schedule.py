import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import networkx as nx
import pytest

from memorydojo.running.schedule import THREADS, WINDOW, executed, threads_unless, window_of


def forest(*edges: tuple[str, str], alone: str = "") -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph(edges)
    graph.add_nodes_from(alone)
    return graph


class Inline:
    """Runs each job where and when it is submitted."""

    def submit(self, job: Callable[[], bool]) -> "Future[bool]":
        future: Future[bool] = Future()
        future.set_result(job())
        return future


GRAPH = forest(("a", "b"), ("a", "c"), ("c", "d"), ("e", "f"), alone="g")


@pytest.mark.parametrize("workers", [1, 4])
def test_every_job_runs_once_after_what_it_needs(workers: int) -> None:
    began: list[str] = []
    ended: list[str] = []

    def job(node: str) -> bool:
        assert all(before in ended for before in GRAPH.predecessors(node))
        began.append(node)
        ended.append(node)
        return True

    with ThreadPoolExecutor(workers) as executor:
        seen = [node for node, _ in executed(GRAPH, lambda node: executor.submit(job, node))]
    assert sorted(seen) == sorted(began) == list("abcdefg")


def test_what_goes_on_from_a_job_comes_before_other_jobs() -> None:
    inline = Inline()
    seen = [node for node, _ in executed(GRAPH, lambda node: inline.submit(lambda: True), window=1)]
    assert seen == ["a", "b", "c", "d", "e", "f", "g"]


def test_no_more_jobs_than_the_window_are_handed_out() -> None:
    wide = forest(*(("a", str(n)) for n in range(20)))
    lock, most, now = threading.Lock(), 0, 0

    def submit(node: str) -> "Future[bool]":
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        return executor.submit(lambda: True)

    with ThreadPoolExecutor(8) as executor:
        for _ in executed(wide, submit, window=3):
            with lock:
                now -= 1
    assert most == 3


def test_a_job_that_is_not_needed_lets_what_needs_it_start() -> None:
    def submit(node: str) -> "Future[bool] | None":
        return None if node == "a" else Inline().submit(lambda: True)

    seen = [node for node, _ in executed(GRAPH, submit, window=1)]
    assert seen == ["b", "c", "d", "e", "f", "g"]


def test_what_needs_a_job_that_somebody_else_is_at_is_given_up() -> None:
    inline = Inline()
    jobs = executed(GRAPH, lambda node: inline.submit(lambda: node != "c"), window=1)
    found: dict[str, bool | None] = dict(jobs)
    assert found == {"a": True, "b": True, "c": False, "d": None, "e": True, "f": True, "g": True}


def test_after_an_error_nothing_new_starts_and_what_runs_is_waited_for() -> None:
    begun = threading.Event()
    ended: list[str] = []

    def job(node: str) -> bool:
        if node == "a":
            begun.wait()
            raise ConnectionError("a is lost")
        begun.set()
        ended.append(node)
        return True

    graph = forest(("a", "b"), ("e", "f"), alone="e")
    with ThreadPoolExecutor(2) as executor, pytest.raises(ConnectionError, match="a is lost"):
        for _ in executed(graph, lambda node: executor.submit(job, node), window=2):
            pass
    assert "e" in ended
    assert "b" not in ended


def test_without_an_executor_there_are_threads_that_are_gone_afterwards() -> None:
    with threads_unless(None) as executor:
        assert executor.submit(lambda: threading.current_thread().name).result().startswith("memorydojo-run")
        assert window_of(executor) == 2 * THREADS
    assert not any(thread.name.startswith("memorydojo-run") for thread in threading.enumerate())


def test_an_executor_that_is_given_stays_open() -> None:
    with ThreadPoolExecutor(3) as given:
        with threads_unless(given) as executor:
            assert executor is given
        assert window_of(given) == 6
        assert given.submit(lambda: 1).result() == 1


def test_an_executor_that_does_not_say_how_many_workers_it_has_gets_many_jobs() -> None:
    assert window_of(Executor()) == WINDOW
