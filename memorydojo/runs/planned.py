"""Which runs a sweep has planned in a directory: an interrupted sweep leaves fewer runs, and no metric can see that."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from memorydojo.runs._files import saving, write_atomic

PLANNED = "planned"
FORMAT = "memorydojo-planned"


def plan_runs(directory: Path, ids: Iterable[str]) -> Path:
    """Writes down what a sweep is about to run; the file is removed when all of it is complete.

    Args:
        directory: A directory of runs.
        ids: The ids of all runs of the sweep.

    Returns:
        The file.

    Raises:
        SavedRunError: The file cannot be written.
    """
    wanted = sorted(ids)
    name = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    path = directory / PLANNED / f"{name}.json"
    data = {"format": FORMAT, "schema_version": 1, "memorydojo": version("memorydojo"), "runs": wanted}
    with saving(path):
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write_atomic(path, json.dumps(data, indent=1) + "\n")
    return path


def all_complete(path: Path) -> None:
    """Removes the file of a sweep that has come to its end."""
    with suppress(OSError):  # another process at the same sweep may have been first
        path.unlink()
    with suppress(OSError):  # other sweeps of the directory are not complete
        path.parent.rmdir()


def not_begun(directory: Path) -> list[str]:
    """The runs that sweeps have planned in a directory and not begun, by id: they are in no table and no metric."""
    planned: set[str] = set()
    for path in (directory / PLANNED).glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            planned.update(map(str, json.loads(path.read_text(encoding="utf-8"))["runs"]))
    return sorted(name for name in planned if not (directory / "runs" / name / "run.json").exists())
