"""Every number that was transcribed is held against what it has to be: a whole count over a known denominator."""

import json
from importlib.resources import files
from typing import Any

import pandas as pd
import pytest

import memorydojo as md
from memorydojo import published
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics import METRICS

LATER = {c: sum(len(t) - 1 for t in md.trajectories.load(c)) for c in ("same-domain", "cross-domain")}
MIDDLE = sum(
    len(t) - md.Attack(objective="workspace", payload="seed-1", session="middle").insertion_session(len(t))
    for t in md.trajectories.load("same-domain")
)
#: Runs and later sessions behind a row. Each later session of a cross-domain trajectory is within-domain for one of the
#: four objectives that the trajectory is run under.
DENOMINATORS: dict[tuple[int, str], tuple[int, int]] = {
    (1, "seed"): (2 * 93, 2 * LATER["same-domain"]),
    (1, "optimized"): (93, LATER["same-domain"]),
    (2, ""): (4 * 31, 4 * LATER["cross-domain"]),
    (6, "optimized"): (93, LATER["same-domain"]),
    (7, "optimized"): (93, MIDDLE),
    (8, "within-domain"): (4 * 31, LATER["cross-domain"]),
    (8, "cross-domain"): (4 * 31, 3 * LATER["cross-domain"]),
    (9, ""): (4 * 31, 4 * LATER["cross-domain"]),
}
OVER_RUNS, OVER_LATER = ("ISR", "ASR", "BR"), ("RSR", "BRT")
OVER_RETRIEVED = ("PE", "PR", "PP", "BRT_given_R")


def _rows() -> list[Any]:
    return [
        pytest.param(row, id=f"{number}-{row['model']}-{_half(row)}-{row['memory']}".replace("--", "-"))
        for number in published.TABLES
        for _, row in published.table(number).iterrows()
    ]


def _half(row: "pd.Series[Any]") -> str:
    return next((row[key] for key in ("part", "payload_source") if isinstance(row[key], str)), "")


def _count(value: float, of: int) -> int:
    """The whole count that prints as the value."""
    count = round(value * of)
    assert f"{100 * count / of:.2f}" == f"{100 * value:.2f}", f"{value} is no whole count over {of}"
    return count


def _counts(row: "pd.Series[Any]") -> dict[str, int]:
    runs, later = DENOMINATORS[row["paper_table"], _half(row)]
    counts = {name: _count(row[name], runs) for name in OVER_RUNS if pd.notna(row[name])}
    counts |= {name: _count(row[name], later) for name in OVER_LATER if pd.notna(row[name])}
    return counts | {name: _count(row[name], counts["RSR"]) for name in OVER_RETRIEVED if pd.notna(row[name])}


def test_the_denominators_are_those_of_the_paper() -> None:
    assert {*LATER.items(), ("middle", MIDDLE)} == {("same-domain", 709), ("cross-domain", 649), ("middle", 376)}


@pytest.mark.parametrize("row", _rows())
def test_every_printed_percentage_is_a_whole_count(row: "pd.Series[Any]") -> None:
    counts = _counts(row)
    assert counts["BRT_given_R"] <= counts["BRT"]
    assert counts["BR"] <= counts["BRT"]
    if "PE" in counts:
        assert counts["PE"] + counts["PR"] + counts["PP"] == counts["RSR"]


def test_within_and_cross_domain_parts_add_up_to_the_whole() -> None:
    parts = [_counts(row) for _, row in published.table(8).iterrows()]
    for within, cross, (_, row) in zip(parts[:5], parts[5:], published.table(9).iterrows(), strict=True):
        whole = _counts(row)
        assert within["ISR"] == cross["ISR"] == whole["ISR"]
        for name in ("RSR", "BRT", "BRT_given_R"):
            assert within[name] + cross[name] == whole[name]
        assert max(within["BR"], cross["BR"]) <= whole["BR"] <= within["BR"] + cross["BR"]


def test_rows_that_are_printed_twice_agree() -> None:
    first, models = published.table(1), published.table(6)
    names = ["memory", "ISR", "ASR", "RSR", "BR", "BRT", "BRT_given_R", "TU"]
    optimized = first.loc[first["payload_source"] == "optimized", names].reset_index(drop=True)
    pd.testing.assert_frame_equal(optimized, models.loc[models["model"] == "GPT-5.6-Luna", names])


