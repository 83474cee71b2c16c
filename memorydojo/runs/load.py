"""Reading saved runs, whole or interrupted, without AgentDojo or any memory system."""

import json
import os
import shlex
import tempfile
import warnings
import webbrowser
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from memorydojo._base import reason
from memorydojo._display import counted, plain
from memorydojo.errors import SavedRunError
from memorydojo.history import History
from memorydojo.judging.labels import LABELS_SCHEMA_VERSION, OFFLINE_JUDGE, Judging, Labels, labels_of
from memorydojo.record import Snapshot
from memorydojo.runs._files import check_schema, read_json, shown
from memorydojo.runs._planned import check_history, check_labels, check_question, check_session
from memorydojo.runs.histories import saved_history
from memorydojo.runs.model import (
    SCHEMA_VERSION,
    HistoryResult,
    QuestionResult,
    RunEnd,
    RunHeader,
    RunPlan,
    SessionResult,
)
from memorydojo.runs.store import (
    END,
    HEADER,
    HISTORY,
    LABELS,
    QUESTION,
    SESSIONS,
    write_labels,
)
from memorydojo.view import View, Viewed

if TYPE_CHECKING:
    pass

_M = TypeVar("_M", bound=BaseModel)


class Run(Viewed):
    """A saved run: its facts, and the labels beside them. Everything is read when it is first asked for.

    Args:
        directory: The folder of the run.

    Attributes:
        directory: The folder of the run.

    Raises:
        SavedRunError: The header is missing.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        if not (self.directory / HEADER).exists():
            raise SavedRunError(
                f"{shown(self.directory)} is no saved run: it has no {HEADER}. Restore the file from a copy, "
                "or remove the folder and run again"
            )

    @cached_property
    def header(self) -> RunHeader:
        """What was saved before the first session.

        Raises:
            SavedRunError: It is damaged, of a newer schema, or not of the run that the folder is named after.
        """
        header = _parse(self.directory / HEADER, RunHeader, SCHEMA_VERSION)
        if header.run_id != self.directory.name:
            raise SavedRunError(
                f"{shown(self.directory)} holds the run {plain(header.run_id)!r}: it was renamed or copied, and "
                "would count twice. Give the folder its run's name back, or move it out of the directory of runs"
            )
        return header

    @property
    def id(self) -> str:
        """The run's id, unique within its directory of runs."""
        return self.directory.name

    @property
    def plan(self) -> RunPlan:
        """What was asked for."""
        return self.header.plan

    @cached_property
    def end(self) -> RunEnd | None:
        """How the run ended; None if it was interrupted or is still being written."""
        return _parse(self.directory / END, RunEnd, None) if (self.directory / END).exists() else None

    @property
    def complete(self) -> bool:
        """Whether the run has come to its end, be it stopped by a failed session."""
        return self.end is not None

    @cached_property
    def sessions(self) -> list[SessionResult]:
        """The sessions that were begun, in order.

        A last line without its newline is what a crash leaves: it is not read, with a warning.

        Raises:
            SavedRunError: A line is damaged, missing or not of this plan.
        """
        return self._read_lines(SESSIONS, SessionResult, check_session, planned=len(self.plan.trajectory))

    @cached_property
    def history(self) -> list[HistoryResult]:
        """What happened with each recorded conversation before the task sessions; empty without a history.

        Raises:
            SavedRunError: As for `sessions`.
        """
        prefix = self.plan.trajectory.history
        if prefix is None:
            return []
        return self._read_lines(HISTORY, HistoryResult, check_history, planned=prefix.n_sessions)

    @cached_property
    def question(self) -> QuestionResult | None:
        """What came of the held-out question; None without one, and if the run ended before it was asked.

        Raises:
            SavedRunError: The file is damaged, not of this plan, or lost.
        """
        path, prefix = self.directory / QUESTION, self.plan.trajectory.history
        if path.exists():
            result = _parse(path, QuestionResult, None)
            check_question(result, self.plan, where=shown(path))
            return result
        if prefix is not None and self.end is not None and self.end.status == "completed":
            raise SavedRunError(
                f"{shown(path)} is missing, but {END} says that the run was completed. Restore the file from a copy"
            )
        return None

    @property
    def ran_whole(self) -> bool:
        """Whether every session of the run, of its history too, and its question ran to their ends."""
        completed = [told.completed for told in self.history] + [session.completed for session in self.sessions]
        completed += [self.question.completed] if self.question is not None else []
        return all(completed) and len(self.sessions) == len(self.plan.trajectory)

    def recorded_history(self) -> History | None:
        """The recorded conversations themselves, which a directory of runs keeps once for all runs; None without any.

        Raises:
            SavedRunError: The file is missing or damaged; everything else of the run can still be read.
        """
        prefix = self.plan.trajectory.history
        return None if prefix is None else saved_history(self.directory.parent.parent, prefix)

    def _read_lines(self, name: str, model: type[_M], check: Callable[..., None], *, planned: int) -> list[_M]:
        path = self.directory / name
        results = []
        for number, line in enumerate(self._lines(path), start=1):
            where = f"{shown(path)}, line {number}"
            try:
                result = model.model_validate(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise SavedRunError(
                    f"{where} is damaged: {_reason(error)}. Restore the file from a copy, or remove the folder "
                    f"{shown(self.directory)} and run again"
                ) from error
            check(result, self.plan, number, where=where)
            results.append(result)
        self._check_whole(len(results), planned, path)
        return results

    def _lines(self, path: Path) -> list[bytes]:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # Killed between the header and the first session.
            return []
        except OSError as error:
            raise SavedRunError(f"cannot read {shown(path)}: {error.strerror or error}") from error
        *lines, torn = data.split(b"\n")
        if torn:
            warnings.warn(
                f"{shown(path)}: the last line is incomplete, as after a crash; it is left out "
                f"({len(lines)} whole sessions before it are read)",
                stacklevel=2,
            )
        return lines

    def _check_whole(self, found: int, planned: int, path: Path) -> None:
        if self.end is not None and self.end.status == "completed" and found != planned:
            raise SavedRunError(
                f"{shown(path)} holds {found} sessions, but {END} says that all {planned} were saved: sessions were "
                f"lost. Restore the file from a copy, or remove {shown(path.with_name(END))} to read what is left "
                "as an interrupted run"
            )

    def snapshots(self) -> list[Snapshot]:
        """The memory after the write of each task session that was begun, rebuilt from the saved differences."""
        found, now = [], self.memory_after_history()
        for session in self.sessions:
            now = now.apply(session.difference)
            found.append(now)
        return found

    def memory_after_history(self) -> Snapshot:
        """The memory that the first task session finds, rebuilt from the saved differences; empty without a history."""
        now = Snapshot()
        for result in self.history:
            now = now.apply(result.difference)
        return now

    def judges(self) -> list[str]:
        """Ids of the judges whose labels are saved with the run."""
        return sorted(path.stem for path in (self.directory / LABELS).glob("[!.]*.json"))

    def labels(self, judge: str | None = None) -> Labels:
        """The saved labels of a judge.

        Args:
            judge: Name of the judge, a model's as in its models file; None for the offline judge.

        Raises:
            SavedRunError: The run has no labels of this judge, or they do not belong to its facts.
        """
        labels = self._saved_labels(OFFLINE_JUDGE if judge is None else judge)
        self._check_labels(labels, self.directory / LABELS / f"{labels.judge}.json")
        return labels

    def _saved_labels(self, judge: str) -> Labels:
        asked, judge = judge, labels_of(judge)
        path = self.directory / LABELS / f"{judge}.json"
        if not path.exists():
            known = [f"{name}, the offline judge" if name == OFFLINE_JUDGE else name for name in self.judges()]
            raise SavedRunError(
                f"run {self.id!r} has no labels of the judge {judge!r} (it has: {'; '.join(known) or 'none'}); "
                f"name one that it has, or label it with: {judge_again(asked, self.directory.parent.parent)} (or with "
                "your own judge: memorydojo.judging.label_run and Run.save_labels)"
            )
        return _parse(path, Labels, LABELS_SCHEMA_VERSION, remedy=self._label_anew(asked))

    def _label_anew(self, judge: str) -> str:
        """What mends a file of labels: they can be made again from the facts."""
        return f"Labels can be made again with: {judge_again(judge, self.directory.parent.parent)} --again"

    def judging(self, judge: str) -> Judging | None:
        """What a judge was asked for this run, if it is a model; also if its labels no longer belong to the facts.

        Raises:
            SavedRunError: The run has no labels of this judge, or the file is damaged.
        """
        return self._saved_labels(judge).judging

    def _check_labels(self, labels: Labels, path: Path) -> None:
        try:
            check_labels(labels, self.header, [session.session for session in self.sessions], path)
        except SavedRunError as error:
            raise SavedRunError(f"{error}. {self._label_anew(labels.judge)}") from None

    def has_labels(self, judge: str, *, version: str, objectives: Iterable[str], answers: str | None = None) -> bool:
        """Whether labels by this version of a judge are saved that evaluate at least these objectives.

        Args:
            judge: Id of the judge.
            version: Its version.
            objectives: The objectives.
            answers: Name and version of the judge of answers; it matters for a run with a held-out question.

        Reads no session: whether the labels belong to the facts is checked when they are used.
        """
        path = self.directory / LABELS / f"{judge}.json"
        if not path.exists():
            return False
        saved = _read(path, self._label_anew(judge))
        evaluated, answer = saved.get("objectives"), saved.get("answer")
        marked = not (self.plan.trajectory.history is not None and answers is not None) or (
            isinstance(answer, dict) and answer.get("version") == answers
        )
        return (
            marked
            and saved.get("judge_version") == version
            and isinstance(evaluated, dict)
            and evaluated.keys() >= {*objectives}
        )

    def save_labels(self, labels: Labels) -> None:
        """Saves labels beside the facts; earlier labels of the same judge are replaced.

        Raises:
            SavedRunError: The labels belong to another run, or cannot be written.
        """
        write_labels(self.directory, labels, self.header, [session.session for session in self.sessions])

    def show(self, path: str | os.PathLike[str] | None = None, *, judge: str | None = None) -> Path:
        """Writes the trace of the run and opens it in a browser (``docs/trace.md``).

        Args:
            path: Where to write it; None for a file in a new temporary directory.
            judge: Whose labels to show; None for the offline judge.

        Returns:
            The file.

        Raises:
            SavedRunError: The run cannot be read or the file cannot be written.
            InvalidInputError: The file exists and is no trace.
        """
        from memorydojo.viewer import write_trace

        target = write_trace(
            self, Path(tempfile.mkdtemp(prefix="memorydojo-")) / "trace.html" if path is None else path, judge=judge
        )
        webbrowser.open(target.resolve().as_uri())
        return target

    def view(self) -> View:
        """One row for each planned session: what was stored and retrieved of the payload, and what the agent did."""
        from memorydojo.runs._view import run_view

        return run_view(self)

    def _repr_html_(self) -> str:
        """The trace in a sandboxed frame, for notebooks."""
        from memorydojo.viewer import frame, trace_page

        return frame(trace_page(self))

    def __repr__(self) -> str:
        state = self.end.status if self.end else "interrupted"
        note = ", simulated" if self.header.simulated else ""
        return f"<Run {plain(self.id)}: {counted(len(self.plan.trajectory), 'planned session')}, {state}{note}>"


def judge_again(judge: str, directory: Path) -> str:
    """The command that labels the runs of a directory by a judge."""
    models = "" if judge == OFFLINE_JUDGE else " --models FILE"
    return f"memorydojo judge {shlex.quote(shown(directory))} --judge {shlex.quote(plain(judge))}{models}"


_FROM_A_COPY = "Restore the file from a copy"


def _parse(path: Path, model: type[_M], supported: int | None, *, remedy: str = _FROM_A_COPY) -> _M:
    data = _read(path, remedy)
    if supported is not None:
        version = data.get("schema_version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise SavedRunError(f"{shown(path)} has no valid schema_version: {plain(repr(version), 80)}. {remedy}")
        check_schema(version, supported, path)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise SavedRunError(f"{shown(path)} is damaged: {_reason(error)}. {remedy}") from error


def _read(path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file, with another remedy for a damaged one than a copy."""
    try:
        return read_json(path)
    except SavedRunError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise  # nothing is known to be damaged
        what = "holds no JSON object" if cause is None else f"is no JSON: {plain(str(cause), 300)}"
        raise SavedRunError(f"{shown(path)} {what}. {remedy}") from error


def _reason(error: Exception) -> str:
    """What is wrong, on one line, without the hostile text around it."""
    return reason(error) if isinstance(error, ValidationError) else plain(str(error), 300)
