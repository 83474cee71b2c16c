"""The histories that ship, the paper's selection, and trajectories with histories in files."""

import random
from collections import Counter
from pathlib import Path

import pytest

from memorydojo.errors import InvalidInputError
from memorydojo.history import QUESTION_TYPES, History
from memorydojo.trajectories import Collection, load, load_file, pair, select
from memorydojo.trajectories.histories import WANTED, shipped
from tests.history_tools import history


def many(seed: int = 1) -> list[History]:
    """Seven of each type, of 36 to 64 sessions, and one abstention."""
    sizes = random.Random(seed)
    found = [
        history(sizes.randint(38, 62), id=f"{type_}-{n}", type=type_) for type_ in QUESTION_TYPES for n in range(7)
    ]
    found += [history(37, id="short"), history(63, id="long"), history(50, id="x_abs")]
    sizes.shuffle(found)
    return found


def test_a_history_of_every_type_ships_and_one_without_an_answer() -> None:
    assert {h.question.type for h in shipped()} == set(QUESTION_TYPES)
    assert any(h.question.abstention for h in shipped())


def test_every_shipped_history_has_at_least_twelve_sessions() -> None:
    assert min(len(h.sessions) for h in shipped()) >= 12


def test_every_shipped_history_marks_the_sessions_that_hold_the_answer() -> None:
    for found in shipped():
        needed = 2 if found.question.type in ("multi-session", "temporal-reasoning", "knowledge-update") else 1
        assert len(found.evidence) >= needed, found.id


@pytest.mark.parametrize(
    "words", [("dojo-user-1", "Kiln and Clover"), ("dojo-update-1", "Friday"), ("dojo-update-2", "7")]
)
def test_the_answer_stands_in_the_evidence(words: tuple[str, str]) -> None:
    found = next(h for h in shipped() if h.id == words[0])
    told = [t.text for s in found.sessions if s.id in found.evidence for t in s.turns]
    assert any(words[1] in text for text in told)
    others = [t.text for s in found.sessions if s.id not in found.evidence for t in s.turns]
    assert not any(words[1] in text for text in others if len(words[1]) > 1)


def test_the_question_comes_after_the_history() -> None:
    for found in shipped():
        assert found.question.asked is not None
        assert found.question.asked > found.sessions[-1].time


def test_history_prefixed_puts_each_shipped_history_before_a_cross_domain_trajectory() -> None:
    collection, cross = load("history-prefixed"), load("cross-domain")
    assert collection.name == "history-prefixed"
    assert {h.id for h in collection.histories} == {h.id for h in shipped()}
    for trajectory in collection:
        assert trajectory.history is not None
        task, _, told = trajectory.id.partition("+")
        assert trajectory.sessions == cross[task].sessions
        assert told == trajectory.history.id
    assert len({t.id.partition("+")[0] for t in collection}) == len(collection)
    assert load("history-prefixed") == collection


def test_the_selection_has_the_papers_counts() -> None:
    chosen = select(many())
    assert Counter(h.question.type for h in chosen) == WANTED
    assert sum(WANTED.values()) == 31
    assert all(38 <= len(h.sessions) <= 62 and not h.question.abstention for h in chosen)


def test_the_selection_does_not_depend_on_the_order_of_the_file() -> None:
    histories = many()
    assert select(histories) == select(histories[::-1])


def test_another_seed_selects_others() -> None:
    assert select(many(), seed=0) != select(many(), seed=1)


def test_too_few_histories_are_an_error_with_the_counts() -> None:
    with pytest.raises(InvalidInputError, match=r"0 of 5 single-session-user.*--all"):
        select([history(40, type="multi-session")])


def test_types_take_turns_in_the_pairing() -> None:
    collection = pair(select(many()))
    types = [t.history.question.type for t in collection if t.history is not None]
    assert types[:6] == list(QUESTION_TYPES)
    assert types[30:] == ["multi-session"]
    assert [len(t) for t in collection] == [len(t) for t in load("cross-domain")]


def test_more_histories_than_trajectories_are_an_error() -> None:
    with pytest.raises(InvalidInputError, match="32 histories for 31 trajectories"):
        pair([history(2, id=str(n)) for n in range(32)])


def test_a_file_keeps_trajectories_and_histories(tmp_path: Path) -> None:
    collection = pair([history(2, id="a"), history(3, id="b")])
    collection.save(tmp_path / "mine.json")
    found = load_file(tmp_path / "mine.json")
    assert found == collection
    assert found.histories == collection.histories
    assert found.dumps() == collection.dumps()


def test_a_file_whose_trajectory_names_no_history_of_it_is_an_error(tmp_path: Path) -> None:
    collection = pair([history(2, id="a")])
    (tmp_path / "mine.json").write_text(collection.dumps().replace('"history": "a"', '"history": "b"'))
    with pytest.raises(InvalidInputError, match="field history: the file has no history 'b'"):
        load_file(tmp_path / "mine.json")


def test_a_file_with_a_broken_history_names_it(tmp_path: Path) -> None:
    text = pair([history(2, id="a")]).dumps().replace('"role": "assistant"', '"role": "oracle"')
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(InvalidInputError, match=r"history 1, field sessions\[1\]\.turns\[2\]\.role"):
        load_file(tmp_path / "mine.json")


def test_a_collection_without_histories_is_saved_in_the_first_version() -> None:
    assert '"schema_version": 1' in load("cross-domain").dumps()
    assert '"schema_version": 2' in load("history-prefixed").dumps()


def test_the_plan_of_a_saved_run_has_its_history_by_name_only() -> None:
    collection = pair([history(2, id="a")])
    assert collection[0].history is not None
    bare = collection[0].model_copy(
        update={"history": type(collection[0].history).model_validate(collection[0].history.model_dump())}
    )
    with pytest.raises(InvalidInputError, match="by name only"):
        Collection("c", (bare,)).dumps()
