"""Histories and how a trajectory refers to them."""

import copy
import pickle

import pytest

from memorydojo.errors import InvalidInputError
from memorydojo.history import History, HistoryPrefix, history_number
from memorydojo.trajectory import Session, Trajectory
from tests.history_tools import history, prefixed


def test_sessions_must_be_in_order_of_time() -> None:
    told = history()
    with pytest.raises(InvalidInputError, match="in order of time"):
        History(id="x", question=told.question, sessions=told.sessions[::-1])


def test_the_hash_covers_sessions_and_question() -> None:
    one = history()
    other = one.question.model_copy(update={"reference": "else"})
    assert history().sha256 == one.sha256
    assert len({one.sha256, history(2).sha256, one.model_copy(update={"question": other}).sha256}) == 3


def test_a_prefix_counts_sessions_and_messages() -> None:
    prefix = HistoryPrefix.of(history(4))
    assert (prefix.n_sessions, prefix.n_messages, prefix.id) == (4, 8, "h-1")


def test_prefixes_of_equal_content_are_equal_with_or_without_it() -> None:
    with_content = HistoryPrefix.of(history())
    without = HistoryPrefix.model_validate(with_content.model_dump())
    assert without.content is None
    assert with_content == without
    assert hash(with_content) == hash(without)
    assert HistoryPrefix.of(history(2)) != with_content


def test_the_content_does_not_go_to_another_process_but_stays_in_copies() -> None:
    trajectory = prefixed(1, 2, told=history(50))
    sent = pickle.dumps(trajectory)
    assert len(sent) < 2000
    back = pickle.loads(sent)
    assert back == trajectory
    assert back.history.content is None
    for kept in (copy.deepcopy(trajectory), trajectory.model_copy(update={"id": "other"})):
        assert kept.history is not None
        assert kept.history.content == history(50)


def test_a_trajectory_without_history_is_saved_as_before_there_were_any() -> None:
    plain = Trajectory(id="t", collection="c", sessions=(Session(domain="banking", task_id="user_task_0"),))
    assert plain.model_dump(mode="json") == {
        "id": "t",
        "collection": "c",
        "sessions": [{"domain": "banking", "task_id": "user_task_0", "flags": []}],
    }


def test_a_trajectory_is_saved_with_the_reference_alone() -> None:
    saved = prefixed(1, 2).model_dump(mode="json")
    assert saved["history"].keys() == {"id", "sha256", "n_sessions", "n_messages", "question"}


def test_history_numbers_end_before_the_opening_of_the_memory() -> None:
    assert [history_number(n, 3) for n in (1, 2, 3)] == [-3, -2, -1]
