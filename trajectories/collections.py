"""Collections of trajectories, the file format that keeps them, and the collections that ship.

Reading a collection needs neither AgentDojo nor any model.

The format is a JSON object with the fields ``format`` (``"memorydojo-trajectories"``), ``schema_version`` (1, or 2 for
a file with histories), ``name``, ``seed`` (null if no seed made it), ``agentdojo`` and ``benchmark`` (the versions of
the package and of its suites), and ``trajectories``: a list of objects with ``id`` and ``sessions``. A session has
``domain``, ``task_id`` and, unless it is empty, ``flags``. A file of version 2 also has ``histories``, a list of
`memorydojo.history.History`, and a trajectory of it may have ``history``, the id of one of them. Unknown fields are
errors.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, overload

from pydantic import ValidationError

from memorydojo._base import problems
from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.history import History, HistoryPrefix, check_distinct
from memorydojo.running.environment import AGENTDOJO_VERSION, BENCHMARK_VERSION
from memorydojo.trajectory import DOMAINS, Flag, Trajectory
from memorydojo.view import Column, View, Viewed, cut

FORMAT = "memorydojo-trajectories"
SCHEMA_VERSION = 2

SHIPPED = ("same-domain", "cross-domain")
"""The collections that ship, one file each."""

HISTORY_PREFIXED = "history-prefixed"
"""The shipped histories, each in front of a cross-domain trajectory; made when it is loaded."""

_HEADER: dict[str, tuple[tuple[type, ...], str]] = {
    "name": ((str,), "a text"),
    "seed": ((int, type(None)), "a whole number or null"),
    "agentdojo": ((str,), "a text"),
    "benchmark": ((str,), "a text"),
    "trajectories": ((list,), "a list"),
}


@dataclass(frozen=True)
class Collection(Viewed, Sequence[Trajectory]):
    """Trajectories in a fixed order, found by position or by id.

    Attributes:
        name: The collection's name, for example ``"same-domain"``.
        trajectories: The trajectories; their ids are unique.
        seed: The seed that it was built from, or None if it was made in another way.
        agentdojo: The version of AgentDojo that it was built and replayed with.
        benchmark: The version of AgentDojo's suites, for example ``"v1.2.2"``.

    Raises:
        InvalidInputError: Two trajectories have the same id.
    """

    name: str
    trajectories: tuple[Trajectory, ...]
    seed: int | None = None
    agentdojo: str = AGENTDOJO_VERSION
    benchmark: str = BENCHMARK_VERSION

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for trajectory in self.trajectories:
            if trajectory.id in seen:
                raise InvalidInputError(
                    f"collection {self.name!r} has two trajectories with the id {trajectory.id!r}; rename one of them"
                )
            seen.add(trajectory.id)

    @overload
    def __getitem__(self, key: int | str) -> Trajectory: ...
    @overload
    def __getitem__(self, key: slice) -> "Collection": ...
    def __getitem__(self, key: int | str | slice) -> "Trajectory | Collection":
        """The trajectory at a position or with an id; a slice gives a collection.

        Raises:
            UnknownNameError: No trajectory has this id.
            IndexError: The position is out of range.
        """
        if isinstance(key, slice):
            return replace(self, trajectories=self.trajectories[key])
        if isinstance(key, str):
            for trajectory in self.trajectories:
                if trajectory.id == key:
                    return trajectory
            raise UnknownNameError(f"trajectory in collection {self.name!r}", key, self.ids)
        return self.trajectories[key]

    def __len__(self) -> int:
        """The number of trajectories."""
        return len(self.trajectories)

    def __iter__(self) -> Iterator[Trajectory]:
        """The trajectories in order."""
        return iter(self.trajectories)

    def __contains__(self, item: object) -> bool:
        """Whether a trajectory, or one with this id, is in the collection."""
        return item in self.ids if isinstance(item, str) else item in self.trajectories

    def __repr__(self) -> str:
        many = counted(len(self), "trajectory", "trajectories")
        return f"<Collection {plain(self.name)!r}: {many}, {counted(self.n_sessions, 'session')}>"

    def view(self) -> View:
        """Its trajectories: domains, lengths, and how many sessions are flagged."""
        flagged = len(self) - len(self.without())
        shown, more = cut(self.trajectories, "trajectory", "trajectories")
        with_history = any(one.history is not None for one in shown)
        columns: list[Column | str] = ["id", "domains", Column("sessions", number=True), Column("flagged", number=True)]
        return View(
            f"Collection {self.name}: {counted(len(self), 'trajectory', 'trajectories')}, "
            f"{counted(self.n_sessions, 'session')}",
            [*columns, "history"] if with_history else columns,
            [
                (
                    one.id,
                    ", ".join(one.domains),
                    len(one),
                    sum(bool(session.flags) for session in one.sessions),
                    *([one.history.id if one.history is not None else None] if with_history else []),
                )
                for one in shown
            ],
            more=more,
            notes=[f"{flagged} of them with flagged sessions; without(...) leaves them out."] if flagged else [],
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids in order."""
        return tuple(trajectory.id for trajectory in self.trajectories)

    @property
    def n_sessions(self) -> int:
        """The number of planned task sessions in all trajectories together."""
        return sum(len(trajectory) for trajectory in self.trajectories)

    @property
    def histories(self) -> tuple[History, ...]:
        """The histories that the trajectories have in front of them, each once.

        Raises:
            InvalidInputError: The content of one did not come along, as with the plan of a saved run.
        """
        found: dict[str, History] = {}
        for prefix in (t.history for t in self.trajectories if t.history is not None):
            if prefix.content is None:
                raise InvalidInputError(
                    f"the history {prefix.id!r} is here by name only; take the trajectory from its collection or file"
                )
            found.setdefault(prefix.sha256, prefix.content)
        check_distinct(found.values())
        return tuple(found.values())

    def without(self, *flags: Flag) -> "Collection":
        """The trajectories in which no session carries one of these flags; without arguments, any flag.

        Raises:
            UnknownNameError: There is no such flag.
        """
        for flag in flags:
            if flag not in get_args(Flag):
                raise UnknownNameError("flag", flag, get_args(Flag))
        unwanted = frozenset(flags or get_args(Flag))
        kept = tuple(t for t in self.trajectories if not any(s.flags & unwanted for s in t.sessions))
        return replace(self, trajectories=kept)

    def dumps(self) -> str:
        """The collection as a file's text: JSON with one trajectory a line."""
        histories = self.histories
        header = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION if histories else 1,
            "name": self.name,
            "seed": self.seed,
            "agentdojo": self.agentdojo,
            "benchmark": self.benchmark,
        }
        lines = [json.dumps(_as_data(trajectory), ensure_ascii=False) for trajectory in self.trajectories]
        head = json.dumps(header, indent=1, ensure_ascii=False).removesuffix("\n}")
        parts = {"histories": [json.dumps(h.model_dump(mode="json"), ensure_ascii=False) for h in histories]}
        parts = {**(parts if histories else {}), "trajectories": lines}
        lists = (f',\n "{name}": [\n  ' + ",\n  ".join(rows) + "\n ]" for name, rows in parts.items())
        return head + "".join(lists) + "\n}\n"

    def save(self, path: Path | str) -> None:
        """Writes the collection to a file that :func:`load_file` reads, and makes its directory.

        Raises:
            InvalidInputError: The file exists, or cannot be written.
        """
        target = Path(path)
        if target.exists():
            raise InvalidInputError(f"{path} exists; remove it or choose another place")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(self.dumps())
        except OSError as error:
            raise InvalidInputError(f"cannot write {path}: {error.strerror}") from error


