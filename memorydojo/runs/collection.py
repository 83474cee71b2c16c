"""The runs of a directory."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from memorydojo._display import counted
from memorydojo.errors import UnknownNameError
from memorydojo.judging.labels import OFFLINE_JUDGE
from memorydojo.objective import Objective
from memorydojo.runs.load import Run
from memorydojo.runs.planned import not_begun
from memorydojo.runs.store import END, HEADER, SESSIONS, check_manifest
from memorydojo.view import View, Viewed

if TYPE_CHECKING:
    import pandas as pd


class Runs(Viewed, Sequence[Run]):
    """The runs of a directory, in order of their ids; by position, by slice, or by id.

    Attributes:
        not_begun: The ids of runs that a sweep planned in the directory and did not begin, as after Ctrl-C. No table
            and no metric knows of them: start the sweep again.
    """

    def __init__(self, runs: Sequence[Run], *, not_begun: Sequence[str] = ()) -> None:
        self._runs, self.not_begun = list(runs), tuple(not_begun)
        self._by_id = {run.id: run for run in self._runs}

    @overload
    def __getitem__(self, key: int | str) -> Run: ...
    @overload
    def __getitem__(self, key: slice) -> "Runs": ...
    def __getitem__(self, key: int | str | slice) -> "Run | Runs":
        """A run by position or id, or a part of the runs.

        Raises:
            UnknownNameError: No run has this id.
        """
        if isinstance(key, slice):
            return Runs(self._runs[key])
        if isinstance(key, int):
            return self._runs[key]
        if key not in self._by_id:
            raise UnknownNameError("run", key, self._by_id)
        return self._by_id[key]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def only(self, ids: Iterable[str]) -> "Runs":
        """The runs with these ids, in this order.

        Raises:
            UnknownNameError: No run has one of these ids.
        """
        return Runs([self[identity] for identity in ids])

    def session_table(
        self, judge: str | None = None, *, objectives: Mapping[str, Objective] | None = None
    ) -> "pd.DataFrame":
        """One row for each planned session of each run, also for those that never happened (`memorydojo.runs.table`).

        Args:
            judge: Whose labels to use; None for the offline judge, which labels on the fly the runs that have no
                labels of its yet (nothing is written).
            objectives: The objectives for labelling on the fly; None for `memorydojo.objectives`.

        Raises:
            SavedRunError: A run has no labels of this judge, labels of two versions of it are mixed, or a file is
                damaged.
        """
        from memorydojo.runs.rows import session_table

        return session_table(self._runs, OFFLINE_JUDGE if judge is None else judge, objectives=objectives)

    def view(self) -> View:
        """How many there are of each memory, model, condition and source of the payload, and how they ended."""
        from memorydojo.runs._view import runs_view

        return runs_view(self._runs, left=len(self.not_begun))

    def __repr__(self) -> str:
        complete = sum(run.complete for run in self._runs)
        return f"<{counted(len(self._runs), 'run')}, {complete} of them complete>"


def load_runs(path: str | os.PathLike[str]) -> Runs:
    """The runs in a directory that a run or a sweep was written to. Each is read when it is needed.

    Raises:
        SavedRunError: The directory is missing, holds something else, or is of a newer schema; a run has no header.
    """
    root = Path(path)
    check_manifest(root)
    folders = sorted(root / "runs" / entry.name for entry in _entries(root / "runs") if entry.is_dir())
    return Runs([Run(folder) for folder in folders if _begun(folder)], not_begun=not_begun(root))


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    return list(os.scandir(folder)) if folder.exists() else []


def _begun(folder: Path) -> bool:
    """Whether a run was begun here; a crash can come before its header."""
    return any((folder / name).exists() for name in (HEADER, SESSIONS, END))
