"""The facts of a run: what happened, with no judgement in it. Labels are stored beside it (`memorydojo.judging`)."""

from typing import Any, Literal

from pydantic import AwareDatetime, Field, model_validator

from memorydojo._base import Frozen, WholeNumber
from memorydojo.adapter import MemoryDescription
from memorydojo.attack import Payload
from memorydojo.history import HeldOutQuestion
from memorydojo.models.config import SIMULATED_EMBEDDING
from memorydojo.models.usage import ModelUse, Usage, Waiting
from memorydojo.record import Action, MemoryItem, Message, SnapshotDifference
from memorydojo.running.delivery import DELIVERY
from memorydojo.trajectory import Trajectory

SCHEMA_VERSION = 2


class Insertion(Frozen):
    """The attack of a run, resolved: which text was to enter where.

    Attributes:
        payload: The payload, whole.
        session: The 1-based insertion session t0.
        observation: The 1-based successful, outermost observation that was to carry it.
    """

    payload: Payload
    session: int = Field(ge=1)
    observation: int = Field(ge=1)


class RunPlan(Frozen):
    """Everything that decides what a run does. Two runs with equal plans are the same run.

    Attributes:
        trajectory: The trajectory, whole.
        insertion: The resolved attack, or None for a clean run.
        memory: The adapter as it was asked for: a registered name or ``module:Class``.
        memory_settings: The adapter's settings as JSON data, defaults included.
        model: The task agent's model, by the name that the models file gives it.
        memory_model: The memory side's chat model.
        embedding_model: The memory side's embedding model.
        seed: Seed of the simulator.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"`` with the next session.
        defense: Name of the defense or ``module:function``, or None.
        agent: ``module:function`` that makes the agent's LLM element, or None for MemoryDojo's own.
        delivery: Name and version of the form in which retrieved memory reaches the agent.
    """

    trajectory: Trajectory
    insertion: Insertion | None = None
    memory: str
    memory_settings: dict[str, Any] = {}
    model: str
    memory_model: str
    embedding_model: str = SIMULATED_EMBEDDING
    seed: WholeNumber = 0
    on_failure: Literal["stop", "continue"] = "stop"
    defense: str | None = None
    agent: str | None = None
    delivery: str = DELIVERY

    @model_validator(mode="after")
    def _something_follows_the_insertion(self) -> "RunPlan":
        if self.insertion is not None and not self.insertion.session < len(self.trajectory):
            raise ValueError(
                f"the insertion session is {self.insertion.session}, but the trajectory has only "
                f"{len(self.trajectory)} sessions; at least one must follow the insertion"
            )
        return self


class SharedSegment(Frozen):
    """Sessions that one execution ran for several runs.

    Attributes:
        token: Which execution it was: runs with the same token share these sessions, and what they cost.
        first: The first of them; 0 for what comes before the first task session.
        last: The last of them.
        usage: What opening the copy of the memory took, if they go on from other shared ones; no run alone asks it.
        waiting: The seconds, retries and replayed calls of that.
    """

    token: str
    first: int = Field(ge=0)
    last: int = Field(ge=0)
    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class SharedPrefix(Frozen):
    """The part of a run that was not run for it alone.

    Attributes:
        segments: Who ran which sessions, in order; they follow one another without a gap.
        usage: What opening the copy of the memory for the rest of the run took.
        waiting: The seconds, retries and replayed calls of that.
    """

    segments: tuple[SharedSegment, ...] = Field(min_length=1)
    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def last(self) -> int:
        """The last shared task session; 0 if only what comes before the first is shared."""
        return self.segments[-1].last

    def token_of(self, session: int) -> str | None:
        """Which execution ran a session; None for one that was not shared.

        Args:
            session: Its number, 0 or less for what comes before the first task session.
        """
        return next((part.token for part in self.segments if part.first <= max(session, 0) <= part.last), None)


