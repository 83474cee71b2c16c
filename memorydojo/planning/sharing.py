"""Which sessions of a sweep are run, and how many runs take over from another one (`memorydojo.running.prefix`)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memorydojo.errors import UnknownNameError
from memorydojo.models.access import Access
from memorydojo.models.config import Models
from memorydojo.running.prefix import Prefix, before_first, tree, trunk_of
from memorydojo.runs.model import RunPlan


@dataclass(frozen=True)
class Stretch:
    """Sessions that are run one after another, once.

    Attributes:
        plan: A run that has them.
        first: The first task session.
        last: The last task session; before the first for a history alone.
        history: How many history sessions come before.
    """

    plan: RunPlan
    first: int
    last: int
    history: int

    @property
    def task(self) -> int:
        """How many task sessions."""
        return self.last - self.first + 1


def stretches(plans: Iterable[RunPlan], *, share: bool | None, models: Models | None) -> Iterator[Stretch]:
    """What running these plans takes.

    Args:
        plans: Plans, each once.
        share: As in `memorydojo.sweep`: None shares where that is exact.
        models: Which models there are. Runs of models that are not declared share nothing, unless they have to.
    """
    from memorydojo.running.sweep import sharing

    exact = sharing(share, Access(models=models or Models()))

    def shares(plan: RunPlan) -> bool:
        try:
            return exact(plan)
        except UnknownNameError:
            return False

    graph = tree(plans, share=shares)
    for node in graph:
        job = graph.nodes[node]["job"]
        plan, last = (job.plan, job.sessions) if isinstance(job, Prefix) else (job, len(job.trajectory))
        trunk = trunk_of(graph, node)
        first = trunk[0].sessions + 1 if trunk else 1
        yield Stretch(plan, first, last, history=0 if trunk else before_first(plan))


@dataclass(frozen=True)
class SharedSessions:
    """Sessions that runs take over from others.

    Attributes:
        task: Task sessions.
        history: History sessions.
    """

    task: int = 0
    history: int = 0


def shared_sessions(plans: Iterable[RunPlan], *, share: bool | None, models: Models | None) -> SharedSessions:
    """How many sessions need not be run, as another run has run them already.

    Args:
        plans: Plans, each once.
        share: As `stretches`.
        models: As `stretches`.
    """
    known = list(plans)
    run = list(stretches(known, share=share, models=models))
    return SharedSessions(
        task=sum(len(plan.trajectory) for plan in known) - sum(stretch.task for stretch in run),
        history=sum(before_first(plan) for plan in known) - sum(stretch.history for stretch in run),
    )
