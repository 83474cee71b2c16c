"""Reading files in LongMemEval's form."""

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import InvalidInputError
from memorydojo.history import History
from memorydojo.trajectories import HistoryFile
from tests.history_tools import instance

Write = Callable[..., HistoryFile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(*instances: Any, text: str | None = None) -> HistoryFile:
        path = tmp_path / "lme.json"
        path.write_text(json.dumps(list(instances)) if text is None else text, encoding="utf-8")
        return HistoryFile(path)

    return written


def only(file: HistoryFile) -> History:
    (found,) = file
    return found


def test_an_instance_becomes_a_history(write: Write) -> None:
    found = only(write(instance()))
    assert found.id == "q1"
    assert found.question.type == "single-session-user"
    assert found.question.reference == "Oslo"
    assert found.question.asked == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert [(s.id, s.time) for s in found.sessions] == [
        ("a_1", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("b_2", datetime(2023, 5, 21, 10, 0, tzinfo=UTC)),
    ]
    assert [(t.role, t.text) for t in found.sessions[0].turns] == [("user", "I live in Oslo."), ("assistant", "Ah.")]
    assert found.evidence == ("a_1",)


def test_a_number_as_answer_stays_one(write: Write) -> None:
    assert only(write(instance(answer=7))).question.reference == 7


def test_sessions_are_sorted_by_date_together_with_their_ids(write: Write) -> None:
    file = write(instance(haystack_dates=["2023/05/22 (Mon) 02:21", "2023/05/21 (Sun) 10:00"]))
    assert [s.id for s in only(file).sessions] == ["b_2", "a_1"]
    assert file.notes["histories sorted by date"] == 1


def test_sessions_of_one_minute_keep_their_order(write: Write) -> None:
    file = write(instance(haystack_dates=["2023/05/21 (Sun) 10:00"] * 2))
    assert [s.id for s in only(file).sessions] == ["a_1", "b_2"]


def test_empty_sessions_are_left_out_and_counted(write: Write) -> None:
    sessions = instance()["haystack_sessions"]
    file = write(instance(haystack_sessions=[sessions[0], []]))
    assert [s.id for s in only(file).sessions] == ["a_1"]
    assert file.notes["empty sessions"] == 1


def test_odd_turns_stay_as_they_are(write: Write) -> None:
    odd = [{"role": "assistant", "content": "Well."}, {"role": "assistant", "content": ""}]
    found = only(write(instance(haystack_sessions=[odd, [{"role": "user", "content": "x", "has_answer": None}]])))
    assert [(t.role, t.text) for t in found.sessions[0].turns] == [("assistant", "Well."), ("assistant", "")]


def test_further_fields_are_passed_over(write: Write) -> None:
    assert only(write(instance(more={"a": 1}))).id == "q1"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"question_type": "odd"}, r"instance 2 \('q1'\), field question_type: 'odd' is none of"),
        ({"answer": True}, "field answer: it must be a text or a whole number"),
        ({"answer": None}, "field answer"),
        ({"question": " "}, "field question: it must be a text"),
        ({"question_date": "yesterday"}, "field question_date: it must be a date such as"),
        ({"haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/02/30 (Thu) 02:21"]}, r"field haystack_dates\[2\]"),
        ({"haystack_dates": ["2023/05/20 (Sat) 02:21"]}, "must be of one length, not 2, 1 and 2"),
        ({"haystack_session_ids": ["a", 3]}, r"field haystack_session_ids\[2\]: it must be a text, not 3"),
        ({"haystack_sessions": [[], []]}, "field haystack_sessions: every session is empty"),
        ({"haystack_sessions": [["x"], []]}, r"field haystack_sessions\[1\]\[1\]: it must be an object"),
        ({"haystack_sessions": [[], [{"role": "system", "content": "x"}]]}, r"sessions\[2\]\[1\]\.role"),
        ({"haystack_sessions": [[], [{"role": "user", "content": 3}]]}, r"sessions\[2\]\[1\]\.content"),
        ({"haystack_sessions": [[], [{"role": "user", "content": "x", "has_answer": "no"}]]}, r"\.has_answer"),
    ],
)
def test_a_broken_field_is_named_with_its_instance(write: Write, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        list(write(instance(), instance(**fields)))


def test_a_missing_field_is_named(write: Write) -> None:
    broken = instance()
    del broken["question"]
    with pytest.raises(InvalidInputError, match=r"instance 1 \('q1'\), field question: it is missing"):
        list(write(broken))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a JSON array"),
        ('{"a": 1}', "must be a JSON array"),
        ("[1]", "instance 1 is not valid JSON: it must be a JSON object"),
        ('[{"a": 1 "b"}]', "instance 1 is not valid JSON: Expecting ',' delimiter"),
        ('[{"a": "x', "the file ends in the middle of it"),
        ("[", "the file ends in the middle of it"),
        (json.dumps([instance()])[:-1], "instance 2 is not valid JSON: the file ends"),
        (json.dumps([instance()])[:-1] + " {}]", "instance 2 is not valid JSON: a comma"),
        ("[" + '{"a":' * 100_000, "instance 1"),
    ],
)
def test_a_file_that_is_none_is_an_error(write: Write, text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        list(write(text=text))


def test_an_empty_array_has_no_histories(write: Write) -> None:
    assert list(write(text=" [ ] ")) == []


def test_a_missing_file_says_how_to_obtain_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no file.*MIT licence.*curl -L -o"):
        list(HistoryFile(tmp_path / "none.json"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_the_file_can_be_read_in_pieces_of_any_size(write: Write, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    two = [instance(), instance(question_id="q2", question='Say "é", \\ and \U0001f600?', answer=3)]
    text = json.dumps(two, ensure_ascii=False, indent=1)
    whole = list(write(text=text))
    monkeypatch.setattr("memorydojo.trajectories.longmemeval._CHUNK", size)
    assert list(write(text=text)) == whole
    assert whole[1].question.text == 'Say "é", \\ and \U0001f600?'


def test_a_byte_order_mark_is_no_part_of_the_file(write: Write) -> None:
    assert only(write(text="\ufeff" + json.dumps([instance()]))).id == "q1"


def test_a_second_pass_reads_the_file_again(write: Write) -> None:
    file = write(instance())
    assert list(file) == list(file)
    assert file.notes["instances"] == 1


@pytest.mark.slow
def test_memory_stays_bounded_however_large_the_file(tmp_path: Path) -> None:
    """The S file has 500 instances of about 550 KB; here are 100 of them."""
    said = [{"role": "user", "content": "word " * 2200}]
    one = instance(
        haystack_sessions=[said] * 50,
        haystack_session_ids=[f"s{n}" for n in range(50)],
        haystack_dates=["2023/05/20 (Sat) 02:21"] * 50,
    )
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write("[" + ",".join(json.dumps({**one, "question_id": f"q{n}"}) for n in range(100)) + "]")
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        found = sum(1 for _ in HistoryFile(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == 100
    assert peak < 16_000_000