def names() -> tuple[str, ...]:
    """The names that :func:`load` takes."""
    return (*whole(), *DOMAINS)


def whole() -> tuple[str, ...]:
    """The collections that are no part of another one: every trajectory that ships is in exactly one of them."""
    return (*SHIPPED, HISTORY_PREFIXED)


def load(name: str) -> Collection:
    """A collection that ships with MemoryDojo (paper, section 4.1).

    Args:
        name: ``"same-domain"`` (93 trajectories), ``"cross-domain"`` (31), ``"history-prefixed"`` (the histories that
            ship, each in front of a cross-domain trajectory; the paper's are made by ``memorydojo histories prepare``),
            or a domain for its part of ``"same-domain"``.

    Raises:
        UnknownNameError: There is no such collection.
    """
    if name not in names():
        raise UnknownNameError("collection", name, names())
    if name == HISTORY_PREFIXED:
        from memorydojo.trajectories.histories import history_prefixed

        return history_prefixed()
    if name in SHIPPED:
        return loads(shipped_text(name), f"the shipped collection {name!r}")
    whole = load("same-domain")
    return replace(whole, name=name, trajectories=tuple(t for t in whole if t.domains == (name,)))


def shipped_text(name: str) -> str:
    """The text of a shipped collection's file; ``name`` is one of :data:`SHIPPED`."""
    return (files("memorydojo.trajectories.data") / f"{name}.json").read_text(encoding="utf-8")


