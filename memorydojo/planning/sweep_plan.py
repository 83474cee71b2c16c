"""A sweep as it is declared: which trajectories, memories, models, attacks, defenses and seeds are crossed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, field_validator, model_validator

from memorydojo._base import Frozen, WholeNumber
from memorydojo.attack import InsertionSession
from memorydojo.errors import InvalidInputError
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING
from memorydojo.planning.source import Source, read
from memorydojo.view import View, Viewed

OWN_DOMAIN = "own-domain"
"""As an objective: each same-domain trajectory gets the objective of its own domain."""

NO_DEFENSE = "none"
"""As a defense: none."""

PLACEHOLDERS = ("{memory}", "{objective}")
"""What a payload's path may hold in braces."""


def _listed(value: object) -> object:
    """One value where a list is meant."""
    return [value] if isinstance(value, str | int | Mapping) and not isinstance(value, bool) else value


def _named(field: str) -> BeforeValidator:
    """A name where a table with this field is meant."""
    return BeforeValidator(lambda value: {field: value} if isinstance(value, str) else value)


_Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
_Numbers = Annotated[tuple[WholeNumber, ...], BeforeValidator(_listed)]


class MemoryChoice(Frozen):
    """A memory system of a sweep.

    Attributes:
        name: A registered name or ``module:Class``.
        settings: Its settings; what is left out keeps the adapter's default.
    """

    name: str
    settings: dict[str, Any] = {}


class ModelChoice(Frozen):
    """The models of a run, by the names that the models file gives them. Agent and memory side change together.

    Attributes:
        agent: The task agent's model.
        memory: The memory side's chat model; the agent's if it is not given.
        embedding: The memory side's embedding model.
    """

    agent: str = SIMULATED
    memory: str | None = None
    embedding: str = SIMULATED_EMBEDDING


class PayloadChoice(Frozen):
    """A payload of a sweep: one that ships, or a file, or a text.

    Attributes:
        id: Id of a shipped payload; for a file or a text the id that its runs carry.
        path: A file with the payload; see `Payload.from_file`. Relative to the file of the plan. ``{memory}`` and
            ``{objective}`` stand for the run's own.
        text: The payload itself.
        objective: The one objective that a file without ``{objective}``, or a text, is written for.
        source: Where a file or a text comes from.
    """

    id: str | None = Field(default=None, min_length=1)
    path: str | None = Field(default=None, min_length=1)
    text: str | None = Field(default=None, min_length=1)
    objective: str | None = None
    source: Literal["seed", "optimized", "user"] | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> "PayloadChoice":
        if self.path is not None and self.text is not None:
            raise ValueError("path and text are two payloads; give one of them")
        own = self.path is not None or self.text is not None
        if not own and self.id is None:
            raise ValueError("give the id of a shipped payload, or a path, or a text")
        if not own and (self.objective is not None or self.source is not None):
            raise ValueError("a shipped payload has its objective and source; give only its id")
        if self.text is not None and self.id is None:
            raise ValueError("a text needs an id, by which its runs are told apart")
        if own and self.objective is None and "{objective}" not in (self.path or ""):
            raise ValueError(
                "say which objective it is written for: objective = ..., or {objective} in the path of a file for each"
            )
        if own and self.objective is not None and "{objective}" in (self.path or ""):
            raise ValueError("the path holds {objective}, so it is not for one objective; drop one of the two")
        return self

    @field_validator("path")
    @classmethod
    def _known_placeholders(cls, path: str | None) -> str | None:
        rest = path or ""
        for placeholder in PLACEHOLDERS:
            rest = rest.replace(placeholder, "")
        if "{" in rest or "}" in rest:
            raise ValueError(f"a path takes {' and '.join(PLACEHOLDERS)} and no other braces")
        return path


class TrajectoryFile(Frozen):
    """A trajectory file of a sweep.

    Attributes:
        path: The file, relative to the file of the plan.
        like: A shipped collection with the same task sessions, which a dry run counts while the file is not there.
        made_by: The command that makes the file; for messages.
    """

    path: str = Field(min_length=1)
    like: str | None = None
    made_by: str | None = None

    @model_validator(mode="after")
    def _both(self) -> "TrajectoryFile":
        if (self.like is None) != (self.made_by is None):
            raise ValueError("like (what counts while the file is missing) and made_by (how to make it) go together")
        return self


