"""What a model takes and gives: requests shaped by declared capabilities alone, and answers held to their form."""

from collections.abc import Mapping
from typing import Any

from memorydojo.models.config import Capabilities, Route

ENDPOINTS = ("chat/completions", "responses", "embeddings")
_NEEDED = {"chat/completions": "choices", "responses": "output", "embeddings": "data"}
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


def shape_problem(endpoint: str, request: Mapping[str, Any], answer: Any) -> str | None:
    """Why an answer cannot be used, or None if it can.

    Args:
        endpoint: One of `ENDPOINTS`.
        request: The request as it was sent.
        answer: The answer's JSON.
    """
    needed = answer.get(_NEEDED[endpoint]) if isinstance(answer, Mapping) else None
    if not isinstance(needed, list) or not all(isinstance(part, Mapping) for part in needed):
        return f"the answer has no {_NEEDED[endpoint]!r}"
    if endpoint == "chat/completions" and not (needed and isinstance(needed[0].get("message"), Mapping)):
        return "the answer has no message"
    if endpoint == "responses" and answer.get("status") in ("failed", "cancelled"):
        return f"the answer has the status {answer['status']!r}"
    if endpoint == "embeddings":
        return _embedding_problem(request.get("input"), needed)
    return None


def _embedding_problem(given: Any, rows: list[Mapping[str, Any]]) -> str | None:
    # A list of numbers is one text as tokens. A text without its vector, or with another's, would poison every search.
    one = not isinstance(given, list) or (given and all(isinstance(part, int) for part in given))
    wanted = 1 if one else len(given)
    if len(rows) != wanted:
        return f"the answer has {len(rows)} embeddings for {wanted} inputs"
    vectors = [row.get("embedding") for row in rows]
    if not all(vector and isinstance(vector, list | str) for vector in vectors):
        return "the answer has an input without its embedding"
    if len({(type(vector), len(vector)) for vector in vectors if vector is not None}) > 1:
        return "the answer has embeddings of different lengths"
    places = [row.get("index", place) for place, row in enumerate(rows)]
    if not all(isinstance(place, int) for place in places) or sorted(places) != list(range(wanted)):
        return "the answer does not say which embedding is whose"
    return None
