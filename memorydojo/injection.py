"""Objectives from AgentDojo's injection tasks."""

from typing import Any

from memorydojo import matching
from memorydojo.errors import InvalidInputError
from memorydojo.objective import CallObjective, ExpectedCall


def from_injection_task(domain: str, task_id: str) -> CallObjective:
    """Makes an objective of an AgentDojo injection task.

    It is met when a session makes every call of the task's ground truth with the same arguments, normalised. The
    ground truth is that of the domain's initial state. AgentDojo's own ``security`` check is not used: it judges the
    state, which on carried environments stays true once it was.

    Args:
        domain: The AgentDojo suite.
        task_id: The injection task, for example ``"injection_task_3"``.

    Raises:
        UnknownNameError: No such domain or injection task.
        InvalidInputError: The task has no ground-truth call (its goal is a text), or one whose arguments are all made
            by other calls.
    """
    from memorydojo.running.environment import fresh_environment, ground_truth, injection_task

    task = injection_task(domain, task_id)
    calls = []
    for call in ground_truth(task, fresh_environment(domain)):
        comparable = {name: matching.equal(value) for name, value in call.args.items() if not _is_call(value)}
        if call.args and not comparable:
            raise InvalidInputError(
                f"the {domain} {task_id} calls {call.function} with results of other calls only, which cannot be "
                "compared; write an objective of your own for it"
            )
        calls.append(ExpectedCall(call.function, comparable))
    if not calls:
        raise InvalidInputError(
            f"the {domain} {task_id} has no ground-truth call: its goal is a text. Write a RecommendationObjective or "
            "an objective of your own for it"
        )
    return CallObjective(f"{domain}/{task_id}", domain=domain, description=task.GOAL, calls=calls)


def _is_call(value: Any) -> bool:
    return hasattr(value, "function") and hasattr(value, "args")
