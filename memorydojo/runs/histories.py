"""Histories beside the runs: ``histories/<sha256>.json``, each once for all runs of a directory."""

from pathlib import Path

from pydantic import ValidationError

from memorydojo._base import reason
from memorydojo.errors import SavedRunError
from memorydojo.history import History, HistoryPrefix
from memorydojo.runs._files import read_json, saving, shown, to_json, write_atomic

HISTORIES = "histories"


def history_file(directory: Path, prefix: HistoryPrefix) -> Path:
    """Where a directory of runs keeps a history."""
    return directory / HISTORIES / f"{prefix.sha256}.json"


def keep_history(directory: Path, prefix: HistoryPrefix) -> None:
    """Saves a history in a directory of runs, unless it is there.

    Raises:
        SavedRunError: It cannot be written, or neither the file nor the content is there.
    """
    path = history_file(directory, prefix)
    if path.exists():
        return
    if prefix.content is None:
        raise _missing(path, prefix)
    with saving(path):
        path.parent.mkdir(exist_ok=True)
    write_atomic(path, to_json(prefix.content) + "\n")


def saved_history(directory: Path, prefix: HistoryPrefix) -> History:
    """The history that a plan names, from a directory of runs.

    Raises:
        SavedRunError: The file is missing, damaged or of another content.
    """
    path = history_file(directory, prefix)
    if not path.exists():
        raise _missing(path, prefix)
    try:
        history = History.model_validate(read_json(path))
    except ValidationError as error:
        raise SavedRunError(f"{shown(path)} is damaged: {reason(error)}. {_remedy(path)}") from error
    if history.sha256 != prefix.sha256:
        raise SavedRunError(f"{shown(path)} does not hold the history that it is named after. {_remedy(path)}")
    return history


def _missing(path: Path, prefix: HistoryPrefix) -> SavedRunError:
    return SavedRunError(
        f"the history {prefix.id[:80]!r} is missing: there is no {shown(path)}. The facts and labels of saved runs can "
        f"be read without it. {_remedy(path)}"
    )


def _remedy(path: Path) -> str:
    return (
        f"Restore {shown(Path(HISTORIES) / path.name)} from a copy of the directory, or run with the trajectory from "
        "its own collection or file, which brings the history along (a damaged file has to be removed first)"
    )
