"""Who asked what of which model: calls, tokens, seconds, retries and errors by run, session, role and model."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memorydojo.models.tokens import estimate_tokens
from memorydojo.models.usage import Count

#: The model of a request that ended before anybody could read which one it wants.
UNKNOWN = "unknown"
_MOST_TOKENS = 10**12


@dataclass(frozen=True)
class Tokens:
    """What one answer says it cost.

    Attributes:
        input: Tokens sent.
        cached: Of these, tokens that the endpoint had in its cache.
        output: Tokens received.
        reasoning: Of these, tokens of hidden reasoning.
        known: Whether the answer says so at all; if not, all numbers are 0.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    known: bool = True

    @classmethod
    def of(cls, usage: Any, endpoint: str, *, estimated: bool = False) -> "Tokens":
        """Reads the ``usage`` object of an answer of any of the endpoints.

        Some endpoints send none, or one full of zeros. No request of a real model has no token, so neither is believed.

        Args:
            usage: The object, whatever the endpoint sent in its place.
            endpoint: Which one; embeddings have no output.
            estimated: Whether the counts are the simulator's, where 0 means 0.
        """
        found = usage if isinstance(usage, Mapping) else {}
        given = _first(found, "prompt_tokens", "input_tokens")
        made = _first(found, "completion_tokens", "output_tokens")
        if made is None and endpoint == "embeddings":
            made = 0
        if given is None or made is None or (given == 0 and not estimated):
            return cls(known=False)
        cached = _nested(found, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
        reasoning = _nested(found, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
        return cls(input=given, cached=min(cached, given), output=made, reasoning=min(reasoning, made))

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output


def _first(usage: Mapping[str, Any], *names: str) -> int | None:
    return next((int(usage[name]) for name in names if _is_count(usage.get(name))), None)


def _nested(usage: Mapping[str, Any], parents: tuple[str, ...], name: str) -> int:
    return next((_first(usage[p], name) or 0 for p in parents if isinstance(usage.get(p), Mapping)), 0)


def _is_count(value: Any) -> bool:
    # JSON of endpoints may hold NaN, Infinity, true, and numbers that no table can.
    return type(value) in (int, float) and 0 <= value <= _MOST_TOKENS and value == int(value)


@dataclass
class _Account:
    """The counts of one attempt of a run."""

    session: int = 0
    counts: dict[tuple[int, str, str], Count] = field(default_factory=dict)
    open: "set[Ticket]" = field(default_factory=set)


@dataclass(eq=False)
class Ticket:
    """A request under way. It belongs to the session, and to the attempt of the run, in which it began.

    Attributes:
        role: Who asks.
        model: The model, once the request is read.
    """

    role: str
    account: _Account
    session: int
    model: str = UNKNOWN
    started: float = field(default_factory=time.perf_counter)


class Ledger:
    """Counts of all runs of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._accounts: dict[str, _Account] = {}

    def begin(self, run: str) -> None:
        """Forgets what an earlier attempt of a run has counted, and what of it is still under way."""
        with self._changed:
            self._accounts[run] = _Account()

    def end(self, run: str) -> None:
        """Forgets a run."""
        with self._changed:
            self._accounts.pop(run, None)

    def session(self, run: str, number: int) -> None:
        """Says which session of a run is under way."""
        with self._changed:
            self._account(run).session = number

    def open(self, run: str, role: str) -> Ticket:
        """Notes that a request has begun."""
        with self._changed:
            account = self._account(run)
            ticket = Ticket(role, account, account.session)
            account.open.add(ticket)
            return ticket

    def close(self, ticket: Ticket, tokens: Tokens | None, *, retries: int = 0, replayed: bool = False) -> None:
        """Counts a request that has ended, once; ``tokens`` is None for one that ended with an error."""
        with self._changed:
            if ticket in ticket.account.open:
                used = tokens or Tokens()
                self._add(
                    ticket,
                    calls=tokens is not None,
                    errors=tokens is None,
                    unmetered=not used.known,
                    input_tokens=used.input,
                    cached_tokens=used.cached,
                    output_tokens=used.output,
                    reasoning_tokens=used.reasoning,
                    retries=retries,
                    replayed=replayed,
                )

    def settle(self, run: str, session: int, *, seconds: float) -> None:
        """Waits for the requests of a session that are still under way, as when somebody did not wait for them.

        What is under way even after ``seconds`` is counted as an error whose tokens nobody knows.
        """
        with self._changed:
            account = self._account(run)

            def late() -> list[Ticket]:
                return [ticket for ticket in account.open if ticket.session == session]

            self._changed.wait_for(lambda: not late(), timeout=seconds)
            for ticket in late():
                self._add(ticket, errors=1, unmetered=1)

    def counts(self, run: str) -> list[Count]:
        """The counts of a run, by session, role and model."""
        with self._changed:
            found = list(self._account(run).counts.values())
        return sorted(found, key=lambda c: (c.session, c.role, c.model))

    def _account(self, run: str) -> _Account:
        return self._accounts.setdefault(run, _Account())

    def _add(self, ticket: Ticket, **more: int) -> None:
        account = ticket.account
        account.open.remove(ticket)
        key = (ticket.session, ticket.role, ticket.model)
        old = account.counts.get(key) or Count(session=ticket.session, role=ticket.role, model=ticket.model)
        seconds = old.seconds + time.perf_counter() - ticket.started
        sums = {name: getattr(old, name) + int(number) for name, number in more.items()}
        account.counts[key] = old.model_copy(update={**sums, "seconds": seconds})
        self._changed.notify_all()


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
