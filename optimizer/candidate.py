"""What a search is about: candidates, what was proposed, and what testing them showed. All of it is saved as it is."""

from typing import Annotated, Literal

from pydantic import Field

from memorydojo._base import Frozen
from memorydojo.judging import Check

Kind = Literal["seed", "memory-seed", "revision"]

#: Kinds of candidates that a search starts from; a revision has to beat the best of them.
SEEDS: frozenset[Kind] = frozenset({"seed", "memory-seed"})


class Proposal(Frozen):
    """A payload that a strategy proposes, and why.

    Attributes:
        payload: The text.
        changes: What it changes.
        bottleneck: Where the payload before it is suspected to fail.
        improvement: What is expected of the change.
        expected_brt: The BRT that the strategy itself expects, 0 to 1; the best valid proposal of a round is the one
            with the highest.
        parent: The candidate that it revises, or None for a text of its own.
        notes: What the strategy wants to find again in later rounds; nobody else reads it.
    """

    payload: str
    changes: str
    bottleneck: str
    improvement: str
    expected_brt: Annotated[float, Field(ge=0, le=1)] = 0.0
    parent: str | None = None
    notes: dict[str, str] = {}


class Malformed(Frozen):
    """What a strategy gave in place of a proposal.

    Attributes:
        problem: What is wrong with it.
        text: What it was, cut short.
    """

    problem: str
    text: str = ""


class Candidate(Frozen):
    """A payload that is tested.

    Attributes:
        id: ``"seed-1"``, ``"memory-seed"``, ``"round-3"``: unique in its search.
        kind: Whether the search started from it.
        round: The round that proposed it; 0 for what the search started from.
        text: The text.
        proposal: What was proposed, unless it is a seed that was given.
    """

    id: str
    kind: Kind
    round: int = Field(ge=0)
    text: str
    proposal: Proposal | None = None

    @property
    def parent(self) -> str | None:
        """The candidate that it revises."""
        return self.proposal.parent if self.proposal is not None else None


class Counts(Frozen):
    """What the sessions of all auxiliary runs of a candidate came to.

    Attributes:
        met: Later sessions that executed the objective.
        later: Planned later sessions.
        completed: Tasks whose own check held, the insertion session's included (N_util in the paper).
        planned: Planned tasks.
    """

    met: int = Field(ge=0)
    later: int = Field(ge=0)
    completed: int = Field(ge=0)
    planned: int = Field(ge=0)

    @property
    def brt(self) -> float:
        """BRT; NaN if no later session was planned."""
        return self.met / self.later if self.later else float("nan")

    @property
    def tu(self) -> float:
        """Task utility; NaN if nothing was planned."""
        return self.completed / self.planned if self.planned else float("nan")


class Evidence(Frozen):
    """How far distinctive markers of a payload came. Coarse: a marker is a trace, no proof that the instruction lives.

    Attributes:
        runs: Runs.
        entered: Runs in which the payload entered the observation.
        stored: Runs whose memory holds a marker after the insertion write.
        later: Planned later sessions.
        held: Later sessions that found a marker in memory.
        retrieved: Later sessions that were delivered an item with a marker.
        shown: Later sessions whose agent's input held a marker.
        followed: Of these, sessions that executed the objective.
    """

    runs: int
    entered: int
    stored: int
    later: int
    held: int
    retrieved: int
    shown: int
    followed: int


class FailureExample(Frozen):
    """A later session in which the payload failed; it names no task and no trajectory.

    Attributes:
        session: 1-based position of the session.
        sessions: How many sessions the trajectory has.
        after: How many sessions after the insertion.
        task_type: The kind of the task.
        failed: The earliest check that failed.
    """

    session: int
    sessions: int
    after: int
    task_type: str
    failed: Check


class Feedback(Frozen):
    """What a strategy learns about a tested candidate.

    Attributes:
        counts: BRT and task utility, as counts.
        evidence: How far its markers came.
        examples: A few failures.
    """

    counts: Counts
    evidence: Evidence
    examples: tuple[FailureExample, ...] = ()


class Trial(Frozen):
    """A candidate with its feedback."""

    candidate: Candidate
    feedback: Feedback

    @property
    def is_seed(self) -> bool:
        """Whether the search started from it."""
        return self.candidate.kind in SEEDS
