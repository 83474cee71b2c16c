"""Judgements of models, kept by what was judged, so that no text is judged twice by the same judge."""

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from memorydojo._sqlite import SqliteStore
from memorydojo.models.usage import Usage, Waiting

_Sum = TypeVar("_Sum", Usage, Waiting)

#: The file of judgements in a directory of runs.
JUDGEMENTS = "judgements.sqlite"


@dataclass(frozen=True)
class Verdict:
    """What a model said to one question.

    Attributes:
        answer: The answer, or None if it gave none that can be used.
        evidence: The passage that it quoted for it.
        problem: Why there is no answer.
    """

    answer: str | None
    evidence: str = ""
    problem: str | None = None


@dataclass(frozen=True)
class Spent:
    """What the calls about one question took."""

    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class JudgementStore(SqliteStore):
    """Verdicts by question, and what was spent on which run.

    Several threads and processes may write to the file at once; what was recorded survives a kill.

    Args:
        path: The file; it is made if it does not exist.

    Raises:
        SavedRunError: It cannot be opened, or is no such store.
    """

    SCHEMA = """
        CREATE TABLE IF NOT EXISTS verdicts (
            question TEXT PRIMARY KEY, judge TEXT NOT NULL, prompt TEXT NOT NULL, identity TEXT NOT NULL,
            answer TEXT, evidence TEXT NOT NULL, problem TEXT
        ) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS spent (
            run TEXT NOT NULL, judge TEXT NOT NULL, question TEXT NOT NULL, usage TEXT NOT NULL, waiting TEXT NOT NULL
        );
        CREATE INDEX IF NOT EXISTS spent_of_run ON spent (run, judge)
    """
    VERSION = 1
    HOLDS = "judgements"

    def get(self, question: str) -> Verdict | None:
        """The verdict on a question, or None.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database, closing(database.cursor()) as cursor:
            row = cursor.execute(
                "SELECT answer, evidence, problem FROM verdicts WHERE question = ?", (question,)
            ).fetchone()
        return None if row is None else Verdict(*row)

    def put(
        self,
        question: str,
        verdict: Verdict | None,
        *,
        judge: str,
        run: str,
        spent: Spent,
        about: Mapping[str, str],
    ) -> None:
        """Records a verdict and what it took; a later verdict on the same question replaces an earlier one.

        Args:
            question: The question's key.
            verdict: The verdict; None if the model could not be asked.
            judge: The judge's id.
            run: The run that it was asked for.
            spent: What the calls took.
            about: Of what the key is made, for people: the prompt's id, and the rest as JSON.

        Raises:
            SavedRunError: The file cannot be written, as when the disk is full.
        """
        texts = verdict and (verdict.answer, verdict.evidence, verdict.problem)
        with self._access("write") as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                if texts:
                    database.execute(
                        "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)",
                        (question, judge, about["prompt"], about["identity"], *texts),
                    )
                database.execute("INSERT INTO spent VALUES (?, ?, ?, ?, ?)", (run, judge, question, *_written(spent)))
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise

    def spent(self, run: str, judge: str) -> dict[str, list[Spent]]:
        """What was spent on a run by a judge, by question.

        Raises:
            SavedRunError: The file cannot be read.
        """
        with self._access("read") as database, closing(database.cursor()) as cursor:
            rows = cursor.execute(
                "SELECT question, usage, waiting FROM spent WHERE run = ? AND judge = ? ORDER BY rowid", (run, judge)
            ).fetchall()
        found: dict[str, list[Spent]] = {}
        for question, usage, waiting in rows:
            found.setdefault(question, []).append(
                Spent(
                    tuple(Usage.model_validate(one) for one in json.loads(usage)),
                    tuple(Waiting.model_validate(one) for one in json.loads(waiting)),
                )
            )
        return found


def _written(spent: Spent) -> tuple[str, str]:
    return (
        json.dumps([one.model_dump() for one in spent.usage]),
        json.dumps([one.model_dump() for one in spent.waiting]),
    )


def total(parts: Iterable[Spent]) -> Spent:
    """Sums by role and model."""
    usage: dict[tuple[str, str], Usage] = {}
    waiting: dict[tuple[str, str], Waiting] = {}
    for part in parts:
        for used in part.usage:
            usage[used.role, used.model] = _added(usage.get((used.role, used.model)), used)
        for waited in part.waiting:
            waiting[waited.role, waited.model] = _added(waiting.get((waited.role, waited.model)), waited)
    return Spent(tuple(usage[key] for key in sorted(usage)), tuple(waiting[key] for key in sorted(waiting)))


def _added(one: _Sum | None, other: _Sum) -> _Sum:
    if one is None:
        return other
    before = one.model_dump()
    sums = {name: before[name] + value for name, value in other.model_dump().items() if name not in ("role", "model")}
    return one.model_copy(update=sums)
