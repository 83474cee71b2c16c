"""The loop: propose, validate, test, learn; then select (paper, section 5 and appendix A.6)."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, TypeVar

from pydantic import Field

from memorydojo._base import Frozen
from memorydojo.attack import Payload
from memorydojo.errors import EndpointDownError, InvalidInputError, ModelError, SavedRunError, UnusableAnswerError
from memorydojo.models.access import Access
from memorydojo.models.conversation import ABOUT_THE_QUESTION, Conversation, conversation
from memorydojo.optimizer.candidate import Candidate, Malformed, Proposal, Trial
from memorydojo.optimizer.evaluation import Evaluator, Outcome
from memorydojo.optimizer.saved import (
    RUNS,
    Evaluated,
    Event,
    Exchange,
    Manifest,
    Proposed,
    SearchSpec,
    SearchWriter,
    Selected,
    Stopped,
    Validated,
)
from memorydojo.optimizer.selection import Selection, select
from memorydojo.optimizer.strategy import Brief, Strategy, Turn, describe_memory
from memorydojo.optimizer.validation import Validator, best
from memorydojo.runs._files import to_json
from memorydojo.runs.load import Run

ROLE = "optimizer"
MEMORY_SEED = "memory-seed"

OnEvent = Callable[[Event], None]
_E = TypeVar("_E", Evaluated, Proposed, Validated, Selected)


class Budget(Frozen):
    """What a search may use in all: its own calls, and those of the runs that test candidates.

    A step is not begun if what was spent, and the dearest step of its kind so far, would come to more. A step that
    turns out dearer than all of its kind before it, such as the first, can still go beyond: nobody knows it ahead.

    Attributes:
        calls: Model calls, simulated ones included; None sets no limit.
        tokens: Tokens sent and received; None sets no limit.
    """

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)


class _BudgetSpentError(Exception):
    """No further step may begin."""


@dataclass(frozen=True)
class Cost:
    """Calls and tokens.

    Attributes:
        calls: Calls, those that ended with an error included.
        tokens: Tokens sent and received.
    """

    calls: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, events: Sequence[Event]) -> "Cost":
        """What events took."""
        used = [u for e in events if isinstance(e, Evaluated | Proposed | Validated) for u in e.usage]
        return cls(sum(u.calls + u.errors for u in used), sum(u.input_tokens + u.output_tokens for u in used))


def search_id(spec: SearchSpec) -> str:
    """The id of a search: readable, and made from its whole specification."""
    digest = hashlib.sha256(to_json(spec, canonical=True).encode("ascii")).hexdigest()[:10]
    memory = spec.memory.rpartition(":")[2]
    return f"{spec.objective}--{memory}--{digest}"


def manifest_of(spec: SearchSpec, *, simulated: bool) -> Manifest:
    """What is saved of a search before it begins."""
    return Manifest(search_id=search_id(spec), simulated=simulated, memorydojo=version("memorydojo"), spec=spec)


@dataclass
class Loop:
    """One start of a search.

    Attributes:
        writer: The saved search.
        manifest: What it is.
        evaluator: Tests candidates.
        strategy: Proposes them.
        validator: Checks proposals; makes one for the calls of a round.
        access: How the strategy's model is reached.
        budget: What may be spent.
        on_event: Called after each event that is new.
    """

    writer: SearchWriter
    manifest: Manifest
    evaluator: Evaluator
    strategy: Strategy
    validator: "Callable[[str], Checker]"
    access: Access
    budget: Budget
    on_event: OnEvent
    _tested: list[Trial] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _recorded: "deque[Event]" = field(default_factory=deque)
    _brief: Brief | None = None

    def run(self) -> None:
        """Runs the search to its end, or until the budget is spent."""
        self._events = list(self.writer.events)
        self._recorded = deque(event for event in self._events if not isinstance(event, Stopped))
        try:
            self._begin()
            for number in range(1, self.manifest.spec.rounds + 1):
                self._round(number)
        except _BudgetSpentError as stop:
            event = Stopped(reason=str(stop), selection=self._selection())
            if self._events[-1:] != [event]:
                self._save(event)
            return
        selection = self._selection()
        assert selection is not None
        self._next(Selected, lambda: Selected(selection=selection))

    def _begin(self) -> None:
        """Tests the seeds, all at once; then asks for the memory-property-only seed and tests it."""
        seeds = [Candidate(id=p.id, kind="seed", round=0, text=p.text) for p in self.manifest.spec.seeds]
        untested = seeds[len(self._recorded) :]
        outcomes: dict[str, Outcome] = {}
        if untested:
            self._afford(Evaluated)
            outcomes = dict(zip([c.id for c in untested], self.evaluator(untested), strict=True))
        for seed in seeds:
            self._test(seed, outcomes.get(seed.id))
        self._round(0)

    def _round(self, number: int) -> None:
        proposed = self._next(Proposed, lambda: self._proposed(number))
        validated = self._next(Validated, lambda: self._validated(number, proposed.drafts))
        if validated.chosen is None:
            return
        proposal = proposed.drafts[validated.chosen - 1]
        assert isinstance(proposal, Proposal)
        if number == 0:
            self._test(Candidate(id=MEMORY_SEED, kind="memory-seed", round=0, text=proposal.payload, proposal=proposal))
            return
        self._test(
            Candidate(id=f"round-{number}", kind="revision", round=number, text=proposal.payload, proposal=proposal)
        )

    def _test(self, candidate: Candidate, outcome: Outcome | None = None) -> None:
        def make() -> Evaluated:
            found = outcome or self.evaluator([candidate])[0]
            spent = found.spent
            return Evaluated(
                candidate=candidate,
                feedback=found.feedback,
                runs=found.runs,
                usage=spent.usage,
                waiting=spent.waiting,
            )

        done = self._next(Evaluated, make, affordable=outcome is not None)
        self._tested.append(Trial(candidate=done.candidate, feedback=done.feedback))

    def _proposed(self, number: int) -> Proposed:
        spec = self.manifest.spec
        with self._talk(number) as talk:
            turn = Turn(
                brief=self._the_brief(),
                history=tuple(self._tested) if number else (),
                round=number,
                number=spec.proposals if number else 1,
                seed=spec.seed,
                chat=talk.chat if talk is not None else None,
            )
            drafts, problem = self._drafts(turn, talk)
        said = [Exchange(messages=asked, answer=answer) for asked, answer in talk.exchanges] if talk is not None else []
        return Proposed(
            round=number,
            drafts=drafts,
            problem=problem,
            prompt=getattr(self.strategy, "prompt", None),
            exchanges=tuple(said),
            usage=talk.usage if talk is not None else (),
            waiting=talk.waiting if talk is not None else (),
        )

    def _drafts(self, turn: Turn, talk: Conversation | None) -> tuple[tuple[Proposal | Malformed, ...], str | None]:
        """What the strategy gives; a problem in place of it if its model gives nothing that can be used."""
        ask = self.strategy.propose if turn.round else self.strategy.write_seed
        try:
            given = ask(turn)
        except UnusableAnswerError as error:
            return (), str(error)
        except ModelError as error:
            trouble = talk.trouble() if talk is not None else None
            if trouble is not None or error.code not in ABOUT_THE_QUESTION:
                raise EndpointDownError(
                    f"the optimizer cannot go on: {trouble or error}. What was done is kept; when this is mended, give "
                    "the same command again"
                ) from error
            return (), str(error)
        wrong = next((one for one in given if not isinstance(one, Proposal | Malformed)), None)
        if wrong is not None:
            raise InvalidInputError(
                f"the strategy {self.strategy.name!r} gave a {type(wrong).__name__}; it has to give Proposal or "
                "Malformed objects"
            )
        extra = [Malformed(problem=f"more than the {turn.number} that were asked for") for _ in given[turn.number :]]
        return (*given[: turn.number], *extra), None

    @contextmanager
    def _talk(self, number: int) -> Iterator[Conversation | None]:
        """The strategy's way to its model, for one round."""
        model = self.strategy.model
        if model is None:
            yield None
            return
        access = self.access
        if access.replay == "off" and access.answers is None:
            # What a start of this search that was killed had been answered is not asked again.
            access = replace(access, replay="prefer")
        gateway = access.gateway(self.writer.directory, record=True)
        with conversation(gateway, token=self._token(number), role=ROLE, model=model) as talk:
            yield talk

    def _token(self, number: int) -> str:
        """What the gateway knows the calls of a round by."""
        return f"{ROLE}-{self.manifest.search_id}-{number}"

    def _validated(self, number: int, drafts: Sequence[Proposal | Malformed]) -> Validated:
        checker = self.validator(self._token(number))
        earlier = [tested.candidate.text for tested in self._tested]
        reasons: list[tuple[str, ...]] = []
        valid: list[tuple[int, float]] = []
        for position, draft in enumerate(drafts, start=1):
            if isinstance(draft, Malformed):
                reasons.append((f"malformed: {draft.problem}",))
                continue
            reasons.append(checker.validator.reasons(draft.payload, earlier=earlier))
            earlier.append(draft.payload)
            if not reasons[-1]:
                valid.append((position, draft.expected_brt))
        spent = checker.spent()
        return Validated(
            round=number,
            reasons=tuple(reasons),
            chosen=best(valid),
            usage=spent.usage,
            waiting=spent.waiting,
        )

    def _the_brief(self) -> Brief:
        if self._brief is None:
            spec = self.manifest.spec
            tested = next(event for event in self._events if isinstance(event, Evaluated))
            # What a memory system says of itself is saved with every run.
            memory = Run(self.evaluator.directory / RUNS / tested.runs[0]).header.memory
            self._brief = Brief(
                objective=spec.description,
                memory=describe_memory(memory),
                ontology=spec.ontology,
                max_length=spec.rules.max_length,
            )
        return self._brief

    def _selection(self) -> Selection | None:
        spec = self.manifest.spec
        counts = {one.candidate.id: one.feedback.counts for one in self._tested}
        if spec.reference not in counts:
            return None
        completed = counts[spec.reference].completed
        return select(self._tested, reference_completed=completed, tolerance=spec.tolerance)

    def _next(self, kind: type[_E], make: Callable[[], _E], *, affordable: bool = False) -> _E:
        """The next event: as it is saved, else made now and saved."""
        if self._recorded:
            event = self._recorded.popleft()
            if not isinstance(event, kind):
                raise SavedRunError(
                    f"the search in {self.writer.directory} has an event {event.kind!r} where another was due; restore "
                    "its events from a copy"
                )
            return event
        if not affordable:
            self._afford(kind)
        event = make()
        self._save(event)
        return event

    def _save(self, event: Event) -> None:
        self.writer.append(event)
        self._events.append(event)
        self.on_event(event)

    def _afford(self, kind: type[Any]) -> None:
        """Raises if a step of a kind may go beyond the budget."""
        if kind is Selected:
            return
        spent = Cost.of(self._events)
        steps = [Cost.of([event]) for event in self._events if isinstance(event, kind)]
        for name in ("calls", "tokens"):
            limit: int | None = getattr(self.budget, name)
            if limit is None:
                continue
            used, next_ = getattr(spent, name), max((getattr(step, name) for step in steps), default=0)
            if used >= limit or used + next_ > limit:
                raise _BudgetSpentError(
                    f"the budget of {limit} {name} is spent: {used} are used, and the next step may take {next_}"
                )


@dataclass(frozen=True)
class Checker:
    """A validator, and what it has asked of a model.

    Attributes:
        validator: The validator.
        spent: What was spent on this round.
    """

    validator: Validator
    spent: Callable[[], Any]


def check_seeds(seeds: Sequence[Payload], objective: str, reference: str | None) -> str:
    """Checks what a search starts from; the id of the reference seed, the first if none is named.

    Raises:
        InvalidInputError: There is no seed, two share an id, one is of another objective, or the reference is missing.
    """
    ids = [payload.id for payload in seeds]
    if not seeds:
        raise InvalidInputError("a search needs at least one seed payload")
    taken = [i for i in ids if ids.count(i) > 1 or i == MEMORY_SEED or i.startswith("round-")]
    if taken:
        raise InvalidInputError(f"the seed id {taken[0]!r} is taken; give every seed an id of its own")
    other = next((payload for payload in seeds if payload.objective != objective), None)
    if other is not None:
        raise InvalidInputError(f"the seed {other.id!r} is for the objective {other.objective!r}, not {objective!r}")
    if reference is not None and reference not in ids:
        raise InvalidInputError(f"the reference {reference!r} is no seed; the seeds are {', '.join(ids)}")
    return reference or ids[0]
