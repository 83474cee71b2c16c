"""AgentDojo's suites and installed ones: tasks, environments, ground truth and utility checks.

A domain is one of AgentDojo's four, or the name of a suite that an installed package provides by an entry point in the
group ``memorydojo.suites``, with a variant after a colon if the suite has variants (``docs/auxiliary.md``).

The one module that touches them. AgentDojo takes seconds to import (it imports every vendor's client), so it is
imported where it is first used.

Environments are copied by pickling. AgentDojo's own validators rebuild emails, events and files from the initial ones,
so a JSON round trip brings a deleted file back; a pickle does not.
"""

import datetime
import io
import pickle
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Generic, Protocol, TypeVar

from memorydojo._installed import installed, load_installed
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError
from memorydojo.trajectory import DOMAINS

AGENTDOJO_VERSION = "0.1.35"
"""The version of AgentDojo that MemoryDojo is made for."""

BENCHMARK_VERSION = "v1.2.2"
"""The version of AgentDojo's suites that everything here uses."""

SUITES_GROUP = "memorydojo.suites"
"""The entry-point group by which installed packages add task suites: a name and a function of the variant."""

_KEPT_SUITES = 64

Environment = Any
"""One of AgentDojo's task environments (a ``TaskEnvironment``). Tools change it in place."""

T = TypeVar("T")


class FunctionCall(Protocol):
    """The part of AgentDojo's ``FunctionCall`` that is used here: a tool's name and its arguments."""

    function: str
    args: Any


class Task(Protocol):
    """The part that AgentDojo's user tasks and injection tasks have in common."""

    ID: str
    GROUND_TRUTH_OUTPUT: str

    def ground_truth(self, pre_environment: Environment) -> list[FunctionCall]:
        """The calls that solve the task from the state ``pre_environment``."""
        ...


class UserTask(Task, Protocol):
    """The part of AgentDojo's user tasks that is used here."""

    PROMPT: str

    def utility(self, model_output: str, pre_environment: Environment, post_environment: Environment) -> bool:
        """Whether the states and the text solve the task."""
        ...

    def utility_from_traces(
        self, model_output: str, pre_environment: Environment, post_environment: Environment, traces: Sequence[Any]
    ) -> bool | None:
        """Whether the calls solve the task, or None if they do not decide it."""
        ...


class InjectionTask(Task, Protocol):
    """The part of AgentDojo's injection tasks that is used here."""

    GOAL: str


@dataclass(frozen=True)
class Execution(Generic[T]):
    """What executing a task's ground truth gave.

    Attributes:
        calls: The calls of the ground truth, in order; if one failed, the last of them is that one.
        observations: What was made of the results, one for each call that succeeded.
        final_response: The task's ground-truth text; empty for tasks that have none.
        error: The error of the call that failed, as ``Type: message``, or None. Without any call, the ground truth
            could not be worked out on this state.
    """

    calls: tuple[FunctionCall, ...]
    observations: tuple[T, ...]
    final_response: str
    error: str | None = None


def suite(domain: str) -> Any:
    """The task suite of a domain: AgentDojo's, in the pinned version, or an installed one.

    Args:
        domain: One of AgentDojo's domains, or ``"name"`` or ``"name:variant"`` of an installed suite.

    Raises:
        UnknownNameError: There is no such domain.
        InvalidInputError: The installed suite cannot be loaded or has no such variant.
    """
    name, _, variant = domain.partition(":")
    if name in DOMAINS and name == domain:
        return _agentdojo_suite(domain)
    known = installed(SUITES_GROUP, "task suite")
    if name not in known or name in DOMAINS:
        raise UnknownNameError("domain", domain, [*DOMAINS, *known])
    return _installed_suite(known[name], variant)


