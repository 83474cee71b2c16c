"""One auxiliary domain whole: its definitions, its variants as suites, and what its attack looks like."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from memorydojo.optimizer.auxiliary._base import Capability, Naming, State, check_pools
from memorydojo.optimizer.auxiliary._tasks import AuxiliaryTask, Template

DomainName = Literal["workspace", "travel", "banking", "communication"]


@dataclass(frozen=True)
class Definition:
    """What defines an auxiliary domain.

    Attributes:
        name: The domain.
        capabilities: What an agent can do.
        templates: The tasks.
        initial_state: Makes the state that every trajectory begins with.
        attacked: The capability by which an agent could carry out the benchmark's objective; None if the objective is
            about the final response.
        observations: What kinds of text an agent reads here, for the ontology.
    """

    name: DomainName
    capabilities: Sequence[Capability]
    templates: Sequence[Template]
    initial_state: Callable[[], State]
    attacked: Capability | None
    observations: Sequence[str]

    def __post_init__(self) -> None:
        check_pools(self.capabilities)

    @property
    def suite_name(self) -> str:
        """The name by which the core finds the suite; with a colon and a variant it is a session's domain."""
        return suite_name(self.name)

    @property
    def by_tool(self) -> Mapping[str, Capability]:
        """The capability that each possible tool name stands for."""
        return {name: capability for capability in self.capabilities for name in capability.names}

    def naming(self, variant: str) -> Naming:
        """The names of a variant."""
        return Naming(self.name, self.capabilities, variant)


def suite_name(domain: str) -> str:
    """The name of a domain's suite and objective."""
    return f"auxiliary-{domain}"


@lru_cache(maxsize=4)
def definition(domain: str) -> Definition:
    """The definition of a domain, which is built when it is first used."""
    module = importlib.import_module(f"memorydojo.optimizer.auxiliary.{domain}")
    made: Definition = module.DEFINITION
    return made


def make_suite(domain: str, variant: str) -> Any:
    """A variant of a domain as a suite of AgentDojo's."""
    from memorydojo.optimizer.auxiliary._task_suite import AuxiliarySuite

    defined = definition(domain)
    naming = defined.naming(variant)
    tasks = {template.id: AuxiliaryTask(template, naming) for template in defined.templates}
    return AuxiliarySuite(defined.suite_name, naming.functions(), tasks, defined.initial_state)
