"""What the auxiliary environments are made of: records, state, capabilities, and the names that vary.

A capability is one thing that an agent can do. How its tool and the tool's parameters are called, and in which words
they are described, is drawn for each variant from the capability's own pools (`Naming`). Within a domain no two
capabilities share a name, so a call says which capability it uses whatever the variant.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from agentdojo.functions_runtime import Depends, Function, FunctionCall, TaskEnvironment
from pydantic import BaseModel, ConfigDict, Field, create_model

T = TypeVar("T")


class Record(BaseModel):
    """One thing in a state, and what a tool shows of it."""

    model_config = ConfigDict(extra="forbid")


class State(TaskEnvironment):  # type: ignore[misc]
    """Base of the four states. Every field but ``serial`` is a dictionary of records by key.

    Attributes:
        serial: The last number that was given to a new record.
    """

    serial: int = 500

    def number(self, prefix: str) -> str:
        """The key of a new record."""
        self.serial += 1
        return f"{prefix}{self.serial}"

    def collection(self, name: str) -> dict[str, Record]:
        """The records of one kind."""
        found: dict[str, Record] = getattr(self, name)
        return found


def find(records: Mapping[str, T], key: str, what: str) -> T:
    """The record with a key, whatever its case.

    Raises:
        ValueError: There is none; the agent reads which there are.
    """
    by_key = {known.casefold(): record for known, record in records.items()}
    if key.strip().casefold() not in by_key:
        raise ValueError(f"there is no {what} {key!r}; there are: {', '.join(records) or 'none'}")
    return by_key[key.strip().casefold()]


@dataclass(frozen=True)
class Parameter:
    """How one parameter of a capability may be called and described.

    Attributes:
        names: Its names; all of them mean the same.
        texts: Its descriptions, in different words. None names a parameter, a tool or an entity.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Capability:
    """One thing that an agent can do in a domain.

    Attributes:
        run: What does it: a function of the state and of keyword arguments, with annotations.
        names: What its tool may be called.
        texts: Descriptions of the tool, in different words.
        parameters: By the keyword of ``run``: names and descriptions.
        changes: Whether it changes the state.
    """

    run: Callable[..., Any]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    parameters: Mapping[str, Parameter]
    changes: bool = False

    @property
    def id(self) -> str:
        """Its name inside the definitions, which no agent sees."""
        return self.run.__name__

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """The keyword of ``run`` that each possible name of a parameter stands for."""
        return {name: role for role, parameter in self.parameters.items() for name in parameter.names}


def named(*names: str, text: str, also: str = "") -> Parameter:
    """A parameter with its names and one or two descriptions."""
    return Parameter(names, (text, also) if also else (text,))


@dataclass(frozen=True)
class Step:
    """One reference action: a capability and its arguments, by the keywords of its function."""

    capability: str
    arguments: Mapping[str, Any]


def step(capability: Callable[..., Any], **arguments: Any) -> Step:
    """A reference action, named by the capability's function."""
    return Step(capability.__name__, arguments)


class Naming:
    """The names and descriptions of one variant of a domain.

    Args:
        domain: The auxiliary domain.
        capabilities: The capabilities of the domain.
        variant: Any text; the same text gives the same names.
    """

    def __init__(self, domain: str, capabilities: Sequence[Capability], variant: str) -> None:
        rng = Random(f"memorydojo/auxiliary/{domain}/{variant}")
        self._capabilities = {capability.id: capability for capability in capabilities}
        self._tools: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._parameters: dict[str, dict[str, tuple[str, str]]] = {}
        for id, capability in self._capabilities.items():
            self._tools[id] = _drawn(capability.names, rng)
            self._texts[id] = _drawn(capability.texts, rng)
            self._parameters[id] = {
                role: (_drawn(parameter.names, rng), _drawn(parameter.texts, rng))
                for role, parameter in capability.parameters.items()
            }

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of all tools, in the order of the capabilities."""
        return tuple(self._tools.values())

    def call(self, step: Step) -> FunctionCall:
        """A reference action as a tool call in this variant's names."""
        parameters = self._parameters[step.capability]
        arguments = {parameters[role][0]: value for role, value in step.arguments.items()}
        return FunctionCall(function=self._tools[step.capability], args=arguments)

    def functions(self) -> list[Function]:
        """The tools, as AgentDojo takes them."""
        return [self._function(capability) for capability in self._capabilities.values()]

    def _function(self, capability: Capability) -> Function:
        signature = inspect.signature(capability.run, eval_str=True).parameters
        roles: dict[str, str] = {}
        fields: dict[str, Any] = {}
        lines = [self._texts[capability.id], ""]
        for role, (name, text) in self._parameters[capability.id].items():
            default = signature[role].default
            missing = default is inspect.Parameter.empty
            fields[name] = (signature[role].annotation, Field(default=... if missing else default, description=text))
            roles[name] = role
            lines.append(f":param {name}: {text}")

        def run(environment: State, **arguments: Any) -> Any:
            return capability.run(environment, **{roles[name]: value for name, value in arguments.items()})

        name = self._tools[capability.id]
        return Function(
            name=name,
            description=self._texts[capability.id],
            parameters=create_model(f"Input schema for `{name}`", **fields),
            dependencies={"environment": Depends(_whole)},
            run=run,
            full_docstring="\n".join(lines),
            return_type=signature_return(capability.run),
        )


def _whole(environment: State) -> State:
    return environment


def signature_return(function: Callable[..., Any]) -> Any:
    """The annotation of what a function returns."""
    return inspect.signature(function, eval_str=True).return_annotation


def _drawn(items: Sequence[T], rng: Random) -> T:
    """One of the items; only ``Random.random`` is used, whose sequence Python guarantees."""
    return items[int(rng.random() * len(items))]


def check_pools(capabilities: Iterable[Capability]) -> None:
    """Sees to it that a name tells which capability, and which of its parameters, it stands for.

    Raises:
        ValueError: Two capabilities share a tool name, two parameters of one share a name, or the parameters are not
            those of the function.
    """
    seen: dict[str, str] = {}
    for capability in capabilities:
        for name in capability.names:
            if seen.setdefault(name, capability.id) != capability.id:
                raise ValueError(f"the tool name {name!r} stands for {seen[name]} and for {capability.id}")
        given = list(inspect.signature(capability.run).parameters)[1:]
        if list(capability.parameters) != given:
            raise ValueError(f"{capability.id} takes {given}, but describes {list(capability.parameters)}")
        names = [name for parameter in capability.parameters.values() for name in parameter.names]
        if len(set(names)) != len(names) or "environment" in names:
            raise ValueError(f"two parameters of {capability.id} share a name, or one is called 'environment'")
