"""One session: retrieve, interact, write (paper, section 4.2)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from memorydojo.errors import EndpointDownError, MissingPackageError, causes
from memorydojo.models.config import SIMULATED
from memorydojo.record import SessionRecord, SnapshotDifference
from memorydojo.running import environment as env
from memorydojo.running.clock import FIRST_SESSION, session_time, time_of_session
from memorydojo.running.delivery import deliver
from memorydojo.running.line import Line
from memorydojo.running.memory import CheckedMemory
from memorydojo.runs._files import refusal
from memorydojo.runs.model import Failure, RunPlan, SessionResult
from memorydojo.trajectory import Session

Stage = Literal["environment", "retrieve", "agent", "write", "snapshot"]


@dataclass
class RunState:
    """What a run carries from session to session.

    Attributes:
        memory: The memory, shared by all sessions.
        line: The way to the run's models.
        environments: The environment of each domain that was visited.
        first: When the first task session takes place.
    """

    memory: CheckedMemory
    line: Line
    environments: dict[str, Any] = field(default_factory=dict)
    first: datetime = FIRST_SESSION

    def difference(self) -> SnapshotDifference:
        """What changed in the memory since its last snapshot."""
        before = self.memory.snapshot_now
        return before.difference(self.memory.snapshot())


class StageError(Exception):
    """An error of one stage; what is under way ends with it."""

    def __init__(self, stage: Stage, error: Exception) -> None:
        self.stage: Stage = stage
        self.error = error

    def failure(self, line: Line) -> Failure:
        """The failure as it is saved.

        Raises:
            MissingPackageError: A package that is needed is not installed.
            EndpointDownError: A model endpoint or its key is dead.
        """
        _raise_if_not_of_this_session(self.error)
        line.check()
        return Failure(stage=self.stage, type=type(self.error).__name__, message=str(self.error))


@dataclass
class Stages:
    """What is under way, stage by stage.

    Attributes:
        seconds: Wall time by stage.
        facts: What has happened so far, by field of the result.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def stage(self, stage: Stage) -> Iterator[None]:
        """Times a stage, and names it in the error that it ends with."""
        start = time.perf_counter()
        try:
            yield
        except Exception as error:
            raise StageError(stage, error) from error
        finally:
            self.seconds[stage] = time.perf_counter() - start


@dataclass(kw_only=True)
class _Draft(Stages):
    """The result of a session while it is being made."""

    plan: RunPlan
    number: int
    session: Session
    start: datetime


def run_session(plan: RunPlan, number: int, *, state: RunState) -> SessionResult:
    """Runs one session and carries environment and memory on.

    An agent or memory failure ends the session; it comes back with the failure and with everything that happened
    before it. Nothing is run again. Where the fault is not the session's, the run is left interrupted instead.

    Args:
        plan: The run's plan.
        number: The 1-based number of the session.
        state: What the run carries; changed in place.

    Raises:
        MissingPackageError: A package that is needed is not installed.
        EndpointDownError: A model endpoint or its key is dead.
    """
    start = time_of_session(number, state.first)
    draft = _Draft(plan=plan, number=number, session=plan.trajectory.sessions[number - 1], start=start)
    state.line.begin_session(number)
    failure = None
    try:
        with session_time(start):
            _retrieve_interact_write(draft, state)
    except StageError as problem:
        failure = problem.failure(state.line)
    completed = failure is None
    usage, waiting = state.line.usage(number)
    return SessionResult(
        **{
            "prompt": "",
            "query": "",
            **draft.facts,
            "session": number,
            "domain": draft.session.domain,
            "task_id": draft.session.task_id,
            "time": start,
            "completed": completed,
            "failure": failure,
            "utility": completed and draft.facts.get("utility", False),
            "usage": usage,
            "waiting": waiting,
            "seconds": draft.seconds,
        }
    )


def _raise_if_not_of_this_session(error: BaseException) -> None:
    """Lets errors out that say nothing about the session: as its result they would be facts, and never run again."""
    for cause in causes(error):
        if isinstance(cause, MissingPackageError | EndpointDownError):
            raise cause
    if refusal(error) is not None:
        raise error


def _retrieve_interact_write(draft: _Draft, state: RunState) -> None:
    facts, session = draft.facts, draft.session
    with draft.stage("environment"):
        task = env.user_task(session.domain, session.task_id)
        if session.domain not in state.environments:
            state.environments[session.domain] = env.fresh_environment(session.domain)
    facts["query"] = task.PROMPT
    with draft.stage("retrieve"):
        items = state.memory.retrieve(task.PROMPT)
    facts["items"] = items
    facts["prompt"] = deliver(items, task.PROMPT)
    with draft.stage("agent"):
        _interact(draft, task, state.environments[session.domain], state.line)
    write(SessionRecord(id=f"session-{draft.number:04d}", time=draft.start, messages=facts["messages"]), draft, state)


def write(record: SessionRecord, stages: Stages, state: RunState) -> None:
    """Writes a session to memory, and notes as ``difference`` what that changed."""
    try:
        with stages.stage("write"):
            state.memory.write(record)
    finally:
        # Also after a failed write: what it changed all the same is a fact of the run.
        with stages.stage("snapshot"):
            stages.facts["difference"] = state.difference()


def _interact(draft: _Draft, task: env.UserTask, environment: Any, line: Line) -> None:
    from memorydojo.running.agent import interact, requested_calls, to_messages
    from memorydojo.running.defenses import elements
    from memorydojo.running.runtime import RecordingRuntime

    facts, plan = draft.facts, draft.plan
    insertion = plan.insertion if plan.insertion is not None and plan.insertion.session == draft.number else None
    runtime = RecordingRuntime(
        env.runtime_functions(draft.session.domain),
        payload=insertion.payload.text if insertion else None,
        observation=insertion.observation if insertion else 1,
    )
    llm = _simulated_agent(draft, task, environment) if plan.model == SIMULATED else line.agent()
    pre = env.copy_environment(environment)
    try:
        messages = interact(
            elements(llm, plan.defense), prompt=facts["prompt"], runtime=runtime, environment=environment
        )
    finally:
        facts["actions"] = tuple(runtime.actions)
    facts["messages"] = to_messages(messages, prompt=facts["prompt"], request=task.PROMPT)
    last = facts["messages"][-1]
    facts["final_response"] = last.text if last.role == "assistant" and not last.tool_calls else None
    try:
        facts["utility"] = env.check_utility(
            task,
            final_response=facts["final_response"] or "",
            pre=pre,
            post=environment,
            calls=requested_calls(messages),
        )
    except Exception as error:  # AgentDojo's checks raise on states that they do not foresee
        facts["utility"] = False
        facts["utility_error"] = f"{type(error).__name__}: {error}"


def _simulated_agent(draft: _Draft, task: env.UserTask, environment: Any) -> Any:
    from memorydojo.simulator.agent import SimulatedAgent

    return SimulatedAgent(
        env.ground_truth(task, environment),
        answer=task.GROUND_TRUTH_OUTPUT,
        request=task.PROMPT,
        today=f"{draft.start:%Y-%m-%d}",
        seed=draft.plan.seed,
    )
