"""Runs as a log of Inspect (``inspect_ai``), for its viewer and its data frames; made through its public log API."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo.errors import InvalidInputError, MissingPackageError
from memorydojo.export._targets import check_runs, new_file
from memorydojo.judging.labels import OFFLINE_JUDGE

if TYPE_CHECKING:
    from memorydojo.runs import Run

SUFFIX = ".eval"
MARK = "memorydojo"


def write_inspect(runs: "Sequence[Run]", path: str | os.PathLike[str], *, judge: str | None = None) -> Path:
    """Writes one log with one sample for each run, a span for each session, and memory reads and writes as events.

    Sample scores are what each run adds to a metric (``inserted``, ``reached``, and counts over sessions with their
    denominators); the log's metrics are those of `memorydojo.metrics.summarize`, by memory system, model and condition,
    with their intervals. The log is made in memory: export a large sweep in parts.

    Args:
        runs: Saved runs.
        path: A file that ends in ``.eval``. An earlier export in that place is replaced.
        judge: Whose labels to use; None for the offline judge.

    Returns:
        The file.

    Raises:
        InvalidInputError: There are no runs, or the place holds something else.
        MissingPackageError: ``inspect_ai`` is not installed.
        SavedRunError: A run cannot be read, has no labels of this judge, or the file cannot be written.
    """
    check_runs(runs)
    target = Path(path)
    if target.suffix.lower() != SUFFIX:
        raise InvalidInputError(f"an Inspect log is a file that ends in {SUFFIX}; {target.name[:80]!r} does not")
    if not len(runs):
        raise InvalidInputError("there are no runs to export; make some with: memorydojo run")
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise MissingPackageError("inspect_ai", "writing Inspect logs", "inspect") from error
    from memorydojo.export._inspect_log import eval_log

    with new_file(target, _is_log) as temporary:
        # Inspect tells its formats apart by the suffix, which the temporary file keeps.
        write_eval_log(eval_log(runs, OFFLINE_JUDGE if judge is None else judge), temporary)
    return target


def _is_log(path: Path) -> bool:
    """Whether an existing file is a log that was exported here."""
    from inspect_ai.log import read_eval_log

    try:
        metadata: dict[str, Any] = read_eval_log(path, header_only=True).eval.metadata or {}
    except Exception:  # whatever it is that makes a file no log
        return False
    return MARK in metadata