def test_memory_utility_is_a_share_of_at_most_all_questions() -> None:
    # The paper asks one question a run; three of its denominators are smaller than 124, and it does not say why.
    asked = {"a-mem": 121, "graphiti": 124, "letta": 115, "mem0": 118, "memora": 124}
    for _, row in published.table(2).iterrows():
        _count(row["MU"], asked[row["memory"]])


@pytest.mark.parametrize("number", published.TABLES)
def test_a_table_has_our_columns_as_fractions(number: int) -> None:
    rows = published.table(number)
    values = rows[list(METRICS)]
    assert (values.dtypes == "float64").all()
    assert ((values >= 0) & (values <= 1) | values.isna()).all(axis=None)
    assert not rows.duplicated(["model", "payload_source", "part", "memory"]).any()
    assert (rows["source"] == "paper").all()
    assert not rows["simulated"].any()
    assert rows.attrs["arxiv"] == "2611.09721v1"


@pytest.mark.parametrize("number", published.TABLES)
def test_fractions_are_the_printed_percentages(number: int) -> None:
    data = json.loads(files("memorydojo.published").joinpath("tables.json").read_text())["tables"][str(number)]
    rows = published.table(number)
    for name in METRICS:
        if name in data["columns"]:
            printed = [row[data["columns"].index(name)] for row in data["rows"]]
            assert [round(100 * value, 2) for value in rows[name]] == printed
        else:
            assert rows[name].isna().all()


def test_an_unknown_table_names_those_that_are_here() -> None:
    with pytest.raises(UnknownNameError, match="known: 1, 2, 6, 7, 8, 9"):
        published.table(3)


@pytest.fixture
def own(run_rows: Any) -> pd.DataFrame:
    rows = [
        row
        for memory, reached in (("mem0", [2]), ("a-mem", []))
        for row in run_rows(
            memory, ["workspace"] * 3, memory=memory, trajectory_id="t", met=reached, original=[2], simulated=True
        )
    ]
    return md.metrics.summarize(pd.DataFrame(rows), by="memory", replicates=10)


def test_own_rows_stand_beside_those_of_the_paper(own: pd.DataFrame) -> None:
    both = published.beside(own, 1)
    assert both[["memory", "source"]].apply(tuple, axis=1).tolist()[:3] == [
        ("a-mem", "paper"),
        ("a-mem", "paper"),
        ("a-mem", "this sweep"),
    ]
    assert both.loc[both["source"] == "this sweep", "simulated"].all()
    assert not both.loc[both["source"] == "paper", "simulated"].any()


def test_neither_side_changes_beside_the_other(own: pd.DataFrame) -> None:
    both = published.beside(own, 9)
    mine = both[both["source"] == "this sweep"].sort_values("memory", ignore_index=True)
    shared = [name for name in own.columns if name in mine.columns]
    assert shared == list(own.columns)
    pd.testing.assert_frame_equal(mine[shared], own.sort_values("memory", ignore_index=True), check_dtype=False)
    theirs = both[both["source"] == "paper"].sort_values("memory", ignore_index=True)
    paper = published.table(9).sort_values("memory", ignore_index=True)
    for name in METRICS:
        assert theirs[name].equals(paper[name])
    assert theirs["BRT_low"].isna().all()
    assert theirs["n_runs"].isna().all()


def test_rows_of_one_model_can_be_chosen(own: pd.DataFrame) -> None:
    paper = published.table(6)
    both = published.beside(own, paper[paper["model"] == "GPT-5.4-mini"])
    assert len(both) == len(own) + 5


@pytest.mark.parametrize("wrong", ["twice", "no metrics", "rows of ours"])
def test_what_cannot_stand_beside_is_refused(own: pd.DataFrame, wrong: str) -> None:
    summary = published.beside(own, 1) if wrong == "twice" else own
    summary = own[["memory", "simulated", "n_runs"]] if wrong == "no metrics" else summary
    with pytest.raises(InvalidInputError, match=r"metrics\.summarize|published\.table"):
        published.beside(summary, published.beside(own, 1) if wrong == "rows of ours" else 1)
