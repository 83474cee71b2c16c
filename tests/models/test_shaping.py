"""What is sent: declared capabilities, never found by trial."""

from typing import Any

from memorydojo.models.config import Capabilities

MESSAGES: list[Any] = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]


def sent(upstream: Any) -> dict[str, Any]:
    body: dict[str, Any] = upstream.requests[-1]["body"]
    return body


def test_temperature_zero_is_really_sent(make: Any, upstream: Any) -> None:
    make().ask()
    assert sent(upstream)["temperature"] == 0.0
    make().ask(temperature=0.1)
    assert sent(upstream)["temperature"] == 0.1


def test_a_model_that_refuses_parameters_is_not_sent_them(make: Any, upstream: Any) -> None:
    able = Capabilities(
        temperature=False, max_tokens="max_completion_tokens", system_role="developer", logprobs=False,
        parallel_tool_calls=False,
    )  # fmt: skip
    make(capabilities=able).ask(temperature=0.0, max_tokens=50, logprobs=True)
    body = sent(upstream)
    assert not {"temperature", "max_tokens", "logprobs", "parallel_tool_calls"} & set(body)
    assert body["max_completion_tokens"] == 50
    assert [m["role"] for m in body["messages"]] == ["developer", "user"]


def test_a_developer_message_becomes_a_system_message_where_that_is_the_role(make: Any, upstream: Any) -> None:
    make().ask(messages=[{"role": "developer", "content": "x"}, MESSAGES[1]])
    assert [m["role"] for m in sent(upstream)["messages"]] == ["system", "user"]


def test_reasoning_effort_is_sent_where_declared(make: Any, upstream: Any) -> None:
    make(capabilities=Capabilities(reasoning_effort=True), model={"reasoning_effort": "medium"}).ask()
    assert sent(upstream)["reasoning_effort"] == "medium"
    make().ask(reasoning_effort="high")
    assert "reasoning_effort" not in sent(upstream)


def test_the_upstream_name_of_a_model_is_sent(make: Any, upstream: Any) -> None:
    make(model={"upstream": "vendor/model-7"}).ask()
    assert sent(upstream)["model"] == "vendor/model-7"
