"""Which runs a sweep has planned in a directory: an interrupted sweep leaves fewer runs, and no metric can see that."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from memorydojo.runs._files import saving, write_atomic

PLANNED = "planned"
FORMAT = "memorydojo-planned"


def plan_runs(directory: Path, ids: Iterable[str]) -> None:
    """Writes down what a sweep is about to run, until `all_complete`.

    Args:
        directory: A directory of runs.
        ids: The ids of all runs of the sweep.

    Raises:
        SavedRunError: The file cannot be written.
    """
    wanted = sorted(ids)
    path = _file(directory, wanted)
    data = {"format": FORMAT, "schema_version": 1, "memorydojo": version("memorydojo"), "runs": wanted}
    with saving(path):
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write_atomic(path, json.dumps(data, indent=1) + "\n")


def all_complete(directory: Path, ids: Iterable[str]) -> None:
    """Forgets what a sweep planned that has come to its end."""
    path = _file(directory, sorted(ids))
    with suppress(OSError):  # there is none, or another process at the same sweep was first
        path.unlink()
        path.parent.rmdir()  # other sweeps of the directory may not be complete


def _file(directory: Path, wanted: Sequence[str]) -> Path:
    return directory / PLANNED / f"{hashlib.sha256(chr(10).join(wanted).encode()).hexdigest()[:16]}.json"


def not_begun(directory: Path) -> list[str]:
    """The runs that sweeps have planned in a directory and not begun, by id: they are in no table and no metric."""
    planned: set[str] = set()
    for path in (directory / PLANNED).glob("*.json"):
        # Written in one piece, so damage is somebody's own; a list for a note must not keep runs from being read.
        with suppress(OSError, ValueError, TypeError, KeyError):
            planned.update(map(str, json.loads(path.read_text(encoding="utf-8"))["runs"]))
    return sorted(name for name in planned if not (directory / "runs" / name / "run.json").exists())
