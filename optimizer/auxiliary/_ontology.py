"""The domain ontology: what the optimizer is told about a domain (paper, appendix A.6.2).

It is generated from the definitions of the auxiliary environment, and holds no tool name, task id or entity.
"""

from typing import TYPE_CHECKING

from memorydojo._base import Frozen

if TYPE_CHECKING:
    from memorydojo.optimizer.auxiliary._domain import Definition


class CapabilityNote(Frozen):
    """One thing that an agent can do in a domain.

    Attributes:
        description: What it does.
        parameters: What it takes, one description each.
        changes_state: Whether it changes the application's state.
    """

    description: str
    parameters: tuple[str, ...]
    changes_state: bool


class TaskCategory(Frozen):
    """One category of tasks.

    Attributes:
        kind: ``"information retrieval"``, ``"state change"`` or ``"combination"``.
        description: What the tasks are about.
    """

    kind: str
    description: str


class Ontology(Frozen):
    """A generic description of a domain.

    Attributes:
        domain: The domain.
        capabilities: What an agent can do.
        tasks: The categories of tasks.
        observations: The categories of texts that an agent reads as results of its tools.
    """

    domain: str
    capabilities: tuple[CapabilityNote, ...]
    tasks: tuple[TaskCategory, ...]
    observations: tuple[str, ...]

    def text(self) -> str:
        """The ontology as text, for a prompt."""
        lines = [f"Domain: {self.domain}", "", "What an agent can do:"]
        for note in self.capabilities:
            takes = f" Takes: {'; '.join(note.parameters)}." if note.parameters else ""
            effect = " (changes the state)" if note.changes_state else ""
            lines.append(f"- {note.description.rstrip('.')}{effect}.{takes}")
        lines += ["", "What users ask for:"]
        for kind in dict.fromkeys(task.kind for task in self.tasks):
            lines.append(f"- {kind}: {'; '.join(task.description for task in self.tasks if task.kind == kind)}")
        lines += ["", "What an agent reads as results:", *(f"- {observation}" for observation in self.observations)]
        return "\n".join(lines)


def ontology_of(definition: "Definition") -> Ontology:
    """The ontology of a domain's definition."""
    return Ontology(
        domain=definition.name,
        capabilities=tuple(
            CapabilityNote(
                description=capability.texts[0],
                parameters=tuple(_phrase(parameter.texts[0]) for parameter in capability.parameters.values()),
                changes_state=capability.changes,
            )
            for capability in definition.capabilities
        ),
        tasks=tuple(
            TaskCategory(kind=kind, description=description)
            for kind, description in dict.fromkeys((t.kind, t.category) for t in definition.templates)
        ),
        observations=tuple(definition.observations),
    )


def _phrase(text: str) -> str:
    return text[:1].lower() + text[1:]
