"""Which runs share which sessions: a sweep as a tree.

Runs of one trajectory, memory system, models, defense, agent, seed and delivery differ only in their attack, and do the
same up to the session before it. These sessions are run once. A poisoned run leaves the trunk before its insertion
session, a clean run at the last place where others do.
"""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from memorydojo.runs._files import to_json
from memorydojo.runs.model import RunPlan
from memorydojo.runs.store import run_id

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Prefix:
    """Sessions that several runs begin with.

    Attributes:
        plan: A clean run that begins with them.
        sessions: How many task sessions; 0 for what comes before the first.
    """

    plan: RunPlan
    sessions: int

    @cached_property
    def id(self) -> str:
        """A hash of everything that decides what happens in them."""
        text = f"{self.sessions}\n{to_json(self.plan, canonical=True)}"
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


Job = Prefix | RunPlan
"""Shared sessions, or a run."""


def tree(
    plans: Iterable[RunPlan],
    *,
    share: Callable[[RunPlan], bool],
    done: Container[str] = (),
    ready: Callable[[Prefix], bool] = lambda _: False,
) -> "nx.DiGraph[str]":
    """The runs that are still to be done, and the sessions that they share.

    Args:
        plans: All runs.
        share: Whether a run may share sessions at all.
        done: Ids of the runs that are done.
        ready: Whether a prefix has been run already; it is used then even for a single run.

    Returns:
        A forest with an edge from a prefix to what goes on from it. Nodes are ids; the attribute ``job`` is the
        `Prefix` or the `RunPlan`. A prefix comes before what goes on from it, and has at least two runs below it.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    trunks: dict[str, list[RunPlan]] = {}
    for plan in plans:
        if share(plan):
            trunks.setdefault(to_json(_clean(plan), canonical=True), []).append(plan)
        elif (identity := run_id(plan)) not in done:
            graph.add_node(identity, job=plan)
    for runs in trunks.values():
        _grow(graph, runs, done, ready)
    return graph


def _clean(plan: RunPlan) -> RunPlan:
    return plan.model_copy(update={"insertion": None})


def _leaves_after(plan: RunPlan) -> int:
    """How many task sessions a run has in common with a clean one."""
    return plan.insertion.session - 1 if plan.insertion is not None else len(plan.trajectory)


def _grow(graph: "nx.DiGraph[str]", runs: list[RunPlan], done: Container[str], ready: Callable[[Prefix], bool]) -> None:
    clean = _clean(runs[0])
    points = sorted({_leaves_after(run) for run in runs if run.insertion is not None})
    todo = {identity: run for run in runs if (identity := run_id(run)) not in done}
    trunk: list[Prefix] = []
    for point in points:
        prefix = Prefix(clean, point)
        users = sum(_leaves_after(run) >= point for run in todo.values())
        if before_first(clean) + point > 0 and (users > 1 or (users == 1 and ready(prefix))):
            trunk.append(prefix)
    for earlier, prefix in zip([None, *trunk], trunk, strict=False):
        graph.add_node(prefix.id, job=prefix)
        if earlier is not None:
            graph.add_edge(earlier.id, prefix.id)
    for identity, run in todo.items():
        graph.add_node(identity, job=run)
        base = next((p for p in reversed(trunk) if p.sessions <= _leaves_after(run)), None)
        if base is not None:
            graph.add_edge(base.id, identity)


def before_first(plan: RunPlan) -> int:
    """How many sessions of a history memory takes in before the first task session."""
    history = plan.trajectory.history
    return history.n_sessions if history is not None else 0


def trunk_of(graph: "nx.DiGraph[str]", node: str) -> tuple[Prefix, ...]:
    """What a node goes on from, nearest first."""

    def walk() -> Iterator[Prefix]:
        at = node
        while before := next(iter(graph.predecessors(at)), None):
            yield graph.nodes[before]["job"]
            at = before

    return tuple(walk())


@dataclass(frozen=True)
class SessionCounts:
    """How many sessions are run.

    Attributes:
        task: Task sessions.
        history: Sessions of histories that are written to memory.
    """

    task: int
    history: int


def count_sessions(plans: Iterable[RunPlan], *, share: Callable[[RunPlan], bool]) -> SessionCounts:
    """How many sessions running these plans takes; equal plans are run once.

    Args:
        plans: The runs.
        share: Whether a run may share sessions.
    """
    graph = tree({run_id(plan): plan for plan in plans}.values(), share=share)
    task = history = 0
    for node in graph:
        job: Job = graph.nodes[node]["job"]
        plan, last = (job.plan, job.sessions) if isinstance(job, Prefix) else (job, len(job.trajectory))
        base = trunk_of(graph, node)
        task += last - (base[0].sessions if base else 0)
        history += 0 if base else before_first(plan)
    return SessionCounts(task, history)
