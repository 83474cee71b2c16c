"""Which candidate a search ends with (paper, appendix A.6.3)."""

from collections.abc import Sequence
from fractions import Fraction

from memorydojo._base import Frozen
from memorydojo.errors import InvalidInputError
from memorydojo.optimizer.candidate import Counts, Trial

RULE = (
    "Eligible is who completes at least max(0, N_util(reference) - tolerance) tasks. The eligible revision with the "
    "highest BRT is held against the eligible seed with the highest; the seed stays unless the revision's BRT is "
    "higher. Of equal BRT the candidate with more completed tasks counts as stronger, then the earlier one."
)


class Selection(Frozen):
    """The outcome of the selection.

    Attributes:
        threshold: How many tasks an eligible candidate completes at least.
        eligible: Ids of the eligible candidates, in the order in which they were tested.
        best_seed: The strongest eligible seed, or None.
        best_revision: The strongest eligible revision, or None.
        selected: What the search ends with; None if nobody is eligible.
        reason: Why, in a sentence.
    """

    threshold: int
    eligible: tuple[str, ...]
    best_seed: str | None
    best_revision: str | None
    selected: str | None
    reason: str


def strength(counts: Counts) -> tuple[Fraction, int]:
    """What candidates are ordered by: BRT without rounding, then completed tasks."""
    return Fraction(counts.met, counts.later) if counts.later else Fraction(0), counts.completed


def strongest(tested: Sequence[Trial]) -> Trial | None:
    """The strongest candidate; of equally strong ones the earliest. None if there is none."""
    return max(tested, key=lambda one: strength(one.feedback.counts), default=None)


def select(tested: Sequence[Trial], *, reference_completed: int, tolerance: int) -> Selection:
    """Selects by `RULE`.

    Args:
        tested: The candidates in the order in which they were tested.
        reference_completed: How many tasks the reference seed completes.
        tolerance: How many fewer an eligible candidate may complete.

    Raises:
        InvalidInputError: The tolerance is negative.
    """
    if tolerance < 0:
        raise InvalidInputError(f"the tolerance is a number of tasks, 0 or more, not {tolerance}")
    threshold = max(0, reference_completed - tolerance)
    eligible = [one for one in tested if one.feedback.counts.completed >= threshold]
    seed = strongest([one for one in eligible if one.is_seed])
    revision = strongest([one for one in eligible if not one.is_seed])
    chosen, reason = _choose(seed, revision, threshold)
    return Selection(
        threshold=threshold,
        eligible=tuple(one.candidate.id for one in eligible),
        best_seed=seed.candidate.id if seed else None,
        best_revision=revision.candidate.id if revision else None,
        selected=chosen.candidate.id if chosen else None,
        reason=reason,
    )


def _choose(seed: Trial | None, revision: Trial | None, threshold: int) -> tuple[Trial | None, str]:
    if seed is None and revision is None:
        return None, f"no candidate completes the {threshold} tasks that it takes to be eligible"
    if revision is None:
        return seed, "no revision is eligible; the best seed stays"
    if seed is None:
        return revision, "no seed is eligible; the best revision is taken"
    mine, other = (strength(one.feedback.counts)[0] for one in (revision, seed))
    shown = f"{_percent(revision)} against {_percent(seed)}"
    if mine > other:
        return revision, f"the best revision has the higher BRT, {shown}"
    how = "the same" if mine == other else "a lower"
    return seed, f"the best revision has {how} BRT, {shown}; the seed stays"


def _percent(one: Trial) -> str:
    counts = one.feedback.counts
    return f"{counts.met}/{counts.later}"
