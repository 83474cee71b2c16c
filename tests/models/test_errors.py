"""Errors of the gateway's own: each is counted, has OpenAI's form, and is not asked again by a client."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memorydojo.models.cache import ResponseStore

DEEP = "[" * 100_000 + "]" * 100_000


def check_form(answer: httpx.Response, status: int, code: str) -> str:
    assert answer.status_code == status
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "param"}
    assert error["code"] == code
    return str(error["message"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f'{{"model": "m", "messages": {DEEP}}}', "the request is nested too deeply"),
        ("{", "the request is no JSON"),
        ("[]", "the request is no JSON object"),
    ],
)
def test_a_request_that_cannot_be_read_is_a_counted_error(make: Any, content: str, message: str) -> None:
    gateway = make()
    assert check_form(gateway.raw(content=content), 400, "bad_request") == message
    (count,) = gateway.counts("run-1")
    assert (count.model, count.calls, count.errors) == ("unknown", 0, 1)


@pytest.mark.parametrize(
    ("path", "model", "code"), [("completions", "m", "unknown_endpoint"), ("embeddings", "mm", "model_not_found")]
)
def test_a_request_for_what_there_is_not_is_a_counted_error(make: Any, path: str, model: str, code: str) -> None:
    gateway = make()
    check_form(gateway.raw(path, json={"model": model, "input": "x"}), 404, code)
    assert [count.errors for count in gateway.counts("run-1")] == [1]


def test_a_stranger_counts_for_nobody(make: Any) -> None:
    gateway = make()
    check_form(gateway.raw(secret="wrong", json={}), 401, "wrong_secret")
    assert gateway.counts("run-1") == []


def test_an_error_that_nobody_foresaw_is_a_counted_error_that_names_its_place(make: Any) -> None:
    gateway = make()
    gateway.register("run-1", chat=lambda _: dict[str, Any]()["x"], embed=lambda _: [])
    answer = gateway.raw(json={"model": "simulated", "messages": []})
    message = check_form(answer, 500, "gateway")
    assert message == (
        f"the model gateway met an error that it does not foresee (KeyError: 'x'; {Path(__file__).name}, "
        f"line {test_an_error_that_nobody_foresaw_is_a_counted_error_that_names_its_place.__code__.co_firstlineno + 2})"
        ". Please report it"
    )
    (count,) = gateway.counts("run-1")
    assert (count.model, count.calls, count.errors) == ("simulated", 0, 1)


def test_an_answer_that_is_nested_too_deeply_is_retried_as_malformed(make: Any, upstream: Any, faults: Any) -> None:
    gateway = make()
    upstream.faults = [faults.body(f'{{"choices": {DEEP}}}'.encode())] * 3
    with pytest.raises(openai.APIStatusError, match="the answer is no whole JSON, after 3 attempts"):
        gateway.ask()
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors, count.retries) == (0, 1, 2)


def test_an_error_message_that_is_nested_too_deeply_is_still_an_error(make: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [faults.body(f'{{"error": {DEEP}}}'.encode(), status=400)]
    with pytest.raises(openai.BadRequestError, match="refuses the request"):
        make().ask()


def test_an_error_that_comes_as_an_answer_is_shown(make: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [faults.body(b'{"error": {"message": "provider is busy", "code": 502}}')] * 3
    with pytest.raises(openai.APIStatusError, match="the answer is an error: provider is busy, after 3 attempts"):
        make().ask()


def test_a_key_that_no_header_can_carry_stops_everything(
    make: Any, upstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = make()
    monkeypatch.setenv("TEST_KEY", "sk-\u00e4-0123456789abcdef")
    with pytest.raises(openai.APIStatusError, match="the key in TEST_KEY holds characters that no key has"):
        gateway.ask()
    assert "the key in TEST_KEY" in str(gateway.trouble("run-1"))
    assert gateway.counts("run-1")[0].errors == 1
    assert upstream.requests == []


# The store of answers.


def fill_up(gateway: Any) -> None:
    """Leaves the store no room, as a full disk does."""
    database = gateway._store._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")


def make_room(gateway: Any) -> None:
    gateway._store._database.execute("PRAGMA max_page_count = 1000000")


LONG = "x" * 100_000


def test_a_store_without_room_stops_everything_and_says_what_to_do(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    gateway = make(store=store)
    upstream.chat = lambda _: {"role": "assistant", "content": LONG}
    gateway.ask()
    fill_up(gateway)
    for _ in range(2):
        with pytest.raises(openai.APIStatusError, match=r"answers\.sqlite: database or disk is full\. Make room"):
            gateway.ask()
    assert len(upstream.requests) == 2
    assert f"cannot write the recorded answers in {store}" in str(gateway.trouble("run-1"))
    assert "start again" in str(gateway.trouble("another run"))
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors) == (1, 2)
    make_room(gateway)
    gateway.reset()
    assert gateway.trouble("run-1") is None
    assert gateway.ask().choices[0].message.content == LONG


def test_a_stream_that_cannot_be_recorded_has_no_end(make: Any, upstream: Any, tmp_path: Path) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    upstream.chat = lambda _: {"role": "assistant", "content": LONG}
    gateway.ask_stream()
    fill_up(gateway)
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        gateway.ask_stream()
    assert "database or disk is full" in str(gateway.trouble("run-1"))
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.errors) == (1, 1)
    with closing(ResponseStore(tmp_path / "answers.sqlite")) as store:
        assert store.count("run-1") == 1


def test_a_store_that_cannot_be_read_stops_a_replay(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    make(store=store).ask()
    with closing(ResponseStore(store)) as damaged:
        damaged._database.execute("UPDATE answers SET usage = '{'")
    gateway = make(store=store, replay="only")
    with pytest.raises(openai.APIStatusError, match=r"cannot read the recorded answers in .*answers\.sqlite"):
        gateway.ask()
    assert "see that the file is whole" in str(gateway.trouble("run-1"))
    assert gateway.counts("run-1")[0].errors == 1


def test_simulated_models_do_not_need_the_store(make: Any, tmp_path: Path) -> None:
    gateway = make(store=tmp_path / "answers.sqlite")
    gateway.register("run-1", chat=lambda _: {"role": "assistant", "content": "yes"}, embed=lambda _: [])
    gateway._store.close()
    with pytest.raises(openai.APIStatusError):
        gateway.ask()
    assert json.loads(gateway.raw(json={"model": "simulated", "messages": []}).content)["choices"]
