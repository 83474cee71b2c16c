"""The payloads of a plan: shipped ones, texts, and files, which may not be there yet."""

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from memorydojo._display import plain
from memorydojo.attack import Payload
from memorydojo.planning.source import Source
from memorydojo.planning.sweep_plan import PayloadChoice
from memorydojo.shipped import find_payload


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
    found = _read(path, path.stat().st_mtime_ns, objective)
    own = {"id": choice.id, "source": choice.source}
    return found.model_copy(update={name: value for name, value in own.items() if value is not None})


@lru_cache(maxsize=1024)
def _read(path: Path, _changed: int, objective: str) -> Payload:
    """The payload in a file, read once for all runs that it enters."""
    return Payload.from_file(path, objective=objective)


def _part(name: str) -> str:
    """A name as a part of a path: ``module:Class`` has no place in one."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)
