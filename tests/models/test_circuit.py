"""What stops everything: a dead key, a dead endpoint, an empty account."""

from typing import Any

import openai
import pytest


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_stops_everything_at_once(make: Any, upstream: Any, code: int, faults: Any) -> None:
    gateway = make()
    upstream.faults = [faults.status(code)]
    for _ in range(2):
        with pytest.raises(openai.APIStatusError, match=rf"refuses the key \({code}\).*TEST_KEY is right"):
            gateway.ask()
    assert len(upstream.requests) == 1
    assert "refuses the key" in str(gateway.trouble("run-1"))
    gateway.reset()
    assert gateway.ask().choices


def test_a_dead_endpoint_stops_everything_after_a_few_calls(make: Any, upstream: Any, limits: Any) -> None:
    gateway = make(limits=limits.model_copy(update={"circuit_failures": 2, "retries": 0}))
    gateway.url(run="r", role="agent")
    upstream.close()
    for _ in range(3):
        with pytest.raises(openai.APIStatusError):
            gateway.ask()
    assert "no connection to it" in str(gateway.trouble("run-1"))


def test_a_missing_key_is_said_before_anything_is_sent(
    make: Any, upstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = make()
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(openai.APIStatusError, match="has no key: set TEST_KEY"):
        gateway.ask()
    assert upstream.requests == []


def test_an_empty_account_stops_everything_at_once(make: Any, upstream: Any, faults: Any) -> None:
    gateway = make()
    empty = b'{"error": {"message": "no money", "code": "insufficient_quota"}}'
    upstream.faults = [faults.body(empty, status=429)]
    with pytest.raises(openai.APIStatusError, match="no money"):
        gateway.ask()
    assert len(upstream.requests) == 1
    assert "no money" in str(gateway.trouble("run-1"))
