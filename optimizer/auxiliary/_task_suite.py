"""The suite class. AgentDojo's, which it derives from, takes seconds to import: import this module where it is used."""

from collections.abc import Callable, Mapping

from agentdojo.base_tasks import BaseUserTask
from agentdojo.functions_runtime import Function
from agentdojo.task_suite.task_suite import TaskSuite

from memorydojo.optimizer.auxiliary._base import State


class AuxiliarySuite(TaskSuite[State]):  # type: ignore[misc]
    """A suite whose state and tasks come from Python and not from AgentDojo's data files.

    Args:
        name: The name of the suite.
        tools: The tools.
        tasks: The user tasks by id.
        initial_state: Makes the state that it begins with.
    """

    def __init__(
        self,
        name: str,
        tools: list[Function],
        tasks: Mapping[str, BaseUserTask[State]],
        initial_state: Callable[[], State],
    ) -> None:
        super().__init__(name, State, tools)
        self._tasks = dict(tasks)
        self._initial_state = initial_state

    @property
    def user_tasks(self) -> dict[str, BaseUserTask[State]]:
        """The user tasks by id."""
        return dict(self._tasks)

    def load_and_inject_default_environment(self, injections: dict[str, str]) -> State:
        """A new state. There is no place for AgentDojo's own injections."""
        if injections:
            raise ValueError(f"the suite {self.name} has no injection vectors; poison an observation instead")
        return self._initial_state()
