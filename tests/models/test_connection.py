"""The way of a run's own clients to the gateway of their process: as over a socket, without one."""

import json
from typing import Any

import pytest

from memorydojo.errors import ModelError
from memorydojo.models.connection import Connection

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hi \u2603"}]}


def test_the_answer_is_the_one_that_a_client_on_the_socket_gets(make: Any, upstream: Any) -> None:
    gateway = make()
    connection = Connection(gateway, run="run-1", role="agent")
    assert connection.post("chat/completions", REQUEST) == json.loads(gateway.raw(json=REQUEST).content)
    assert upstream.requests[0]["body"] == upstream.requests[1]["body"]


def test_a_call_is_counted_by_run_session_and_role(make: Any) -> None:
    gateway = make()
    gateway.begin("a run")
    gateway.session("a run", 2)
    Connection(gateway, run="a run", role="memory").post("chat/completions", REQUEST)
    (count,) = gateway.counts("a run")
    assert (count.session, count.role, count.calls) == (2, "memory", 1)


def test_an_error_of_the_gateway_keeps_its_words_and_code(make: Any) -> None:
    connection = Connection(make(), run="run-1", role="agent")
    with pytest.raises(ModelError, match="unknown model 'n'") as caught:
        connection.post("chat/completions", {**REQUEST, "model": "n"})
    assert caught.value.code == "model_not_found"


def test_a_stream_is_no_json_object(make: Any) -> None:
    with pytest.raises(ModelError, match="could not be asked"):
        Connection(make(), run="run-1", role="agent").post("chat/completions", {**REQUEST, "stream": True})


def test_a_closed_gateway_is_told(make: Any) -> None:
    gateway = make()
    connection = Connection(gateway, run="run-1", role="agent")
    gateway.close()
    with pytest.raises(ModelError, match="the model gateway is closed"):
        connection.post("chat/completions", REQUEST)
