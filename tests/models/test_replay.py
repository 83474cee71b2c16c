"""Answers that are recorded and replayed through the gateway."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from memorydojo.models.cache import ResponseStore


def test_a_recorded_run_is_replayed_without_a_call(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    said = iter(range(100))
    upstream.chat = lambda _: {"role": "assistant", "content": str(next(said))}
    first = make(store=store)
    answers = [first.ask().choices[0].message.content for _ in range(3)]
    counted = first.counts("run-1")
    upstream.close()
    again = make(store=store, replay="only")
    assert [again.ask().choices[0].message.content for _ in range(3)] == answers == ["0", "1", "2"]
    tokens = [(c.calls, c.input_tokens, c.output_tokens) for c in again.counts("run-1")]
    assert tokens == [(c.calls, c.input_tokens, c.output_tokens) for c in counted]
    assert again.counts("run-1")[0].replayed == 3
    again.begin("run-1")
    assert again.ask().choices[0].message.content == "0"


def test_a_recorded_stream_is_replayed_to_the_byte(make: Any, upstream: Any, tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    store = tmp_path / "answers.sqlite"
    assert make(store=store).raw(json=body).content == make(store=store, replay="only").raw(json=body).content
    assert len(upstream.requests) == 1


def test_a_request_that_is_not_recorded_is_an_error_in_a_pure_replay(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    make(store=store).ask(temperature=0.5)
    gateway = make(store=store, replay="only")
    with pytest.raises(openai.ConflictError, match="is not among the 1 recorded answers of this run"):
        gateway.ask()
    assert len(upstream.requests) == 1
    assert "not among the 1 recorded" in str(gateway.trouble("run-1"))
    assert gateway.trouble("run-2") is None


def test_a_pure_replay_from_a_store_without_answers_of_the_run_says_so(
    make: Any, upstream: Any, tmp_path: Path
) -> None:
    gateway = make(store=tmp_path / "answers.sqlite", replay="only")
    with pytest.raises(openai.ConflictError, match=r"answers\.sqlite holds no answers of this run\. Give the file"):
        gateway.ask()
    assert upstream.requests == []


def test_preferring_the_store_asks_only_for_what_is_missing(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    make(store=store).ask()
    gateway = make(store=store, replay="prefer")
    gateway.ask()
    gateway.ask(temperature=1.0)
    gateway.ask(run="run-2")
    assert len(upstream.requests) == 3


def test_parallel_runs_and_writers_lose_nothing(make: Any, upstream: Any, tmp_path: Path) -> None:
    store = tmp_path / "answers.sqlite"
    gateways = [make(store=store), make(store=store)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: gateways[n % 2].ask(run=f"run-{n}"), range(64)))
    assert len(upstream.requests) == 64
    found = ResponseStore(store)
    assert sum(found.count(f"run-{n}") for n in range(64)) == 64
    found.close()