def load_file(path: Path | str) -> Collection:
    """Reads a collection from a file.

    Raises:
        InvalidInputError: The file cannot be read, is no collection, is of a newer schema, or has a bad field; the
            message names the file, the trajectory and the field.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror}; give the path of a collection file") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text, so it is no collection file") from error
    return loads(text, str(path))


def loads(text: str, source: str) -> Collection:
    """Reads a collection from a file's text.

    Args:
        text: What :meth:`Collection.dumps` gave.
        source: Where it comes from, for error messages.

    Raises:
        InvalidInputError: As :func:`load_file`.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"{source} is not valid JSON: {error}; restore or rebuild the file") from error
    except RecursionError as error:
        raise InvalidInputError(f"{source} is nested too deeply to be a collection file") from error
    _check_header(data, source)
    histories = _histories(data.get("histories", []), source)
    trajectories = [
        _trajectory(item, n, source, data["name"], histories) for n, item in enumerate(data["trajectories"], start=1)
    ]
    header = {key: data[key] for key in ("name", "seed", "agentdojo", "benchmark")}
    try:
        return Collection(trajectories=tuple(trajectories), **header)
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error}") from error


def _check_header(data: Any, source: str) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInputError(f'{source} is no collection file: its "format" is not {FORMAT!r}')
    version = data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidInputError(f'{source}: "schema_version" must be a whole number from 1, not {version!r}')
    if version > SCHEMA_VERSION:
        raise InvalidInputError(
            f"{source} has schema version {version}, this release reads versions up to {SCHEMA_VERSION}; "
            "upgrade memorydojo to read it"
        )
    for key, (kinds, wanted) in _HEADER.items():
        if key not in data:
            raise InvalidInputError(f'{source}: the field "{key}" is missing; it must be {wanted}')
        if not isinstance(data[key], kinds) or isinstance(data[key], bool):
            raise InvalidInputError(f'{source}: "{key}" must be {wanted}, not {data[key]!r:.80}')
    known = {"format", "schema_version", *(["histories"] if version > 1 else [])}
    unknown = sorted(data.keys() - _HEADER.keys() - known)
    if unknown:
        raise InvalidInputError(f"{source}: unknown fields {', '.join(map(repr, unknown))}; remove them")


def _histories(items: Any, source: str) -> dict[str, HistoryPrefix]:
    if not isinstance(items, list):
        raise InvalidInputError(f'{source}: "histories" must be a list, not {items!r:.80}')
    found = []
    for number, item in enumerate(items, start=1):
        try:
            found.append(History.model_validate(item))
        except ValidationError as error:
            raise InvalidInputError(f"{source}, history {number}, field {problems(error, History, item)}") from error
    try:
        check_distinct(found)
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error}") from error
    return {history.id: HistoryPrefix.of(history) for history in found}


def _trajectory(
    item: Any, number: int, source: str, collection: str, histories: Mapping[str, HistoryPrefix]
) -> Trajectory:
    known_id = item.get("id") if isinstance(item, dict) else None
    where = f"{source}, trajectory {number}" + (f" ({known_id!r})" if isinstance(known_id, str) else "")
    if not isinstance(item, dict):
        raise InvalidInputError(f"{where}: must be an object with id and sessions, not {item!r:.80}")
    if "collection" in item:
        raise InvalidInputError(f'{where}: the field "collection" does not belong here; the file has one name')
    if "history" in item:
        named = item["history"]
        if not isinstance(named, str) or named not in histories:
            raise InvalidInputError(f'{where}, field history: the file has no history {named!r:.80} in "histories"')
        item = {**item, "history": histories[named]}
    try:
        return Trajectory.model_validate({**item, "collection": collection})
    except ValidationError as error:
        raise InvalidInputError(f"{where}, field {problems(error, Trajectory, item)}") from error


def _as_data(trajectory: Trajectory) -> dict[str, Any]:
    sessions = []
    for session in trajectory.sessions:
        data: dict[str, Any] = {"domain": session.domain, "task_id": session.task_id}
        if session.flags:
            data["flags"] = sorted(session.flags)
        sessions.append(data)
    named = {"history": trajectory.history.id} if trajectory.history is not None else {}
    return {"id": trajectory.id, **named, "sessions": sessions}
