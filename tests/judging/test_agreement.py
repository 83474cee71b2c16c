import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError, SavedRunError
from memorydojo.judging import Agreement, Judgement, agreement, label_run
from memorydojo.judging.agreement import cohens_kappa
from memorydojo.runs import Run, load_runs


class Table:
    """A judge that looks its answers up; what it does not know is not observed."""

    version = "1"
    prompt_sha256 = None

    def __init__(self, id: str, **answers: Any) -> None:
        self.id, self.answers = id, answers

    def classify(self, payload: Payload, text: str) -> Judgement:
        return Judgement(label=self.answers.get(text, "not_observed"))


def saved(make: Any, root: Path, objectives: Any, *judges: Table) -> Run:
    """Six entries from the first write on; three are delivered in the second session, the first again in the third."""
    texts = {f"e{i}": letter for i, letter in enumerate("abcdef")}
    exactly = make.created(**texts, x=make.payload.text)
    before = make.session(1, difference=make.created(old="old"))
    first = make.session(2, poisoned=True, difference=exactly)
    items = [make.item(text, f"e{i}", rank=i) for i, text in enumerate("abc")]
    items += [make.item("old", "old", rank=3), make.item(make.payload.text, "x", rank=4)]
    second = make.session(3, items=tuple(items), final_response="pay")
    third = make.session(4, items=(make.item("a", "e0"),))
    failed = make.session(5, items=(make.item("a", "e0"),), completed=False, utility=False)
    run: Run = make.save(root, before, first, second, third, failed, n=6, t0=2)
    for judge in judges:
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    return run


def compare(root: Path) -> Agreement:
    return agreement(load_runs(root), "one", "two")


ONE = {"a": "transformed", "b": "transformed", "c": "fragmented", "d": "error"}
TWO = {"a": "transformed", "b": "fragmented", "c": "fragmented", "d": "error", "e": "error"}


def test_every_different_text_counts_once_and_exact_ones_and_old_ones_not(
    make: Any, tmp_path: Path, objectives: Any
) -> None:
    saved(make, tmp_path, objectives, Table("one", **ONE), Table("two", **TWO))
    table = compare(tmp_path).confusion
    assert table.to_numpy().sum() == 6
    counts = {(row, column): n for row, line in table.to_dict("index").items() for column, n in line.items() if n}
    assert counts == {
        ("transformed", "transformed"): 1,
        ("transformed", "fragmented"): 1,
        ("fragmented", "fragmented"): 1,
        ("not_observed", "not_observed"): 1,
        ("not_observed", "error"): 1,
        ("error", "error"): 1,
    }
    assert (table.index.name, table.columns.name) == ("one", "two")


def test_errors_stay_in_the_denominator_and_never_agree(make: Any, tmp_path: Path, objectives: Any) -> None:
    saved(make, tmp_path, objectives, Table("one", **ONE), Table("two", **TWO))
    levels = compare(tmp_path).summary.set_index("level")
    assert list(levels["n"]) == [6, 6, 5, 1, 2, 4]
    assert list(levels["n_error"]) == [2, 2, 0, 0, 0, 0]
    assert levels.loc["texts", "agreed"] == 3 / 6
    chance = (2 / 6) * (1 / 6) + (1 / 6) * (2 / 6) + (2 / 6) * (1 / 6)
    assert levels.loc["texts", "kappa"] == pytest.approx((3 / 6 - chance) / (1 - chance))
    assert levels.loc["items", "agreed"] == 4 / 5


def test_what_hangs_on_an_error_is_an_error_of_the_indicator(make: Any, tmp_path: Path, objectives: Any) -> None:
    # Without the exact entry the first judge has nothing sure.
    first = make.session(1, poisoned=True, difference=make.created(a="a"))
    second = make.session(2, items=(make.item("a", "a"),))
    run = make.save(tmp_path, first, second, n=2)
    for judge in (Table("one", a="error"), Table("two", a="transformed")):
        run.save_labels(label_run(run, judge=judge, objectives=objectives))
    levels = compare(tmp_path).summary.set_index("level")
    for level in ("inserted", "retrieved"):
        assert tuple(levels.loc[level, ["n", "agreed", "n_error"]]) == (1, 0.0, 1)


def _trajectory(make: Any, root: Path, objectives: Any, name: str, texts: str) -> None:
    """A run of a trajectory of its own, whose insertion leaves one entry for each letter."""
    first = make.session(1, poisoned=True, difference=make.created(**{f"e{i}": t for i, t in enumerate(texts)}))
    run = make.save(root, first, make.session(2), n=2, run_id=name, trajectory=name)
    for judge in (Table("one", a="transformed", b="fragmented"), Table("two", a="transformed", b="transformed")):
        run.save_labels(label_run(run, judge=judge, objectives=objectives))


