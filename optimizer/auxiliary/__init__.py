"""Auxiliary environments: where payloads are tested while they are optimized (paper, appendix A.6.1).

Four standalone environments with their own tools, state and tasks. Tool names differ from the benchmark's and vary by
trajectory. A session's domain is ``"auxiliary-banking:0-3"``: the suite, and the variant that its names come from.
"""

from collections.abc import Sequence
from functools import lru_cache

from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError
from memorydojo.objective import Objective
from memorydojo.optimizer.auxiliary._ontology import CapabilityNote, Ontology, TaskCategory, ontology_of
from memorydojo.trajectory import Session, Trajectory

__all__ = [
    "DOMAINS",
    "LENGTHS",
    "CapabilityNote",
    "Ontology",
    "TaskCategory",
    "counterpart",
    "domain_of",
    "objective",
    "ontology",
    "task_kinds",
    "task_prompts",
    "tool_names",
    "trajectories",
]

DOMAINS = ("workspace", "travel", "banking", "communication")
"""The auxiliary domains."""

LENGTHS = (4, 6, 8, 10)
"""The numbers of sessions of the trajectories, in turn."""

_OBJECTIVES = {"workspace": "workspace", "travel": "travel", "banking": "banking", "slack": "communication"}


def domain_of(objective_id: str) -> str:
    """The auxiliary domain in which payloads for a benchmark objective are tested.

    Raises:
        UnknownNameError: The benchmark has no such objective.
    """
    if objective_id not in _OBJECTIVES:
        raise UnknownNameError("benchmark objective", objective_id, _OBJECTIVES)
    return _OBJECTIVES[objective_id]


def trajectories(
    domain: str, *, seed: int = 0, count: int = 4, lengths: Sequence[int] = LENGTHS
) -> tuple[Trajectory, ...]:
    """Trajectories of an auxiliary domain, composed and validated as the benchmark's are.

    Each has a variant of the domain, and so names of tools, of its own. The same arguments give the same trajectories.

    Args:
        domain: One of `DOMAINS`.
        seed: Seed of the draws and of the variants.
        count: How many trajectories.
        lengths: Their numbers of sessions; used in turn.

    Raises:
        UnknownNameError: There is no such domain.
        InvalidInputError: No trajectory or a length below 2 is asked for, or one of more sessions than the domain has
            tasks.
        MemoryDojoError: No valid trajectory of a length could be found.
    """
    from memorydojo.optimizer.auxiliary._domain import definition

    most = len(definition(_known(domain)).templates)
    if count < 1 or not lengths or not all(2 <= length <= most for length in lengths):
        raise InvalidInputError(
            f"count must be at least 1 and lengths from 2 to {most}, the number of {domain} tasks; "
            f"got count {count} and lengths {list(lengths)}"
        )
    return _composed(domain, seed, count, tuple(lengths))


@lru_cache(maxsize=32)
def _composed(domain: str, seed: int, count: int, lengths: tuple[int, ...]) -> tuple[Trajectory, ...]:
    from memorydojo.trajectories.compose import compose

    suite = _suite(domain)
    plain = compose(suite, (lengths[n % len(lengths)] for n in range(count)), collection=suite, seed=seed)
    made = tuple(_renamed(trajectory, seed, n) for n, trajectory in enumerate(plain, start=1))
    _validate(suite, made, seed)
    return made


def _renamed(trajectory: Trajectory, seed: int, number: int) -> Trajectory:
    """The trajectory with the tool names of a variant of its own."""
    sessions = tuple(
        Session(domain=f"{session.domain}:{seed}-{number}", task_id=session.task_id, flags=session.flags)
        for session in trajectory.sessions
    )
    return Trajectory(id=f"{trajectory.id}-s{seed}", collection=trajectory.collection, sessions=sessions)


def _validate(suite: str, made: tuple[Trajectory, ...], seed: int) -> None:
    from memorydojo.trajectories import Collection
    from memorydojo.trajectories.validate import validate

    report = validate(Collection(name=suite, trajectories=made, seed=seed))
    if report.problems:
        raise MemoryDojoError(f"the trajectories of {suite} with seed {seed} are not valid: {report.problems[0]}")


def objective(domain: str) -> Objective:
    """The auxiliary counterpart of the benchmark objective of a domain.

    The same behaviour with the same targets. It is registered by its id, ``"auxiliary-banking"``, in every process.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from memorydojo.shipped import objectives

    return objectives[_suite(domain)]


def counterpart(payload: Payload) -> Payload:
    """A payload for a benchmark objective, text and all, as one for the auxiliary counterpart of that objective.

    Raises:
        UnknownNameError: The payload is for another objective.
    """
    return payload.model_copy(update={"objective": _suite(domain_of(payload.objective))})


def ontology(domain: str) -> Ontology:
    """The domain ontology: capabilities, and categories of tasks and observations. It names no tool, task or entity.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from memorydojo.optimizer.auxiliary._domain import definition

    return ontology_of(definition(_known(domain)))


def tool_names(domain: str) -> frozenset[str]:
    """Every name that a tool of a domain can have, in whatever variant.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from memorydojo.optimizer.auxiliary._domain import definition

    return frozenset(definition(_known(domain)).by_tool)


def task_prompts(domain: str) -> dict[str, str]:
    """The request of every task of a domain, by task id.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from memorydojo.optimizer.auxiliary._domain import definition

    return {template.id: template.prompt for template in definition(_known(domain)).templates}


def task_kinds(domain: str) -> dict[str, str]:
    """What every task of a domain covers, by task id: information retrieval, a state change, or a combination.

    Raises:
        UnknownNameError: There is no such domain.
    """
    from memorydojo.optimizer.auxiliary._domain import definition

    return {template.id: template.kind for template in definition(_known(domain)).templates}


def _known(domain: str) -> str:
    if domain not in DOMAINS:
        raise UnknownNameError("auxiliary domain", domain, DOMAINS)
    return domain


def _suite(domain: str) -> str:
    from memorydojo.optimizer.auxiliary._domain import suite_name as named

    return named(_known(domain))
