"""A saved search to read: its candidates, its outcome, and what it looks like."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo._display import counted
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.optimizer.candidate import Malformed, Proposal, Trial
from memorydojo.optimizer.saved import (
    EVALUATION,
    Evaluated,
    Event,
    Manifest,
    Proposed,
    SearchSpec,
    Selected,
    Stopped,
    Validated,
    read_events,
    read_manifest,
)
from memorydojo.optimizer.search import Cost
from memorydojo.optimizer.selection import Selection
from memorydojo.runs.collection import Runs, load_runs
from memorydojo.view import Change, View, Viewed

if TYPE_CHECKING:
    import pandas as pd

PAYLOAD = "selected.json"


class Search(Viewed):
    """A saved search, whole or interrupted.

    Args:
        directory: Its directory.

    Attributes:
        directory: Its directory.
        manifest: What it is.
        events: What happened, in order.

    Raises:
        SavedRunError: The directory holds no search, or a damaged one.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.manifest: Manifest = read_manifest(self.directory)
        self.events: list[Event] = read_events(self.directory)[0]

    @property
    def id(self) -> str:
        """Its id, made from its specification."""
        return self.manifest.search_id

    @property
    def spec(self) -> SearchSpec:
        """What was asked for."""
        return self.manifest.spec

    @cached_property
    def tested(self) -> list[Trial]:
        """The candidates that were tested, with their feedback, in order."""
        return [Trial(candidate=e.candidate, feedback=e.feedback) for e in self.events if isinstance(e, Evaluated)]

    def __getitem__(self, candidate: str) -> Trial:
        """A tested candidate by its id.

        Raises:
            UnknownNameError: No candidate with this id was tested.
        """
        by_id = {one.candidate.id: one for one in self.tested}
        if candidate not in by_id:
            raise UnknownNameError("candidate", candidate, by_id)
        return by_id[candidate]

    @property
    def complete(self) -> bool:
        """Whether it came to its end."""
        return any(isinstance(event, Selected) for event in self.events)

    @property
    def stopped(self) -> str | None:
        """Why its budget stopped it; None if it came to its end, or was interrupted otherwise."""
        last = self.events[-1] if self.events else None
        return last.reason if isinstance(last, Stopped) else None

    @property
    def selection(self) -> Selection | None:
        """The outcome; of a stopped search the one among what was tested. None if there is none yet."""
        last = self.events[-1] if self.events else None
        return last.selection if isinstance(last, Selected | Stopped) else None

    @property
    def selected(self) -> Trial | None:
        """What it ends with; None if there is no outcome, or nobody is eligible."""
        found = self.selection
        return self[found.selected] if found is not None and found.selected is not None else None

    @property
    def best_seed(self) -> Trial | None:
        """The strongest eligible seed; None if there is none."""
        found = self.selection
        return self[found.best_seed] if found is not None and found.best_seed is not None else None

    @property
    def cost(self) -> Cost:
        """The calls and tokens that it took, its auxiliary runs included."""
        return Cost.of(self.events)

    def runs(self) -> Runs:
        """The auxiliary runs.

        Raises:
            SavedRunError: They cannot be read.
        """
        return load_runs(self.directory / EVALUATION)

    def rejections(self) -> Iterator[tuple[int, Proposal | Malformed, tuple[str, ...]]]:
        """Every draft that was not valid: its round, the draft, and the reasons."""
        drafts = {e.round: e.drafts for e in self.events if isinstance(e, Proposed)}
        for event in self.events:
            if isinstance(event, Validated):
                for draft, reasons in zip(drafts[event.round], event.reasons, strict=True):
                    if reasons:
                        yield event.round, draft, reasons

    def table(self) -> "pd.DataFrame":
        """One row a tested candidate; see `memorydojo.optimizer.show.table`."""
        from memorydojo.optimizer.show import table

        return table(self)

    def plot_data(self) -> "pd.DataFrame":
        """BRT and task utility by round; see `memorydojo.optimizer.show.plot_data`."""
        from memorydojo.optimizer.show import plot_data

        return plot_data(self)

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draws BRT and task utility by round into a file; its ending decides the format.

        Raises:
            MissingPackageError: matplotlib is not installed.
            InvalidInputError: No candidate was tested yet.
        """
        from memorydojo.optimizer.show import plot

        return plot(self, Path(path))

    def lineage(self, candidate: str | None = None) -> list[str]:
        """A candidate's ancestors and itself, the oldest first; of the selected one if none is named.

        Raises:
            UnknownNameError: No candidate with this id was tested.
        """
        from memorydojo.optimizer.show import lineage

        return lineage(self, candidate)

    def difference(self) -> list[Change]:
        """The words that the selected candidate has changed since the strongest seed, in order."""
        from memorydojo.optimizer.show import difference

        return difference(self)

    def payload(self) -> Payload:
        """What the search ends with, as a payload for the benchmark objective.

        Raises:
            InvalidInputError: There is no outcome, or nobody is eligible.
        """
        found = self.selected
        if found is None:
            why = self.selection.reason if self.selection is not None else "the search has not come to its end"
            raise InvalidInputError(f"the search in {self.directory} selected no payload: {why}")
        if found.candidate.kind == "seed":
            return next(payload for payload in self.spec.seeds if payload.id == found.candidate.id)
        name = f"optimized-{self.id.rpartition('--')[2]}"
        return Payload(id=name, objective=self.spec.objective, text=found.candidate.text, source="optimized")

    def write_payload(self, path: str | os.PathLike[str] | None = None) -> Path | None:
        """Writes what the search ends with to a file that runs and sweeps take.

        Args:
            path: The file, ending in ``.json``; ``selected.json`` in the search's directory if None.

        Returns:
            The file; None if there is no outcome yet, or nobody is eligible.
        """
        found = self.selected
        if found is None:
            return None
        spec = self.spec
        seed = self.best_seed
        provenance = {
            "search": self.id,
            "candidate": found.candidate.id,
            "memory": spec.memory,
            "model": spec.model,
            "strategy": spec.strategy,
            "simulated": self.manifest.simulated,
            "complete": self.complete,
            "auxiliary": found.feedback.counts.model_dump(),
            "auxiliary_of_best_seed": seed.feedback.counts.model_dump() if seed is not None else None,
        }
        return self.payload().to_file(path or self.directory / PAYLOAD, provenance=provenance)

    def view(self) -> View:
        """Its candidates, the outcome, and what changed since the best seed."""
        from memorydojo.optimizer.show import view

        return view(self)

    def _repr_html_(self) -> str:
        """Table, lineage and difference, for notebooks; every text is escaped."""
        from memorydojo.optimizer.show import page

        return page(self)

    def __repr__(self) -> str:
        state = "complete" if self.complete else "stopped by its budget" if self.stopped else "interrupted"
        note = ", simulated" if self.manifest.simulated else ""
        return f"<Search {self.id}: {counted(len(self.tested), 'candidate')} tested, {state}{note}>"


def load_search(directory: str | os.PathLike[str]) -> Search:
    """Reads a saved search.

    Raises:
        SavedRunError: The directory holds no search, or a damaged one.
    """
    return Search(directory)