def test_intervals_draw_whole_trajectories(make: Any, tmp_path: Path, objectives: Any) -> None:
    # With two trajectories a draw holds the one, the other, or both, and either end is one of them alone.
    _trajectory(make, tmp_path, objectives, "agree", "ac")  # not observed is the third letter's label
    _trajectory(make, tmp_path, objectives, "differ", "abbc")
    texts = compare(tmp_path).summary.set_index("level").loc["texts"]
    assert (texts["n"], texts["n_trajectories"], texts["agreed"]) == (5, 2, 4 / 5)
    assert (texts["agreed_low"], texts["agreed_high"]) == (2 / 3, 1.0)
    assert (texts["kappa_low"], texts["kappa_high"]) == (
        pytest.approx(cohens_kappa([TT, FT, NN], CATEGORIES_OF_TEXTS)),
        1.0,
    )
    assert texts["kappa"] == pytest.approx(cohens_kappa([TT, NN, TT, FT, NN], CATEGORIES_OF_TEXTS))


CATEGORIES_OF_TEXTS = ("transformed", "fragmented", "not_observed", "error")
TT, FT, NN = ("transformed", "transformed"), ("fragmented", "transformed"), ("not_observed", "not_observed")


def test_one_trajectory_alone_has_no_interval(make: Any, tmp_path: Path, objectives: Any) -> None:
    _trajectory(make, tmp_path, objectives, "alone", "abc")
    texts = compare(tmp_path).summary.set_index("level").loc["texts"]
    assert texts["n_trajectories"] == 1
    assert texts[["agreed_low", "agreed_high", "kappa_low", "kappa_high"]].isna().all()


def test_a_judge_agrees_with_itself(make: Any, tmp_path: Path, objectives: Any) -> None:
    saved(
        make, tmp_path, objectives, Table("one", **ONE | {"d": "fragmented"}), Table("two", **ONE | {"d": "fragmented"})
    )
    summary = compare(tmp_path).summary
    assert list(summary["agreed"]) == [1.0] * 6
    assert summary["kappa"][0] == 1.0


def test_missing_labels_and_one_name_twice_are_named(make: Any, tmp_path: Path, objectives: Any) -> None:
    saved(make, tmp_path, objectives, Table("one"))
    with pytest.raises(SavedRunError, match="no labels of the judge 'two'"):
        compare(tmp_path)
    with pytest.raises(InvalidInputError, match="'one' was named twice"):
        agreement(load_runs(tmp_path), "one", "one")
    with pytest.raises(InvalidInputError, match="no runs"):
        agreement([], "one", "two")


CATEGORIES = ("x", "y", "z", "error")
PAIRS = st.lists(st.tuples(st.sampled_from(CATEGORIES[:3]), st.sampled_from(CATEGORIES[:3])), min_size=1)


@given(PAIRS)
def test_kappa_is_symmetric_and_at_most_one_and_one_only_for_full_agreement(pairs: list[tuple[str, str]]) -> None:
    kappa = cohens_kappa(pairs, CATEGORIES)
    mirrored = cohens_kappa([(b, a) for a, b in pairs], CATEGORIES)
    assert kappa == pytest.approx(mirrored, nan_ok=True)
    if not math.isnan(kappa):
        assert kappa <= 1
        assert (kappa == 1) == all(a == b for a, b in pairs)


@given(PAIRS, st.integers(1, 5))
def test_an_error_never_raises_agreement(pairs: list[tuple[str, str]], n: int) -> None:
    def share(found: list[tuple[str, str]]) -> float:
        return sum(a == b != "error" for a, b in found) / len(found)

    worse = [*pairs, *[("error", "error")] * n]
    assert share(worse) <= share(pairs)
    assert math.isnan(cohens_kappa(worse, CATEGORIES)) or cohens_kappa(worse, CATEGORIES) < 1


def test_kappa_of_a_table_from_a_textbook() -> None:
    # Cohen's measure on 20 + 5 + 10 + 15 pairs: observed 0.7, by chance 0.5.
    pairs = [("x", "x")] * 20 + [("x", "y")] * 5 + [("y", "x")] * 10 + [("y", "y")] * 15
    assert cohens_kappa(pairs, ("x", "y")) == pytest.approx(0.4)


@pytest.mark.parametrize("pairs", [[], [("x", "x")] * 3])
def test_kappa_is_nan_where_chance_would_agree_about_everything(pairs: list[tuple[str, str]]) -> None:
    assert math.isnan(cohens_kappa(pairs, CATEGORIES))
