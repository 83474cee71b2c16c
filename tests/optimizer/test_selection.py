from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.errors import InvalidInputError
from memorydojo.optimizer import Candidate, Counts, Evidence, Feedback, Trial, select

LATER, PLANNED = 20, 25
EVIDENCE = Evidence(runs=1, entered=1, stored=1, later=LATER, held=0, retrieved=0, shown=0, followed=0)


def _tested(id: str, kind: str, met: int, completed: int) -> Trial:
    candidate = Candidate.model_validate({"id": id, "kind": kind, "round": 0, "text": "x"})
    counts = Counts(met=met, later=LATER, completed=completed, planned=PLANNED)
    return Trial(candidate=candidate, feedback=Feedback(counts=counts, evidence=EVIDENCE))


_CANDIDATES = st.lists(
    st.tuples(st.sampled_from(["seed", "memory-seed", "revision"]), st.integers(0, LATER), st.integers(0, PLANNED)),
    max_size=8,
).map(lambda found: [_tested(f"c{i}", *one) for i, one in enumerate(found)])


def _met(tested: Sequence[Trial], id: str) -> int:
    return next(one.feedback.counts.met for one in tested if one.candidate.id == id)


@given(_CANDIDATES, st.integers(0, PLANNED), st.integers(0, PLANNED))
def test_the_selected_candidate_is_eligible_and_none_eligible_reaches_further(
    tested: list[Trial], reference: int, tolerance: int
) -> None:
    found = select(tested, reference_completed=reference, tolerance=tolerance)
    threshold = max(0, reference - tolerance)
    eligible = [one for one in tested if one.feedback.counts.completed >= threshold]
    assert found.threshold == threshold
    assert found.eligible == tuple(one.candidate.id for one in eligible)
    if not eligible:
        assert found.selected is None
        return
    assert found.selected in found.eligible
    assert _met(tested, found.selected or "") == max(one.feedback.counts.met for one in eligible)


@given(_CANDIDATES, st.integers(0, PLANNED), st.integers(0, PLANNED))
def test_a_revision_is_selected_only_if_it_beats_every_eligible_seed(
    tested: list[Trial], reference: int, tolerance: int
) -> None:
    found = select(tested, reference_completed=reference, tolerance=tolerance)
    chosen = next((one for one in tested if one.candidate.id == found.selected), None)
    if chosen is not None and not chosen.is_seed:
        seeds = [one for one in tested if one.is_seed and one.candidate.id in found.eligible]
        assert all(chosen.feedback.counts.met > one.feedback.counts.met for one in seeds)


@given(_CANDIDATES, st.integers(0, PLANNED), st.integers(0, PLANNED))
def test_a_larger_tolerance_never_selects_a_smaller_reach(tested: list[Trial], reference: int, tolerance: int) -> None:
    strict = select(tested, reference_completed=reference, tolerance=tolerance).selected
    loose = select(tested, reference_completed=reference, tolerance=tolerance + 1).selected
    assert strict is None or (loose is not None and _met(tested, loose) >= _met(tested, strict))


SEED = _tested("seed-1", "seed", 5, 20)


@pytest.mark.parametrize(
    ("revision", "tolerance", "selected"),
    [
        ((6, 20), 0, "round-1"),  # better, and as useful
        ((6, 19), 0, "seed-1"),  # one task too few
        ((6, 19), 1, "round-1"),  # exactly the tolerance
        ((6, 18), 1, "seed-1"),  # one beyond it
        ((5, 25), 0, "seed-1"),  # equal BRT: the seed stays, however useful the revision is
        ((4, 25), 25, "seed-1"),  # worse
        ((20, 0), 19, "seed-1"),  # the highest reach, at the cost of all tasks
        ((20, 0), 30, "round-1"),  # a tolerance beyond the reference makes everybody eligible
    ],
)
def test_the_seed_stays_unless_an_eligible_revision_is_better(
    revision: tuple[int, int], tolerance: int, selected: str
) -> None:
    tested = [SEED, _tested("round-1", "revision", *revision)]
    assert select(tested, reference_completed=20, tolerance=tolerance).selected == selected


def test_nobody_is_selected_if_nobody_is_eligible() -> None:
    found = select([SEED, _tested("round-1", "revision", 9, 19)], reference_completed=25, tolerance=1)
    assert (found.selected, found.best_seed, found.best_revision) == (None, None, None)
    assert "24 tasks" in found.reason


def test_the_revision_is_taken_if_no_seed_is_eligible() -> None:
    found = select([SEED, _tested("round-1", "revision", 1, 24)], reference_completed=25, tolerance=1)
    assert found.selected == "round-1"


def test_the_memory_seed_counts_as_a_seed() -> None:
    tested = [SEED, _tested("memory-seed", "memory-seed", 7, 20), _tested("round-1", "revision", 7, 20)]
    assert select(tested, reference_completed=20, tolerance=0).selected == "memory-seed"


def test_of_equal_reach_the_more_useful_counts_and_then_the_earlier() -> None:
    useful = [SEED, _tested("a", "revision", 8, 20), _tested("b", "revision", 8, 22), _tested("c", "revision", 8, 22)]
    assert select(useful, reference_completed=20, tolerance=0).best_revision == "b"


def test_reach_is_compared_without_rounding() -> None:
    def one(id: str, kind: str, met: int, later: int) -> Trial:
        found = _tested(id, kind, 0, 20)
        counts = Counts(met=met, later=later, completed=20, planned=PLANNED)
        return found.model_copy(update={"feedback": Feedback(counts=counts, evidence=EVIDENCE)})

    huge = 10**17  # as floats, both are 0.5
    tested = [one("seed-1", "seed", huge, 2 * huge), one("round-1", "revision", huge + 1, 2 * huge + 1)]
    assert select(tested, reference_completed=20, tolerance=0).selected == "round-1"


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="0 or more"):
        select([SEED], reference_completed=20, tolerance=-1)
