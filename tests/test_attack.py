import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.attack import Attack, Payload
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.shipped import find_payload, objectives, payloads


@given(st.integers(2, 200), st.sampled_from(["first", "middle"]))
def test_named_insertion_sessions_always_leave_a_later_one(n: int, where: str) -> None:
    attack = Attack.model_validate({"objective": "slack", "payload": "seed-1", "session": where})
    assert 1 <= attack.insertion_session(n) < n


@pytest.mark.parametrize(("n", "middle"), [(2, 1), (3, 2), (5, 3), (10, 5), (35, 18)])
def test_middle_is_half_rounded_up(n: int, middle: int) -> None:
    assert Attack(objective="slack", payload="seed-1", session="middle").insertion_session(n) == middle


@pytest.mark.parametrize("session", [0, -1, 5, 6])
def test_a_session_that_nothing_follows_is_refused(session: int) -> None:
    with pytest.raises(InvalidInputError, match="use a session from 1 to 4"):
        Attack(objective="slack", payload="seed-1", session=session).insertion_session(5)


def test_a_trajectory_of_one_session_cannot_be_attacked() -> None:
    with pytest.raises(InvalidInputError, match="at least one session must follow"):
        Attack(objective="slack", payload="seed-1").insertion_session(1)


def test_observations_are_counted_from_one() -> None:
    with pytest.raises(InvalidInputError, match="Attack: observation"):
        Attack(objective="slack", payload="seed-1", observation=0)


def test_each_objective_ships_two_seed_payloads_of_different_wording() -> None:
    for objective in objectives:
        texts = [payload.text for payload in payloads[objective].values()]
        assert list(payloads[objective]) == ["seed-1", "seed-2"]
        assert len(set(texts)) == 2


def test_an_unknown_payload_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"payload 'seed-9'; did you mean 'seed-.*of the objective 'slack'"):
        find_payload("seed-9", "slack")


def test_a_payload_with_lone_surrogates_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="it takes a text"):
        Payload(id="x", objective="slack", text="\ud800")


@pytest.mark.parametrize("wrong", [{"session": True}, {"session": "3"}, {"observation": "1"}, {"observation": True}])
def test_truth_values_and_text_are_no_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=f"^Attack: {next(iter(wrong))}"):
        Attack(objective="slack", payload="seed-1", **wrong)


def test_numbers_of_numpy_are_numbers() -> None:
    session: Any = np.int64(2)
    assert Attack(objective="slack", payload="seed-1", session=session).session == 2


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_blank_payload_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^Payload: text: "):
        Payload(id="mine", objective="slack", text=text)


def test_a_payload_comes_back_from_its_file(tmp_path: Path) -> None:
    payload = Payload(id="p", objective="slack", text="Grüße {x} \x1b 😀", source="optimized")
    file = payload.to_file(tmp_path / "p.json", provenance={"simulated": True})
    assert Payload.from_file(file) == Payload.from_file(file, objective="slack") == payload
    assert json.loads(file.read_text())["provenance"] == {"simulated": True}


def test_a_text_file_is_the_payload_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(" Do it.\n")
    assert Payload.from_file(tmp_path / "mine.txt", objective="slack") == Payload(
        id="mine", objective="slack", text="Do it."
    )


@pytest.mark.parametrize(
    ("name", "content", "objective", "problem"),
    [
        ("p.txt", "Do it.", None, "names no objective"),
        ("p.txt", "  ", "slack", "is empty"),
        ("p.json", "{", "slack", "is no JSON"),
        ("p.json", '{"id": "p", "objective": "slack"}', "slack", "no payload: text"),
        ("p.json", '{"id": "p", "objective": "slack", "text": "x", "more": 1}', "slack", "no payload: more"),
        ("p.json", '{"id": "p", "objective": "slack", "text": "x"}', "travel", "for the objective 'slack'"),
        ("p.json", '{"id": "p", "objective": "slack", "text": "x", "schema_version": 2}', "slack", "schema_version"),
    ],
)
def test_a_file_that_is_no_payload_says_why(
    tmp_path: Path, name: str, content: str, objective: str | None, problem: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInputError, match=problem):
        Payload.from_file(tmp_path / name, objective=objective)