def _agentdojo_suite(domain: str) -> Any:
    from agentdojo.task_suite.load_suites import get_suites

    suites = get_suites(BENCHMARK_VERSION)
    if domain not in suites:  # an unknown version gives an empty dict, silently
        raise MemoryDojoError(
            f"agentdojo {installed_version()} has no suites {BENCHMARK_VERSION}; "
            f"install agentdojo=={AGENTDOJO_VERSION}, which has them"
        )
    return suites[domain]


@lru_cache(maxsize=_KEPT_SUITES)
def _installed_suite(place: str, variant: str) -> Any:
    from agentdojo.task_suite.task_suite import TaskSuite

    make = load_installed("task suite", place)
    try:
        made = make(variant)
    except MemoryDojoError:
        raise
    except Exception as error:
        raise InvalidInputError(
            f"the task suite {place!r} cannot be made for the variant {variant!r}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, TaskSuite):
        raise InvalidInputError(
            f"the task suite {place!r} gives {type(made).__name__} for the variant {variant!r}; it must be a function "
            "that takes the variant, a text, and returns an agentdojo TaskSuite"
        )
    return made


def installed_version() -> str:
    """The version of AgentDojo that is installed."""
    return version("agentdojo")


def task_ids(domain: str) -> tuple[str, ...]:
    """Ids of a domain's user tasks in natural order: ``user_task_2`` before ``user_task_10``.

    Raises:
        UnknownNameError: There is no such domain.
    """
    return natural_order(suite(domain).user_tasks)


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """The names sorted with numbers in them compared as numbers.

    >>> natural_order(["user_task_10", "user_task_2"])
    ('user_task_2', 'user_task_10')
    """
    return tuple(sorted(names, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]))


def user_task(domain: str, task_id: str) -> UserTask:
    """A user task.

    Raises:
        UnknownNameError: There is no such domain, or no such task in it.
    """
    return _task(suite(domain).user_tasks, f"{domain} task", task_id)  # type: ignore[no-any-return]


def injection_task(domain: str, task_id: str) -> InjectionTask:
    """An injection task.

    Raises:
        UnknownNameError: There is no such domain, or no such task in it.
    """
    return _task(suite(domain).injection_tasks, f"{domain} injection task", task_id)  # type: ignore[no-any-return]


def _task(tasks: dict[str, Any], kind: str, task_id: str) -> Any:
    if task_id not in tasks:
        raise UnknownNameError(kind, task_id, tasks)
    return tasks[task_id]


def fresh_environment(domain: str) -> Environment:
    """A new environment in its initial state, without injections. Nothing is shared with any other.

    Raises:
        UnknownNameError: There is no such domain.
    """
    return restore(_initial_state(domain))


@lru_cache(maxsize=_KEPT_SUITES)
def _initial_state(domain: str) -> bytes:
    """Loading takes AgentDojo up to 0.2 s, restoring less than a millisecond."""
    return snapshot(suite(domain).load_and_inject_default_environment({}))


def snapshot(environment: Environment) -> bytes:
    """The exact state of an environment, for :func:`restore`. Valid for the same version of AgentDojo."""
    return pickle.dumps(environment, protocol=pickle.HIGHEST_PROTOCOL)


def restore(state: bytes) -> Environment:
    """A new environment with a state that :func:`snapshot` gave. The state must come from a trusted place."""
    return pickle.loads(state)  # noqa: S301 - only ever this program's own snapshots


def restore_saved(state: bytes) -> Environment:
    """Like :func:`restore` for a state, or a dictionary of states, that lay in a file.

    A pickle can call anything. This one may make the data classes of AgentDojo's and of installed suites, and dates,
    and nothing else.

    Raises:
        pickle.UnpicklingError: The state is damaged or asks for anything else.
    """
    try:
        return _DataUnpickler(io.BytesIO(state)).load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # damaged bytes end in any error
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error


