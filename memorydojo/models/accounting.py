"""Who asked what of which model: calls, tokens, seconds, retries and errors by run, session, role and model."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from memorydojo.models.tokens import estimate_tokens


@dataclass(frozen=True)
class Tokens:
    """What one answer says it cost."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @classmethod
    def of(cls, usage: Any) -> "Tokens":
        """Reads the ``usage`` object of an answer of any of the endpoints; what it lacks is 0."""
        if not isinstance(usage, Mapping):
            return cls()
        given = _first(usage, "prompt_tokens", "input_tokens")
        made = _first(usage, "completion_tokens", "output_tokens")
        cached = _nested(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
        reasoning = _nested(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
        return cls(input=given, cached=cached, output=made, reasoning=reasoning)

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output


def _first(usage: Mapping[str, Any], *names: str) -> int:
    return next((int(usage[n]) for n in names if isinstance(usage.get(n), int | float)), 0)


def _nested(usage: Mapping[str, Any], parents: tuple[str, ...], name: str) -> int:
    return next((_first(usage[p], name) for p in parents if isinstance(usage.get(p), Mapping)), 0)


@dataclass(frozen=True)
class Count:
    """Everything that one role asked of one model in one session.

    Attributes:
        session: The session; 0 before the first.
        role: Who asked.
        model: Which model, by the name that the run uses.
        calls: Requests that were answered, replayed ones included.
        input_tokens: Tokens sent, cached ones included.
        cached_tokens: Of these, tokens that the endpoint had in its cache.
        output_tokens: Tokens received, reasoning included.
        reasoning_tokens: Of these, tokens of hidden reasoning.
        errors: Requests that ended with an error.
        seconds: Time from request to answer, summed.
        retries: Attempts beyond the first.
        replayed: Requests that were answered from the store.
    """

    session: int
    role: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    errors: int = 0
    seconds: float = 0.0
    retries: int = 0
    replayed: int = 0


class Ledger:
    """Counts of all runs of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int, str, str], Count] = {}
        self._sessions: dict[str, int] = {}

    def begin(self, run: str) -> None:
        """Forgets what an earlier attempt of a run has counted."""
        with self._lock:
            self._sessions[run] = 0
            self._counts = {key: count for key, count in self._counts.items() if key[0] != run}

    def session(self, run: str, number: int) -> None:
        """Says which session of a run is under way."""
        with self._lock:
            self._sessions[run] = number

    def add(
        self,
        run: str,
        role: str,
        model: str,
        *,
        tokens: Tokens | None,
        seconds: float,
        retries: int = 0,
        replayed: bool = False,
    ) -> None:
        """Counts a request; ``tokens`` is None for one that ended with an error."""
        with self._lock:
            session = self._sessions.get(run, 0)
            key = (run, session, role, model)
            old = self._counts.get(key) or Count(session, role, model)
            used = tokens or Tokens()
            self._counts[key] = replace(
                old,
                calls=old.calls + (tokens is not None),
                errors=old.errors + (tokens is None),
                input_tokens=old.input_tokens + used.input,
                cached_tokens=old.cached_tokens + used.cached,
                output_tokens=old.output_tokens + used.output,
                reasoning_tokens=old.reasoning_tokens + used.reasoning,
                seconds=old.seconds + seconds,
                retries=old.retries + retries,
                replayed=old.replayed + replayed,
            )

    def counts(self, run: str) -> list[Count]:
        """The counts of a run, by session, role and model."""
        with self._lock:
            found = [count for key, count in self._counts.items() if key[0] == run]
        return sorted(found, key=lambda c: (c.session, c.role, c.model))


def simulated_usage(endpoint: str, request: Mapping[str, Any], answered: str) -> dict[str, int]:
    """The usage of a simulated answer: one token for every four characters of each text, rounded up."""
    if endpoint == "embeddings":
        given = request.get("input")
        texts = [given] if isinstance(given, str) else list(given or [])
        sent = sum(estimate_tokens(str(text)) for text in texts)
        return {"prompt_tokens": sent, "total_tokens": sent}
    sent = sum(estimate_tokens(_text(m.get("content"))) for m in request.get("messages") or [])
    made = estimate_tokens(answered)
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content or "", ensure_ascii=False)
