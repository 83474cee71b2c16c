"""A saved search: a directory to which only is added, that survives a kill at any point (``docs/optimizer.md``)."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError

from memorydojo._base import Frozen, reason
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError, SavedRunError
from memorydojo.models.usage import ModelUse, Usage, Waiting
from memorydojo.optimizer.candidate import Candidate, Feedback, Malformed, Proposal
from memorydojo.optimizer.selection import Selection
from memorydojo.optimizer.validation import Rules
from memorydojo.runs._files import LineFile, check_schema, read_json, saving, shown, to_json, write_atomic
from memorydojo.runs._lock import lock
from memorydojo.trajectory import Trajectory

FORMAT = "memorydojo-search"
SCHEMA_VERSION = 1
MANIFEST, EVENTS, LOCK = "search.json", "events.jsonl", "lock"
EVALUATION, RUNS, ANSWERS = "evaluation", "runs", "answers.sqlite"


class SearchSpec(Frozen):
    """Everything that decides a search. Two searches with equal specifications are the same search.

    Attributes:
        objective: Id of the benchmark objective.
        description: What it asks for.
        auxiliary_objective: Id of the objective on the auxiliary ground.
        memory: The adapter, as for a run.
        memory_settings: Its settings.
        model: The task agent's model.
        memory_model: The memory side's chat model.
        embedding_model: The memory side's embedding model.
        agent: The agent's LLM element, as for a run.
        defense: The defense, as for a run.
        strategy: Name of the strategy.
        optimizer: The strategy's own model, if it asks one.
        judge: Name of the judge that validates, or None for code alone.
        seeds: The payloads that the search starts from.
        reference: Id of the seed whose utility is the measure.
        trajectories: The auxiliary trajectories.
        ontology: The domain ontology that the strategy is shown.
        insertion: The insertion session, as for an attack.
        rounds: How many rounds.
        proposals: How many proposals a round.
        tolerance: How many tasks fewer than the reference an eligible candidate may complete.
        rules: The limits of validation.
        seed: Seed of the strategy and of the simulator.
    """

    objective: str
    description: str
    auxiliary_objective: str
    memory: str
    memory_settings: dict[str, Any] = {}
    model: str
    memory_model: str
    embedding_model: str
    agent: str | None = None
    defense: str | None = None
    strategy: str
    optimizer: ModelUse | None = None
    judge: str | None = None
    seeds: tuple[Payload, ...] = Field(min_length=1)
    reference: str
    trajectories: tuple[Trajectory, ...] = Field(min_length=1)
    ontology: str
    insertion: Literal["first", "middle"] | int = "first"
    rounds: int = Field(ge=0)
    proposals: int = Field(ge=1)
    tolerance: int = Field(ge=0)
    rules: Rules = Rules()
    seed: int = 0


class Manifest(Frozen):
    """Written once, when a search begins.

    Attributes:
        format: Always the same.
        schema_version: Version of the saved form.
        search_id: Made from the specification.
        simulated: Whether the offline simulator takes part in the runs: such a search describes the simulator and the
            memory system, never an LLM.
        memorydojo: The version that began it.
        spec: The specification.
    """

    format: Literal["memorydojo-search"] = "memorydojo-search"
    schema_version: int = SCHEMA_VERSION
    search_id: str
    simulated: bool
    memorydojo: str
    spec: SearchSpec


class Exchange(Frozen):
    """One question to a model of the search, and what came of it.

    Attributes:
        messages: The whole prompt.
        answer: The text of the answer; None if there was none.
    """

    messages: list[dict[str, Any]]
    answer: str | None


class _Costly(Frozen):
    """An event that took calls.

    Attributes:
        usage: Calls and tokens by role and model.
        waiting: Seconds, retries and replayed calls; the one part of an event that a replay does not repeat.
    """

    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class Evaluated(_Costly):
    """A candidate was tested.

    Attributes:
        kind: Always the same.
        candidate: The candidate.
        feedback: What came of it.
        runs: Ids of its runs.
    """

    kind: Literal["evaluated"] = "evaluated"
    candidate: Candidate
    feedback: Feedback
    runs: tuple[str, ...]


class Proposed(_Costly):
    """A strategy was asked.

    Attributes:
        kind: Always the same.
        round: The round; 0 for the memory-property-only seed.
        drafts: What it gave.
        problem: Why it gave nothing, if so.
        prompt: Name and hash of its prompt, if it has one.
        exchanges: What its model was asked, and said.
    """

    kind: Literal["proposed"] = "proposed"
    round: int
    drafts: tuple[Proposal | Malformed, ...] = ()
    problem: str | None = None
    prompt: str | None = None
    exchanges: tuple[Exchange, ...] = ()


class Validated(_Costly):
    """The proposals of a round were checked.

    Attributes:
        kind: Always the same.
        round: The round.
        reasons: For each draft, why it is rejected; nothing for a valid one.
        chosen: The 1-based number of the draft that is tested; None if none is valid.
    """

    kind: Literal["validated"] = "validated"
    round: int
    reasons: tuple[tuple[str, ...], ...]
    chosen: int | None


class Selected(Frozen):
    """The search came to its end.

    Attributes:
        kind: Always the same.
        selection: The outcome.
    """

    kind: Literal["selected"] = "selected"
    selection: Selection


class Stopped(Frozen):
    """The budget ended one start of the search; a later start with a larger budget goes on.

    Attributes:
        kind: Always the same.
        reason: Which budget, and what was spent.
        selection: The outcome among what was tested; None if the reference was not.
    """

    kind: Literal["stopped"] = "stopped"
    reason: str
    selection: Selection | None = None


Event = Evaluated | Proposed | Validated | Selected | Stopped
"""One step of a search, as ``events.jsonl`` holds it and ``on_event`` gets it."""

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def facts(events: Sequence[Event]) -> list[dict[str, Any]]:
    """What two equal searches have in common: all events without waiting times, and without stops by a budget."""
    kept = [event for event in events if not isinstance(event, Stopped)]
    return [event.model_dump(mode="json", exclude={"waiting"}) for event in kept]


class SearchWriter:
    """The sole right to write a search; also a context manager.

    Args:
        directory: The directory of the search: new, empty, or of the same search.
        manifest: What the search is.

    Attributes:
        events: The events that were saved before.

    Raises:
        RunInUseError: Another process is at this search.
        InvalidInputError: The directory holds another search.
        SavedRunError: The directory holds something else, or cannot be written.
    """

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        with saving(directory):
            directory.mkdir(parents=True, exist_ok=True)
        fresh = not (directory / MANIFEST).exists()
        other = next((p for p in directory.iterdir() if p.name != LOCK and not p.name.startswith(".")), None)
        if fresh and other is not None:
            raise SavedRunError(
                f"{shown(directory)} holds something other than a search, for example {shown(Path(other.name))}; "
                "nothing was touched. Choose a new or empty directory"
            )
        self._lock: int | None = lock(directory / LOCK, what=f"the search in {shown(directory)}")
        self._file: LineFile | None = None
        try:
            if (directory / MANIFEST).exists():
                _check_same(read_manifest(directory), manifest, directory)
            else:
                write_atomic(directory / MANIFEST, json.dumps(json.loads(to_json(manifest)), indent=2) + "\n")
            self.events, whole = read_events(directory)
            self._file = LineFile(directory / EVENTS, whole=whole)
        except BaseException:
            self.close()
            raise

    def append(self, event: Event) -> None:
        """Saves an event; it is on disk when this returns.

        Raises:
            SavedRunError: The disk refuses, or the search is closed.
        """
        if self._file is None:
            raise SavedRunError(f"the search in {shown(self.directory)} is closed; start it again")
        self._file.append(event)

    def close(self) -> None:
        """Releases the files and the lock. May be called more than once."""
        file, held, self._file, self._lock = self._file, self._lock, None, None
        if file is not None:
            file.close()
        if held is not None:
            os.close(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_same(saved: Manifest, wanted: Manifest, directory: Path) -> None:
    if saved.search_id == wanted.search_id:
        return
    one, other = saved.spec.model_dump(mode="json"), wanted.spec.model_dump(mode="json")
    names = [name for name in one if one[name] != other[name]]
    short = [f"{n} ({one[n]!r}, now {other[n]!r})" if len(f"{one[n]}{other[n]}") < 80 else n for n in names]
    raise InvalidInputError(
        f"{shown(directory)} holds another search, which differs in {', '.join(short)}; give the same arguments to go "
        "on with it, or another directory"
    )


def read_manifest(directory: Path) -> Manifest:
    """Reads what a search is.

    Raises:
        SavedRunError: It is missing, damaged, of another format, or newer than this library.
    """
    path = directory / MANIFEST
    if not path.exists():
        problem = "does not exist" if not directory.exists() else f"is no saved search (it has no {MANIFEST})"
        raise SavedRunError(f"{shown(directory)} {problem}; give the directory that a search was written to")
    data = read_json(path)
    if data.get("format") != FORMAT:
        raise SavedRunError(f"{shown(path)} is not of the format {FORMAT!r}; give the directory of a search")
    check_schema(data.get("schema_version"), SCHEMA_VERSION, path)
    try:
        return Manifest.model_validate(data)
    except (ValidationError, InvalidInputError) as error:
        said = reason(error) if isinstance(error, ValidationError) else str(error)
        raise SavedRunError(f"{shown(path)} is damaged: {said}. Restore the file from a copy") from error


def read_events(directory: Path) -> tuple[list[Event], int]:
    """The events of a search, and how many bytes of the file hold them; what a kill left behind them is not read.

    Raises:
        SavedRunError: A line is damaged, or the file cannot be read.
    """
    path = directory / EVENTS
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise SavedRunError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    *lines, torn = data.split(b"\n")
    events: list[Event] = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_EVENT.validate_python(json.loads(line)))
        except (ValueError, RecursionError) as error:
            said = reason(error) if isinstance(error, ValidationError) else "it is no JSON"
            raise SavedRunError(
                f"{shown(path)}, line {number} is damaged: {said}. Restore the file from a copy, or cut it before this "
                "line and start the search again"
            ) from error
    return events, len(data) - len(torn)