def _state_packages() -> tuple[str, ...]:
    """Where the data classes of environments are: AgentDojo's suites, and the packages of installed ones."""
    modules = (place.partition(":")[0] for place in installed(SUITES_GROUP, "task suite").values())
    packages = {module.rpartition(".")[0] or module for module in modules}
    return ("agentdojo.default_suites.", *(f"{package}." for package in sorted(packages)))


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        from pydantic import BaseModel

        if module == "datetime" and name in ("date", "datetime", "time", "timedelta", "timezone"):
            return getattr(datetime, name)
        if module == "builtins" and name in ("set", "frozenset"):
            return {"set": set, "frozenset": frozenset}[name]
        if f"{module}.".startswith(_state_packages()) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and issubclass(found, BaseModel | Enum) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"a saved environment holds no {module}.{name}"[:200])


def copy_environment(environment: Environment) -> Environment:
    """An exact copy that shares nothing with the original."""
    return restore(snapshot(environment))


def runtime_functions(domain: str) -> list[Any]:
    """The tools of a domain, as AgentDojo's ``FunctionsRuntime`` takes them. A new list on each call.

    Raises:
        UnknownNameError: There is no such domain.
    """
    return list(suite(domain).tools)


def format_observation(result: Any) -> str:
    """A tool's result as text, made by AgentDojo's own formatter. A string stays as it is."""
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str

    return str(tool_result_to_str(result))


def ground_truth(task: Task, environment: Environment) -> list[FunctionCall]:
    """The calls that solve a task from the current state. They are worked out on a copy: nothing changes."""
    return task.ground_truth(copy_environment(environment))


def execute_ground_truth(
    domain: str, task: Task, *, environment: Environment, observe: Callable[[Any], T]
) -> Execution[T]:
    """Executes a task's ground truth on an environment, which changes in place.

    Does what AgentDojo's ``GroundTruthPipeline`` does, except that an error ends it and is returned.

    Args:
        domain: The domain of the task and the environment.
        task: A user task or an injection task.
        environment: The state to start from.
        observe: Makes an observation of a result, for example :func:`format_observation`. It is called at once, since
            some tools return parts of the environment that later calls change.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from agentdojo.functions_runtime import FunctionsRuntime

    runtime = FunctionsRuntime(runtime_functions(domain))
    calls: list[FunctionCall] = []
    observations: list[T] = []
    try:
        planned = task.ground_truth(environment)
    except Exception as error:  # it looks things up in the state, which may lack them
        return Execution((), (), task.GROUND_TRUTH_OUTPUT, f"{type(error).__name__}: {error}")
    for call in planned:
        calls.append(call)
        result, problem = runtime.run_function(environment, call.function, call.args)
        if problem is not None:
            return Execution(tuple(calls), tuple(observations), task.GROUND_TRUTH_OUTPUT, problem)
        observations.append(observe(result))
    return Execution(tuple(calls), tuple(observations), task.GROUND_TRUTH_OUTPUT)


def check_utility(
    task: UserTask,
    *,
    final_response: str,
    pre: Environment,
    post: Environment,
    calls: Sequence[FunctionCall],
    copy: bool = True,
) -> bool:
    """Whether a session solved its task, decided as AgentDojo's ``run_task_with_pipeline`` decides it.

    The task's check of the calls counts if it has one, else its check of the states and the final response.

    Args:
        task: The task.
        final_response: The agent's last message; empty if there was none.
        pre: The environment before the session.
        post: The environment after it.
        calls: The calls that the agent requested, in order, successful or not.
        copy: Check copies. Some checks change what they look at (one marks emails as read); with False, ``pre`` and
            ``post`` must not be used afterwards.

    Raises:
        Exception: Whatever AgentDojo's check raises when it meets a state that it does not foresee, for example
            ``KeyError`` when a user whom it looks up was removed. AgentDojo lets it out too.
    """
    if copy:
        pre, post = restore(snapshot((pre, post)))
    by_calls = task.utility_from_traces(final_response, pre, post, calls)
    return bool(task.utility(final_response, pre, post) if by_calls is None else by_calls)
