"""Fast replays of ground truth on carried state, and the flags that they show.

A session passes if its ground truth executes without an error and AgentDojo's own utility check holds. Two kinds of
trouble do not show in that, and are flagged (:class:`memorydojo.trajectory.Session`):

*drift*: the task's text answer is checked, and its ground-truth observations differ from those on a fresh environment.
The ground truth still gives the answer that was right on the fresh environment; an agent that reads its observations
may answer otherwise and fail. A text answer is checked if the ground truth fails on a fresh environment once its final
response is left empty. Times that tools take from the clock do not count as a difference.

*stale success*: with no call and an empty response the check holds on the carried state, and it does not on a fresh
one. Tasks that pass so on a fresh environment too have a weak check, which no earlier session has caused.

What makes it fast: environments come from pickled snapshots, observations are not formatted, and before a check the
parts that a session left unchanged are replaced by the very objects of the state before it, which AgentDojo's
comparison of the two states (DeepDiff) then passes over. This holds for ground-truth replays, where the verdicts were
compared with AgentDojo's on all pairs (``benchmarks/compose.py --all``); runs of agents are scored without it.
"""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from memorydojo.running import environment
from memorydojo.trajectory import Flag

_FROM_CLOCK = "<now>"


@dataclass(frozen=True)
class Outcome:
    """How one session's replay went.

    Attributes:
        problem: Why it failed, or None if it passed.
        flags: What was found about a session that passed.
    """

    problem: str | None
    flags: frozenset[Flag] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether the session passed."""
        return self.problem is None


@dataclass(frozen=True)
class _Reference:
    """A task on a fresh environment: what it observes, and what its check lets pass."""

    observations: tuple[Any, ...]
    answer_checked: bool
    passes_idle: bool
    state_after: bytes
    problem: str | None


class Replayer:
    """Replays pairs and sequences of tasks; keeps what can be used again.

    One instance belongs to one thread.
    """

    def __init__(self) -> None:
        self._references: dict[tuple[str, str], _Reference] = {}
        self._pairs: dict[tuple[str, str, str], Outcome] = {}

    def pair(self, domain: str, first: str, second: str) -> Outcome:
        """How ``second`` goes on the state that ``first`` leaves.

        A ``first`` that fails by itself fails the pair.

        Raises:
            UnknownNameError: There is no such domain or task.
        """
        key = (domain, first, second)
        if key not in self._pairs:
            before = self._reference(domain, first)
            if before.problem is None:
                self._pairs[key] = self._session(domain, second, environment.restore(before.state_after))
            else:
                self._pairs[key] = Outcome(f"{first} fails by itself: {before.problem}")
        return self._pairs[key]

    def sequence(self, tasks: Iterable[tuple[str, str]]) -> list[Outcome]:
        """Replays a whole sequence, the state of each domain carried; ends with the first session that fails.

        Args:
            tasks: Domain and task id of each session.

        Raises:
            UnknownNameError: There is no such domain or task.
        """
        states: dict[str, environment.Environment] = {}
        outcomes: list[Outcome] = []
        for domain, task_id in tasks:
            if domain not in states:
                states[domain] = environment.fresh_environment(domain)
            outcomes.append(self._session(domain, task_id, states[domain]))
            if not outcomes[-1].passed:
                break
        return outcomes

    def answer_checked(self, domain: str, task_id: str) -> bool:
        """Whether a task's check looks at the text of the final response."""
        return self._reference(domain, task_id).answer_checked

    def _session(self, domain: str, task_id: str, state: environment.Environment) -> Outcome:
        """One session on ``state``, which changes in place."""
        reference = self._reference(domain, task_id)
        task = environment.user_task(domain, task_id)
        before = environment.snapshot(state)
        observe: Callable[[Any], Any] = _Observer() if reference.answer_checked else _unobserved
        execution = environment.execute_ground_truth(domain, task, environment=state, observe=observe)
        if execution.error is not None:
            return Outcome(f"its ground truth fails: {execution.error}")
        problem = _problem(task, environment.restore(before), state, execution, execution.final_response)
        if problem is not None:
            return Outcome(problem)
        flags: set[Flag] = set()
        if reference.answer_checked and execution.observations != reference.observations:
            flags.add("drift")
        if not reference.passes_idle and _passes_idle(task, environment.restore(before)):
            flags.add("stale-success")
        return Outcome(None, frozenset(flags))

    def _reference(self, domain: str, task_id: str) -> _Reference:
        key = (domain, task_id)
        if key not in self._references:
            task = environment.user_task(domain, task_id)
            post = environment.fresh_environment(domain)
            execution = environment.execute_ground_truth(domain, task, environment=post, observe=_Observer())
            after = environment.snapshot(post)
            problem, silent = execution.error, None
            if problem is None:
                fresh = environment.fresh_environment
                problem = _problem(task, fresh(domain), environment.restore(after), execution, execution.final_response)
                silent = _problem(task, fresh(domain), environment.restore(after), execution, "")
            self._references[key] = _Reference(
                observations=execution.observations,
                answer_checked=silent is not None,
                passes_idle=_passes_idle(task, environment.fresh_environment(domain)),
                state_after=after,
                problem=problem,
            )
        return self._references[key]


def _problem(
    task: environment.UserTask, pre: Any, post: Any, execution: environment.Execution[Any], response: str
) -> str | None:
    """Why the utility check does not hold, or None. Uses ``pre`` up."""
    try:
        held = environment.check_utility(
            task, final_response=response, pre=pre, post=_sharing(pre, post), calls=execution.calls, copy=False
        )
    except Exception as error:  # a check that meets a state it does not foresee has not been passed
        return f"its utility check raises {type(error).__name__}: {error}"
    return None if held else "its utility check does not hold after its ground truth"


def _passes_idle(task: environment.UserTask, state: Any) -> bool:
    """Whether the check holds when nothing is done and nothing said. Uses ``state`` up."""
    try:
        return environment.check_utility(task, final_response="", pre=state, post=state, calls=[], copy=False)
    except Exception:  # as in _problem
        return False


def _sharing(pre: Any, post: Any) -> Any:
    """``post``, with every part that equals its counterpart in ``pre`` replaced by that very object."""
    if type(pre) is not type(post):
        return post
    if isinstance(post, BaseModel):
        if pre == post:
            return pre
        shared = post.model_copy()
        for name, value in vars(post).items():
            shared.__dict__[name] = _sharing(vars(pre).get(name), value)
        return shared
    if isinstance(post, dict):
        return {key: _sharing(pre[key], value) if key in pre else value for key, value in post.items()}
    if isinstance(post, list):
        return [_sharing(old, new) for old, new in zip(pre, post, strict=False)] + post[len(pre) :]
    return pre if pre == post else post


class _Observer:
    """Turns results into plain data that can be compared between replays.

    Times from the clock, which are those since the replay began, become one word. The times in AgentDojo's data are
    fixed, and both sides of a comparison are treated alike.
    """

    def __init__(self) -> None:
        self._start = datetime.datetime.now()  # naive, as AgentDojo's own

    def __call__(self, result: Any) -> Any:
        if isinstance(result, BaseModel):
            return self(result.model_dump())
        if isinstance(result, dict):
            return {key: self(value) for key, value in result.items()}
        if isinstance(result, list | tuple):
            return [self(value) for value in result]
        if isinstance(result, datetime.datetime) and result.tzinfo is None:
            return _FROM_CLOCK if self._start <= result <= datetime.datetime.now() else result
        return result


def _unobserved(result: Any) -> None:
    """Observations that no one looks at."""