class SweepPlan(Viewed, Frozen):
    """A sweep: every combination of what is listed is a run. See ``docs/sweeps.md``.

    Lists of one may be given without brackets. Runs come in the order of the fields: by model, memory, defense and
    seed, then by trajectory (files, collections); in each the clean run first, then by objective, insertion, payload.

    Attributes:
        name: What it is called, for people.
        description: What it is for.
        collections: Names of shipped collections; see `memorydojo.trajectories.load`.
        trajectory_files: Trajectory files: paths relative to the file of the plan, or tables with ``path``, ``like``
            and ``made_by``.
        trajectories: Ids: only these of the collections and files; without both, of all that ships.
        memories: Memory systems: names, or tables with ``name`` and ``settings``.
        models: Models: names, or tables with ``agent``, ``memory`` and ``embedding``; the simulator if not given.
        objectives: Ids of objectives; ``"own-domain"`` is each same-domain trajectory's own.
        payloads: Ids of shipped payloads, or tables with ``path`` or ``text``. A payload that is written for one
            objective is run with that one only.
        insertion: ``"first"``, ``"middle"`` or numbers of sessions.
        observation: Which successful, outermost observation of the insertion session carries the payload.
        defenses: Names or ``module:function``; ``"none"`` for none.
        seeds: Seeds of the simulator.
        clean: Also one run without attack for each trajectory, memory, model, defense and seed.
        agent: ``module:function`` that makes the agent's LLM element.
        on_failure: After a failed session, ``"stop"`` the run or ``"continue"``.

    Raises:
        InvalidInputError: A field is missing, unknown or wrong.
    """

    name: str = "sweep"
    description: str = ""
    collections: _Names = ()
    trajectory_files: Annotated[tuple[Annotated[TrajectoryFile, _named("path")], ...], BeforeValidator(_listed)] = ()
    trajectories: _Names = ()
    memories: Annotated[
        tuple[Annotated[MemoryChoice, _named("name")], ...], BeforeValidator(_listed), Field(min_length=1)
    ]
    models: Annotated[
        tuple[Annotated[ModelChoice, _named("agent")], ...], BeforeValidator(_listed), Field(min_length=1)
    ] = (ModelChoice(),)
    objectives: _Names = ()
    payloads: Annotated[tuple[Annotated[PayloadChoice, _named("id")], ...], BeforeValidator(_listed)] = ()
    insertion: Annotated[tuple[InsertionSession, ...], BeforeValidator(_listed), Field(min_length=1)] = ("first",)
    observation: WholeNumber = Field(default=1, ge=1)
    defenses: Annotated[_Names, Field(min_length=1)] = (NO_DEFENSE,)
    seeds: Annotated[_Numbers, Field(min_length=1)] = (0,)
    clean: bool = Field(default=False, strict=True)
    agent: str | None = None
    on_failure: Literal["stop", "continue"] = "stop"

    _source: Source = PrivateAttr(default_factory=Source)

    @model_validator(mode="after")
    def _runs_something(self) -> "SweepPlan":
        if not (self.collections or self.trajectory_files or self.trajectories):
            raise ValueError('it names no trajectories: give collections = "same-domain", trajectory_files or ids')
        if bool(self.objectives) != bool(self.payloads):
            given, missing = ("objectives", "payloads") if self.objectives else ("payloads", "objectives")
            raise ValueError(f"it has {given} but no {missing}; an attack needs both, and clean runs need neither")
        if not self.objectives and not self.clean:
            raise ValueError(
                "it has neither an attack (objectives and payloads) nor clean = true, so nothing would run"
            )
        return self

    def view(self) -> View:
        """What is crossed."""
        from memorydojo.planning._view import plan_view

        return plan_view(self)

    @property
    def source(self) -> Source:
        """Where it was read, for messages and relative paths."""
        return self._source

    @classmethod
    def from_file(cls, path: str | Path) -> "SweepPlan":
        """Reads a plan from a file that ends in ``.toml``, ``.yaml`` or ``.yml``.

        Raises:
            InvalidInputError: It cannot be read, or a field is missing, unknown or wrong; field and line are named.
        """
        return cls.from_source(read(Path(path)))

    @classmethod
    def from_source(cls, source: Source) -> "SweepPlan":
        """A plan from the text of a file.

        Raises:
            InvalidInputError: As `from_file`.
        """
        try:
            plan = cls.model_validate(source.data)
        except ValidationError as error:
            raise InvalidInputError(source.explain(error, cls)) from None
        plan._source = source
        return plan

    def on_trajectories(self, name: str) -> "SweepPlan":
        """The same plan on a shipped collection or a trajectory file, instead of its own collections and files."""
        from memorydojo.trajectories import collections

        if name in collections.names():
            return self.model_copy(update={"collections": (name,), "trajectory_files": ()})
        # An absolute path is not relative to the file of the plan.
        file = TrajectoryFile(path=str(Path(name).absolute()))
        return self.model_copy(update={"collections": (), "trajectory_files": (file,)})
