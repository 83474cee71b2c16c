"""How many sessions of a sweep are equal up to some point, so that one run can take them over from another."""

from collections.abc import Iterable
from dataclasses import dataclass

from memorydojo.runs.model import RunPlan


@dataclass(frozen=True)
class SharedSessions:
    """Sessions that need not be run again.

    Attributes:
        task: Task sessions.
        history: History sessions.
    """

    task: int = 0
    history: int = 0


def shared_sessions(plans: Iterable[RunPlan]) -> SharedSessions:
    """The sessions that agree with those of another run, the history and all earlier ones included.

    Two runs agree up to a session if they are equal in everything but their attacks, and no payload has entered
    either of them by then.
    """
    total = 0
    seen: set[tuple[str, int]] = set()
    own = 0
    for plan in plans:
        benign = len(plan.trajectory) if plan.insertion is None else plan.insertion.session - 1
        total += len(plan.trajectory)
        own += len(plan.trajectory) - benign
        base = plan.model_copy(update={"insertion": None}).model_dump_json()
        seen.update((base, session) for session in range(1, benign + 1))
    return SharedSessions(task=total - own - len(seen))
