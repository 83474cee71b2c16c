"""Turns a caller's request into one that the model takes, by declared capabilities alone."""

from collections.abc import Mapping
from typing import Any

from memorydojo.models.config import Capabilities, Route

_SYSTEM_ROLES = ("system", "developer")
_LIMITS = ("max_completion_tokens", "max_tokens")


def shape(endpoint: str, request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """The request as it is sent upstream.

    Parameters that the model is declared not to take are left out or renamed, roles are mapped, and the model's own
    temperature, effort and limit are filled in where the caller gave none. Nothing else changes.

    Args:
        endpoint: ``"chat/completions"``, ``"responses"`` or ``"embeddings"``.
        request: The caller's request.
        route: The model and what it takes.
    """
    body = {**request, "model": route.upstream}
    if endpoint == "chat/completions":
        _chat(body, route)
    elif endpoint == "responses":
        _responses(body, route)
    for name in route.capabilities.refused:
        body.pop(name, None)
    return body


def _chat(body: dict[str, Any], route: Route) -> None:
    able, model = route.capabilities, route.model
    limits = [body.pop(name, None) for name in _LIMITS]
    limit = next((given for given in [*limits, model.max_tokens] if given is not None), None)
    if limit is not None and able.max_tokens is not None:
        body[able.max_tokens] = limit
    _fill(body, "temperature", model.temperature)
    _fill(body, "reasoning_effort", model.reasoning_effort)
    if not able.reasoning_effort:
        body.pop("reasoning_effort", None)
    if not able.logprobs:
        body.pop("logprobs", None)
        body.pop("top_logprobs", None)
    form = body.get("response_format")
    if not able.json_schema and isinstance(form, Mapping) and form.get("type") == "json_schema":
        body["response_format"] = {"type": "json_object"}
    if isinstance(body.get("messages"), list):
        body["messages"] = _roles(body["messages"], able)
    _common(body, able)
    if body.get("stream") is True and able.stream_usage:
        options = body.get("stream_options")
        body["stream_options"] = {**(options if isinstance(options, Mapping) else {}), "include_usage": True}
    elif not able.stream_usage:
        body.pop("stream_options", None)


def _responses(body: dict[str, Any], route: Route) -> None:
    able, model = route.capabilities, route.model
    _fill(body, "max_output_tokens", model.max_tokens)
    _fill(body, "temperature", model.temperature)
    if model.reasoning_effort is not None:
        given = body.get("reasoning")
        body["reasoning"] = {"effort": model.reasoning_effort, **(given if isinstance(given, Mapping) else {})}
    if not able.reasoning_effort:
        body.pop("reasoning", None)
    if not able.logprobs:
        body.pop("top_logprobs", None)
    text = body.get("text")
    form = text.get("format") if isinstance(text, Mapping) else None
    if not able.json_schema and isinstance(form, Mapping) and form.get("type") == "json_schema":
        body["text"] = {**body["text"], "format": {"type": "json_object"}}
    if isinstance(body.get("input"), list):
        body["input"] = _roles(body["input"], able)
    _common(body, able)


def _common(body: dict[str, Any], able: Capabilities) -> None:
    if not able.temperature:
        body.pop("temperature", None)
    if not able.parallel_tool_calls:
        body.pop("parallel_tool_calls", None)


def _fill(body: dict[str, Any], name: str, value: Any) -> None:
    if value is not None and body.get(name) is None:
        body[name] = value


def _roles(messages: list[Any], able: Capabilities) -> list[Any]:
    return [
        {**m, "role": able.system_role} if isinstance(m, Mapping) and m.get("role") in _SYSTEM_ROLES else m
        for m in messages
    ]
