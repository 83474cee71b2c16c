"""The payloads of a plan: shipped ones, texts, and files, which may not be there yet."""

import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from memorydojo._display import plain
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError
from memorydojo.planning.source import Source
from memorydojo.planning.sweep_plan import PayloadChoice
from memorydojo.shipped import find_payload

_FIELDS = ("id", "objective", "text", "source")


@dataclass(frozen=True)
class MissingFile:
    """A file that a plan names and that does not exist.

    Attributes:
        path: The file.
        kind: What it holds: ``"payload"`` or ``"trajectory"``.
        command: The command that makes it.
    """

    path: Path
    kind: Literal["payload", "trajectory"]
    command: str


def _missing(path: Path, *, memory: str, objective: str) -> MissingFile:
    options = {"--memory": memory, "--objective": objective, "--output": str(path)}
    parts = " ".join(f"{option} {shlex.quote(plain(value))}" for option, value in options.items())
    return MissingFile(path, "payload", f"memorydojo optimize {parts}")


def payload_for(choice: PayloadChoice, *, memory: str, objective: str, source: Source) -> Payload | MissingFile | None:
    """What a choice means for a memory system and an objective; None if it is written for another objective.

    Raises:
        UnknownNameError: The objective ships no payload with this id.
        InvalidInputError: A file cannot be read, or is for another objective.
    """
    if choice.objective not in (None, objective):
        return None
    if choice.text is not None:
        return Payload(id=choice.id or "", objective=objective, text=choice.text, source=choice.source or "user")
    if choice.path is None:
        return find_payload(choice.id or "", objective)
    path = source.path(choice.path.replace("{memory}", _part(memory)).replace("{objective}", _part(objective)))
    if not path.exists():
        return _missing(path, memory=memory, objective=objective)
    found = dict(_table(path, path.stat().st_mtime_ns))
    if found.get("objective", objective) != objective:
        raise InvalidInputError(
            f"the payload in {plain(str(path))} is written for the objective {plain(str(found['objective']))!r}, "
            f"not for {objective!r}; give the file of that objective"
        )
    own = {"id": choice.id, "source": choice.source}
    fields = {"id": path.stem, "source": "user", **found, "objective": objective}
    return Payload(**{**fields, **{name: value for name, value in own.items() if value is not None}})


def _part(name: str) -> str:
    """A name as a part of a path: ``module:Class`` has no place in one."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


@lru_cache(maxsize=1024)
def _table(path: Path, _changed: int) -> tuple[tuple[str, Any], ...]:
    """The fields in a payload file."""
    name = plain(str(path))
    try:
        text = path.read_text(encoding="utf-8")
        suffix = path.suffix.lower()
        data = {"text": text.strip()} if suffix == ".txt" else _parsed(text, suffix, name)
    except OSError as error:
        raise InvalidInputError(f"cannot read the payload file {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidInputError(f"cannot read the payload file {name}: {plain(str(error), 200)}") from error
    unknown = sorted(data.keys() - {*_FIELDS})
    if unknown or "text" not in data:
        problem = f"the field {plain(str(unknown[0]))!r} is unknown" if unknown else "the field 'text' is missing"
        raise InvalidInputError(f"the payload file {name} is wrong: {problem}; it takes {', '.join(_FIELDS)}")
    return tuple(data.items())


def _parsed(text: str, suffix: str, name: str) -> dict[str, Any]:
    if suffix not in (".toml", ".json"):
        raise InvalidInputError(f"{name}: a payload file ends in .txt, .toml or .json")
    data = tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    if not isinstance(data, dict):
        raise InvalidInputError(f"the payload file {name} holds no table with a 'text'")
    return data
