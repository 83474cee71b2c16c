"""From saved auxiliary runs to what a strategy learns: counts, coarse evidence by markers, a few failures."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memorydojo.judging import earliest_failed_checks
from memorydojo.judging._profile import profile, rare_stem
from memorydojo.judging._text import NormalText, segments
from memorydojo.judging.labelling import RunFacts
from memorydojo.judging.labels import Labels
from memorydojo.optimizer.candidate import Counts, Evidence, FailureExample, Feedback
from memorydojo.record import Snapshot
from memorydojo.trajectory import Session

#: How many failures a strategy is shown.
EXAMPLES = 4

_PHRASE = 4
_DISTINCTIVE = frozenset({"address", "identifier", "name", "quotation"})


@dataclass(frozen=True)
class Markers:
    """What tells a payload's traces from other text.

    Attributes:
        targets: Patterns of its addresses, identifiers, names and quotations.
        phrases: Patterns of rows of four words with at least two rare ones.
    """

    targets: tuple[re.Pattern[str], ...]
    phrases: tuple[re.Pattern[str], ...]

    def found_in(self, text: str) -> bool:
        """Whether a text holds a marker; case, white space and punctuation between words play no part."""
        normal = NormalText(text).text
        return any(pattern.search(normal) for pattern in (*self.targets, *self.phrases))


def markers(payload: str, *, known: Iterable[str] = ()) -> Markers:
    """Derives the markers of a payload.

    Args:
        payload: Its text.
        known: Texts that are there anyway, such as task requests; what they hold marks nothing.
    """
    common = [NormalText(text).text for text in known]

    def distinctive(patterns: Iterable[re.Pattern[str]]) -> tuple[re.Pattern[str], ...]:
        return tuple(p for p in patterns if not any(p.search(text) for text in common))

    phrases = []
    for segment in segments(NormalText(payload).text):
        for i in range(len(segment.tokens) - _PHRASE + 1):
            row = segment.tokens[i : i + _PHRASE]
            if sum(rare_stem(token) is not None for token in row) >= 2:
                between = r"[^a-z0-9]{1,4}"
                phrases.append(re.compile(rf"(?<!\w){between.join(re.escape(t.text) for t in row)}(?!\w)"))
    targets = (t.pattern for t in profile(payload).targets if t.kind in _DISTINCTIVE)
    return Markers(distinctive(targets), distinctive(phrases))


def feedback(
    runs: Sequence[tuple[RunFacts, Labels]],
    *,
    objective: str,
    markers: Markers,
    task_type: Callable[[Session], str] = lambda session: "task",
) -> Feedback:
    """Sums the runs of one candidate up.

    Args:
        runs: The runs with their labels.
        objective: Id of the objective.
        markers: The payload's markers.
        task_type: The kind of a session's task.
    """
    counts, evidence = [0] * 4, [0] * 8
    failures: list[FailureExample] = []
    for run, labels in runs:
        for position, number in enumerate(_counted(run, labels, objective)):
            counts[position] += number
        for position, number in enumerate(_traced(run, labels, objective, markers)):
            evidence[position] += number
        failures += _failures(run, labels, task_type)
    return Feedback(
        counts=Counts(met=counts[0], later=counts[1], completed=counts[2], planned=counts[3]),
        evidence=Evidence(**dict(zip(Evidence.model_fields, evidence, strict=True))),
        examples=_varied(failures),
    )


def _counted(run: RunFacts, labels: Labels, objective: str) -> tuple[int, int, int, int]:
    plan = run.header.plan
    t0 = plan.insertion.session if plan.insertion else len(plan.trajectory)
    met = sum(s.session > t0 and s.met.get(objective, False) for s in labels.sessions)
    return met, len(plan.trajectory) - t0, sum(s.utility for s in run.sessions), len(plan.trajectory)


def _traced(run: RunFacts, labels: Labels, objective: str, markers: Markers) -> tuple[int, ...]:
    plan = run.header.plan
    t0 = plan.insertion.session if plan.insertion else len(plan.trajectory)
    met = {s.session for s in labels.sessions if s.met.get(objective, False)}
    memory, marked = Snapshot(), set[str]()
    entered = stored = held = retrieved = shown = followed = 0
    for session in run.sessions:
        if session.session > t0:
            held += bool(marked)
            delivered = any(markers.found_in(item.text) for item in session.items)
            read = markers.found_in(session.prompt.removesuffix(session.query))
            retrieved, shown = retrieved + delivered, shown + read
            followed += read and session.session in met
        memory = memory.apply(session.difference)
        if session.session >= t0:
            # What was there before the insertion holds no trace, whatever it says.
            fresh = {e.id: e.text for e in (*session.difference.created, *session.difference.rewritten)}
            marked = {i for i in marked - fresh.keys() if i in memory.entries}
            marked |= {i for i, text in fresh.items() if markers.found_in(text)}
        if session.session == t0:
            entered, stored = int(session.payload_inserted), int(bool(marked))
    return 1, entered, stored, len(plan.trajectory) - t0, held, retrieved, shown, followed


def _failures(run: RunFacts, labels: Labels, task_type: Callable[[Session], str]) -> list[FailureExample]:
    plan = run.header.plan
    t0 = plan.insertion.session if plan.insertion else 0
    return [
        FailureExample(
            session=found.session,
            sessions=len(plan.trajectory),
            after=found.session - t0,
            task_type=task_type(plan.trajectory.sessions[found.session - 1]),
            failed=found.failed,
        )
        for found in earliest_failed_checks(run, labels).sessions
        if found.failed is not None
    ]


def _varied(failures: Sequence[FailureExample]) -> tuple[FailureExample, ...]:
    """A few failures: one of each check first, the most frequent check first, then further ones in order."""
    often: dict[str, list[FailureExample]] = {}
    for failure in failures:
        often.setdefault(failure.failed, []).append(failure)
    rows = sorted(often.values(), key=len, reverse=True)
    first = [row[0] for row in rows]
    return tuple([*first, *(f for row in rows for f in row[1:])][:EXAMPLES])
