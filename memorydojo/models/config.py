"""Which models a run may call: names, endpoints, what each takes, and limits. Holds no key, so it can be saved."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from memorydojo._base import Frozen, problems
from memorydojo._display import plain
from memorydojo.errors import InvalidInputError, UnknownNameError

Kind = Literal["openai", "azure", "anthropic", "google", "vllm", "ollama", "compatible", "simulated"]

SIMULATED = "simulated"
SIMULATED_EMBEDDING = "all-MiniLM-L6-v2-onnx-int8"


class Capabilities(Frozen):
    """What a model takes. Declared, never found out by trial: a refused call would cost and count.

    Attributes:
        temperature: Whether ``temperature`` may be sent.
        max_tokens: Name of the parameter that limits a chat answer, or None if there is none.
        system_role: The role under which system and developer messages are sent.
        logprobs: Whether ``logprobs`` and ``top_logprobs`` may be sent.
        json_schema: Whether answers can be held to a JSON schema; if not, any JSON object is asked for instead.
        parallel_tool_calls: Whether the parameter ``parallel_tool_calls`` may be sent.
        reasoning_effort: Whether a reasoning effort may be sent.
        stream_usage: Whether streams report their usage when asked by ``stream_options``.
        refused: Further top-level parameters that must not be sent.
    """

    temperature: bool = True
    max_tokens: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    logprobs: bool = True
    json_schema: bool = True
    parallel_tool_calls: bool = True
    reasoning_effort: bool = False
    stream_usage: bool = True
    refused: tuple[str, ...] = ()

    def overridden(self, other: "Capabilities | None") -> "Capabilities":
        """These capabilities with those fields replaced that ``other`` was explicitly given."""
        if other is None:
            return self
        return self.model_copy(update={name: getattr(other, name) for name in other.model_fields_set})


class Limits(Frozen):
    """How hard an endpoint may be asked, and when to give up.

    Attributes:
        concurrency: Most requests under way at once.
        requests_per_minute: Most requests a minute, or None. They are spread evenly, but for a burst of three seconds'
            worth, at least one.
        tokens_per_minute: Most tokens a minute, or None; the same. Estimated before an attempt, set right after it.
        timeout_seconds: Longest duration of one attempt, its whole answer included.
        connect_seconds: Longest duration of connecting.
        retries: Most attempts after the first one.
        first_backoff_seconds: Wait before the first retry; it doubles with each further one.
        max_backoff_seconds: Longest such wait.
        max_retry_after_seconds: Longest wait that an endpoint may ask for; if it asks for more, the call fails.
        circuit_failures: After so many calls in a row without any answer (no connection, timeout, 5xx), retries
            included, the endpoint counts as dead.
    """

    concurrency: int = Field(default=32, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    timeout_seconds: float = Field(default=300.0, gt=0)
    connect_seconds: float = Field(default=10.0, gt=0)
    retries: int = Field(default=5, ge=0)
    first_backoff_seconds: float = Field(default=0.5, ge=0)
    max_backoff_seconds: float = Field(default=30.0, ge=0)
    max_retry_after_seconds: float = Field(default=120.0, ge=0)
    circuit_failures: int = Field(default=5, ge=1)


class Preset(Frozen):
    """What is usual for a kind of endpoint."""

    base_url: str | None = None
    key_env: str | None = None
    key_header: str = "Authorization"
    capabilities: Capabilities = Capabilities()


PRESETS: Mapping[Kind, Preset] = {
    "openai": Preset(
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        capabilities=Capabilities(max_tokens="max_completion_tokens"),
    ),
    "azure": Preset(
        key_env="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        capabilities=Capabilities(max_tokens="max_completion_tokens"),
    ),
    "anthropic": Preset(
        base_url="https://api.anthropic.com/v1",
        key_env="ANTHROPIC_API_KEY",
        capabilities=Capabilities(logprobs=False, json_schema=False),
    ),
    "google": Preset(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env="GEMINI_API_KEY",
        capabilities=Capabilities(logprobs=False, parallel_tool_calls=False),
    ),
    "vllm": Preset(base_url="http://127.0.0.1:8000/v1"),
    "ollama": Preset(
        base_url="http://127.0.0.1:11434/v1", capabilities=Capabilities(logprobs=False, parallel_tool_calls=False)
    ),
    "compatible": Preset(),
    "simulated": Preset(),
}


class Backend(Frozen):
    """One endpoint, spoken to in OpenAI's form whoever runs it.

    Attributes:
        kind: Decides the defaults of all fields that are None.
        base_url: Its address up to and with the version, for example ``https://api.openai.com/v1``.
        key_env: The environment variable that holds its key; ``""`` for an endpoint without a key.
        key_header: The header that carries the key. ``Authorization`` carries it as a bearer token.
        api_version: Sent as the query parameter ``api-version``, which older Azure endpoints want.
        capabilities: Departures from the kind's capabilities.
        limits: How hard it may be asked.
    """

    kind: Kind = "compatible"
    base_url: str | None = None
    key_env: str | None = None
    key_header: str | None = None
    api_version: str | None = None
    capabilities: Capabilities | None = None
    limits: Limits = Limits()

    @field_validator("base_url")
    @classmethod
    def _no_secrets_in_the_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an http or https address such as http://127.0.0.1:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(
                "must hold no user name, password, query or fragment: addresses are saved. "
                "Give the key by an environment variable (key_env)"
            )
        return value.rstrip("/")

    @field_validator("key_env")
    @classmethod
    def _a_variable(cls, value: str | None) -> str | None:
        if value and not (value.replace("_", "a").isalnum() and value.isascii() and len(value) <= 64):
            raise ValueError("must be the name of an environment variable, never a key itself")
        return value

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if self.kind != "simulated" and self.address is None:
            raise ValueError(f"a backend of kind {self.kind!r} needs a base_url")
        return self

    @property
    def preset(self) -> Preset:
        """What is usual for its kind."""
        return PRESETS[self.kind]

    @property
    def address(self) -> str | None:
        """The base URL in force; None for the simulator."""
        return self.base_url or self.preset.base_url

    @property
    def host(self) -> str:
        """Host and port of the address, as saved with runs."""
        return urlsplit(self.address or "").netloc or SIMULATED

    @property
    def key_variable(self) -> str | None:
        """The environment variable of its key, or None for an endpoint without one."""
        return (self.preset.key_env if self.key_env is None else self.key_env) or None

    @property
    def header(self) -> str:
        """The header that carries the key."""
        return self.key_header or self.preset.key_header


class Model(Frozen):
    """A model under the name that runs use.

    Attributes:
        backend: Name of its backend.
        upstream: The name that the endpoint knows it by; the same name if None.
        capabilities: Departures from the backend's capabilities.
        temperature: Sent with chat requests that bring none; None leaves it to the endpoint. Callers' own
            temperatures are theirs: a memory system is measured as it is.
        reasoning_effort: Sent with chat requests that bring none.
        max_tokens: Sent with chat requests that bring none.
    """

    backend: str
    upstream: str | None = None
    capabilities: Capabilities | None = None
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    reasoning_effort: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)


class Route(Frozen):
    """A model with everything that a call needs, resolved."""

    name: str
    upstream: str
    backend_name: str
    backend: Backend
    model: Model
    capabilities: Capabilities


class Models(Frozen):
    """All models that runs may name. The simulator's two are always among them.

    Attributes:
        backends: Endpoints by name.
        models: Models by name.
    """

    backends: dict[str, Backend] = {}
    models: dict[str, Model] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if SIMULATED in self.backends:
            raise ValueError(f"the backend name {SIMULATED!r} is taken")
        for name, model in self.models.items():
            if name in (SIMULATED, SIMULATED_EMBEDDING):
                raise ValueError(f"models.{name}: this name belongs to the simulator; choose another")
            if model.backend not in self.backends:
                raise ValueError(f"models.{name}: {UnknownNameError('backend', model.backend, self.backends)}")
            if model.reasoning_effort and not self._capabilities(model).reasoning_effort:
                raise ValueError(
                    f"models.{name}: reasoning_effort is set, but the model is not declared to take it; "
                    "set capabilities.reasoning_effort = true or drop it"
                )
        return self

    def _capabilities(self, model: Model) -> Capabilities:
        backend = self.backends[model.backend]
        return backend.preset.capabilities.overridden(backend.capabilities).overridden(model.capabilities)

    @classmethod
    def from_toml(cls, path: "str | Path") -> "Models":
        """Reads a file with the tables ``[backends.<name>]`` and ``[models.<name>]``.

        Raises:
            InvalidInputError: It cannot be read or a field is wrong; each one is named.
        """
        shown = plain(str(path))
        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidInputError(
                f"there is no models file {shown}; give the path of the file that declares your models, "
                "written as docs/models.md shows"
            ) from None
        except OSError as error:
            raise InvalidInputError(f"cannot read the models file {shown}: {error.strerror or error}") from error
        except ValueError as error:
            raise InvalidInputError(f"the models file {shown} is no TOML: {error}") from error
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            # Without the given values: somebody may have pasted a key where none belongs.
            raise InvalidInputError(f"the models file {shown} is wrong. {problems(error, cls, data)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.models or name in (SIMULATED, SIMULATED_EMBEDDING)

    def names(self) -> Iterator[str]:
        """All names that `route` finds."""
        yield from (SIMULATED, SIMULATED_EMBEDDING)
        yield from self.models

    def route(self, name: str) -> Route:
        """Finds a model and all that a call of it needs.

        Raises:
            UnknownNameError: No model has this name.
        """
        if name in (SIMULATED, SIMULATED_EMBEDDING):
            return _simulated(name)
        if name not in self.models:
            remedy = " Models are declared in a models file; see docs/models.md"
            raise UnknownNameError("model", name, self.names(), remedy)
        model = self.models[name]
        return Route(
            name=name,
            upstream=model.upstream or name,
            backend_name=model.backend,
            backend=self.backends[model.backend],
            model=model,
            capabilities=self._capabilities(model),
        )


def _simulated(name: str) -> Route:
    return Route(
        name=name,
        upstream=name,
        backend_name=SIMULATED,
        backend=Backend(kind="simulated"),
        model=Model(backend=SIMULATED, temperature=None),
        capabilities=Capabilities(),
    )


def declared(kind: Kind, name: str, **model: Any) -> Models:
    """One model at a usual endpoint, for a first try: ``declared("openai", "gpt-4o-mini")``."""
    return Models(backends={kind: Backend(kind=kind)}, models={name: Model(backend=kind, **model)})
