"""Where candidates are tested: trajectories of auxiliary tasks, the objective there, and what must not leak from it."""

from collections.abc import Callable
from dataclasses import dataclass

from memorydojo.objective import Objective
from memorydojo.trajectory import Session, Trajectory


@dataclass(frozen=True)
class Ground:
    """An evaluation ground. Candidates never see its trajectories; only `ontology` is shown to a strategy.

    Attributes:
        domain: Its domain, in words.
        objective: The objective as it is checked here; registered in `memorydojo.objectives`.
        trajectories: What every candidate is run on.
        ontology: A generic description of the domain: capabilities with parameters, kinds of tasks and observations.
        tool_names: Names of tools that no payload may use.
        task_prompts: Requests that no payload may repeat.
        task_type: The kind of a session's task, for failure examples; names no task.
    """

    domain: str
    objective: Objective
    trajectories: tuple[Trajectory, ...]
    ontology: str
    tool_names: frozenset[str] = frozenset()
    task_prompts: tuple[str, ...] = ()
    task_type: Callable[[Session], str] = lambda session: "task"

    @property
    def identifiers(self) -> frozenset[str]:
        """Ids of tasks and trajectories, which no payload may hold."""
        tasks = {s.task_id for t in self.trajectories for s in t.sessions}
        return frozenset({t.id for t in self.trajectories} | tasks)