class RunHeader(Frozen):
    """Written once, before the first session of a run.

    Attributes:
        schema_version: Version of the saved form.
        run_id: Unique within its directory; derived from the plan.
        plan: What was asked for.
        memory: The memory system's own description of itself.
        models: The models by what they do: ``"agent"``, ``"memory"``, ``"embedding"``.
        replay: Whether answers came from a store of recorded ones: ``"off"``, ``"prefer"`` or ``"only"``.
        simulated: Whether any chat model of the run is the offline simulator. Such results describe the simulator and
            the memory system, never an LLM.
        versions: Versions of the packages that matter, by distribution name.
        started: Wall-clock time of the start.
        usage: Calls and tokens by role and model before the first session, as when the memory was opened.
        waiting: Seconds, retries and replayed calls before the first session.
        shared: The sessions that were run once for several runs, or None if all were run for this one.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    plan: RunPlan
    memory: MemoryDescription
    models: dict[str, ModelUse]
    replay: Literal["off", "prefer", "only"] = "off"
    simulated: bool
    versions: dict[str, str]
    started: AwareDatetime
    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    shared: SharedPrefix | None = None


class Failure(Frozen):
    """Why a session, the write of a recorded conversation or the held-out question did not come to its end.

    Attributes:
        stage: ``"environment"``, ``"retrieve"``, ``"agent"``, ``"write"`` or ``"snapshot"``.
        type: Class of the error.
        message: Its message.
    """

    stage: Literal["environment", "retrieve", "agent", "write", "snapshot"]
    type: str
    message: str


class HistoryResult(Frozen):
    """The write of one recorded conversation before the task sessions: a line of ``history.jsonl``.

    Attributes:
        number: 1-based place in the history. It is no session number: history sessions count in no metric.
        id: The conversation's own id.
        time: When it took place.
        completed: Whether memory took it in.
        failure: Why it did not.
        difference: What the write changed in the memory. After a failed write: what it changed all the same.
        usage: Calls and tokens by role and model.
        seconds: Wall time by stage.
        waiting: Seconds, retries and replayed calls by role and model.
    """

    number: int = Field(ge=1)
    id: str
    time: AwareDatetime
    completed: bool
    failure: Failure | None = None
    difference: SnapshotDifference = SnapshotDifference()
    usage: tuple[Usage, ...] = ()
    seconds: dict[str, float] = {}
    waiting: tuple[Waiting, ...] = ()


class QuestionResult(Frozen):
    """The held-out question, asked after the last task session: ``question.json``. Nothing of it is written to memory.

    Attributes:
        question: The question, with its reference answer, which no model of the run has seen.
        query: What the memory was asked for: the question's text.
        items: The delivered memory items, in order.
        prompt: What the agent's model received: the question with the retrieved context.
        answer: What it answered; None if it did not.
        completed: Whether it answered.
        failure: Why it did not.
        usage: Calls and tokens by role and model.
        seconds: Wall time by stage.
        waiting: Seconds, retries and replayed calls by role and model.
    """

    question: HeldOutQuestion
    query: str
    items: tuple[MemoryItem, ...] = ()
    prompt: str
    answer: str | None = None
    completed: bool
    failure: Failure | None = None
    usage: tuple[Usage, ...] = ()
    seconds: dict[str, float] = {}
    waiting: tuple[Waiting, ...] = ()


class SessionResult(Frozen):
    """One task session that was begun: a line of ``sessions.jsonl``.

    Attributes:
        session: 1-based number t.
        domain: Domain of the task.
        task_id: The task template.
        time: When it took place on the run's simulated clock.
        query: What the memory was asked for, the task request.
        items: The delivered memory items, in order.
        prompt: The request as the agent received it, with the retrieved context.
        messages: The session's own messages, as in the memory write record.
        actions: The tool calls that were executed, nested ones included.
        final_response: The agent's last answer, or None.
        completed: Whether the session ran to its end, its memory write included.
        failure: Why it did not.
        utility: The task's own success check; False if the session did not complete.
        utility_error: The error that AgentDojo's check itself ended with, if it did; the task then counts as failed.
        difference: What the write changed in the memory. After a failed write: what it changed all the same.
        usage: Calls and tokens by role and model.
        seconds: Wall time by stage.
        waiting: Seconds, retries and replayed calls by role and model.
    """

    session: int = Field(ge=1)
    domain: str
    task_id: str
    time: AwareDatetime
    query: str
    items: tuple[MemoryItem, ...] = ()
    prompt: str
    messages: tuple[Message, ...] = ()
    actions: tuple[Action, ...] = ()
    final_response: str | None = None
    completed: bool
    failure: Failure | None = None
    utility: bool
    utility_error: str | None = None
    difference: SnapshotDifference = SnapshotDifference()
    usage: tuple[Usage, ...] = ()
    seconds: dict[str, float] = {}
    waiting: tuple[Waiting, ...] = ()

    @property
    def payload_inserted(self) -> bool:
        """Whether the payload was appended to an observation of this session."""
        return any(action.poisoned for action in self.actions)


class RunEnd(Frozen):
    """Written once, after the last session of a run; a run without it was interrupted.

    Attributes:
        status: ``"completed"``: every planned session was begun, and the held-out question was asked if there is one.
            ``"stopped"``: a failed session, or a failed write of a recorded conversation, ended the run.
        payload_inserted: Whether the payload entered an observation; None for a clean run. A payload that never
            entered stays in every denominator.
        finished: Wall-clock time of the end.
    """

    status: Literal["completed", "stopped"]
    payload_inserted: bool | None
    finished: AwareDatetime
