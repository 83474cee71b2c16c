import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.judging._fence import fence_of, fenced
from memorydojo.judging._prompts import OBJECTIVE, PAYLOAD


@given(st.text(), st.text())
def test_the_mark_is_in_no_text_and_the_same_for_equal_texts(payload: str, text: str) -> None:
    parts = {"PAYLOAD": payload, "TEXT": text}
    mark = fence_of("p", parts)
    assert mark not in payload
    assert mark not in text
    assert fence_of("p", dict(parts)) == mark


@pytest.mark.parametrize("change", ["prompt", "PAYLOAD", "TEXT"])
def test_the_mark_changes_with_everything_that_it_is_made_of(change: str) -> None:
    parts = {"PAYLOAD": "a", "TEXT": "b"}
    other = {**parts, **({change: "c"} if change in parts else {})}
    assert fence_of("p", parts) != fence_of("q" if change == "prompt" else "p", other)


def test_a_text_that_holds_the_mark_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a text cannot be found for a mark of this length; for one of one digit it can.
    monkeypatch.setattr("memorydojo.judging._fence._DIGITS", 1)
    for number in range(50):
        text = f"0123456789abcde{number}"  # all digits but one
        assert fence_of("p", {"TEXT": text}) not in text


def test_a_fence_stands_on_lines_of_its_own() -> None:
    assert fenced("m", "TEXT", "a\nb") == "<<<TEXT m\na\nb\nTEXT m>>>"


def test_lone_surrogates_are_replaced_before_a_text_is_sent() -> None:
    user = PAYLOAD.messages({"PAYLOAD": "p", "TEXT": "a\ud800b"})[1]["content"]
    assert "a\ufffdb" in user
    user.encode("utf-8")


def test_every_prompt_has_a_hash_of_its_own_that_covers_its_rules_and_form() -> None:
    assert PAYLOAD.sha256 != OBJECTIVE.sha256
    changed = type(PAYLOAD)(PAYLOAD.id, PAYLOAD.system + " ", PAYLOAD.form, PAYLOAD.quoted)
    assert changed.sha256 != PAYLOAD.sha256


def test_the_forms_are_strict_schemas() -> None:
    for prompt in (PAYLOAD, OBJECTIVE):
        schema = prompt.form.model_json_schema()
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        json.dumps(schema)
