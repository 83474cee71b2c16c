"""What models were asked, and how: what the gateway counts, and what is saved with sessions and labels."""

from typing import Self

from memorydojo._base import Frozen
from memorydojo.models.config import Route


class ModelUse(Frozen):
    """How a run or a judge uses a model: everything that shapes its answers, and no key.

    Attributes:
        name: The name that the run uses.
        upstream: The name that the endpoint knows it by.
        host: Host and port of the endpoint, or ``"simulated"``.
        temperature: Sent where the caller gives none; None leaves it to the endpoint.
        reasoning_effort: Sent where the caller gives none.
        max_tokens: Sent where the caller gives none.
    """

    name: str
    upstream: str
    host: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, route: Route) -> Self:
        """The use of a model as it is declared."""
        model = route.model
        return cls(
            name=route.name,
            upstream=route.upstream,
            host=route.backend.host,
            temperature=model.temperature if route.capabilities.temperature else None,
            reasoning_effort=model.reasoning_effort,
            max_tokens=model.max_tokens,
        )


class Usage(Frozen):
    """What one role asked of one model in one session.

    A replayed call counts with the tokens of the recorded one. Simulated tokens are counted by a stated rule, not by a
    tokenizer.

    Attributes:
        role: ``"agent"``, ``"memory"`` or ``"judge"``.
        model: The model, by the name that the run uses.
        calls: Requests that were answered, replayed ones included.
        unmetered: Requests whose tokens nobody counted: the answer came without counts, or had not come when the
            session was saved. They add nothing to the counts of tokens.
        input_tokens: Tokens sent, cached ones included.
        cached_tokens: Of these, tokens that the endpoint had in its cache.
        output_tokens: Tokens received, reasoning included.
        reasoning_tokens: Of these, tokens of hidden reasoning.
        errors: Requests that ended with an error after all retries, or that nobody waited for. Tokens of failed
            attempts are not counted: endpoints do not report them.
    """

    role: str
    model: str
    calls: int = 0
    unmetered: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    errors: int = 0


class Waiting(Frozen):
    """What one role waited for one model in one session; not part of what a replay has to repeat.

    Attributes:
        role: ``"agent"``, ``"memory"`` or ``"judge"``.
        model: The model.
        seconds: Time from requests to answers, summed over calls that may overlap.
        retries: Attempts beyond the first of each request.
        replayed: Requests that were answered from a store.
    """

    role: str
    model: str
    seconds: float = 0.0
    retries: int = 0
    replayed: int = 0


class Count(Usage, Waiting):
    """Both for one session.

    Attributes:
        session: The session in which the requests began; 0 before the first.
    """

    session: int = 0

    @property
    def usage(self) -> Usage:
        """The part that a replay repeats."""
        return Usage.model_validate(self.model_dump(include=set(Usage.model_fields)))

    @property
    def waiting(self) -> Waiting:
        """The part that a replay does not repeat."""
        return Waiting.model_validate(self.model_dump(include=set(Waiting.model_fields)))
