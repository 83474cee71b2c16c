"""Judging saved runs with a language model, beside the labels that they have."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.errors import InvalidInputError, SavedRunError
from memorydojo.judging._exact import exact
from memorydojo.judging._examiner import Examiner, Question
from memorydojo.judging._prompts import PAYLOAD
from memorydojo.judging._reach import count_everything, reached_texts
from memorydojo.judging.labelling import Facts, answers_version, label_run
from memorydojo.judging.labels import OFFLINE_JUDGE, Judging, Labels, labels_name
from memorydojo.judging.llm import RULES, Collector, LLMJudge
from memorydojo.judging.overlap import OverlapJudge
from memorydojo.judging.store import Spent, total
from memorydojo.models.access import Access, Replay
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.objective import Objective

if TYPE_CHECKING:
    from memorydojo.runs import Run

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class JudgeReport:
    """What judging some runs took.

    Attributes:
        labels: The name of the labels.
        runs: How many runs have them now.
        kept: Of these, runs that had them before.
        judging: The sums over all runs that have such an account; None for the offline judge.
    """

    labels: str
    runs: int
    kept: int
    judging: Judging | None

    @property
    def saved(self) -> float | None:
        """The share of calls that judging each text once saved, of one call for everything; None without any."""
        if self.judging is None or not self.judging.mentions:
            return None
        return 1 - sum(used.calls + used.errors for used in self.judging.usage) / self.judging.mentions


def judge_runs(
    directory: str | Path,
    judge: str,
    *,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    judgements: str | Path | None = None,
    objectives: Mapping[str, Objective] | None = None,
    workers: int = 8,
    again: bool = False,
    retry_errors: bool = False,
    progress: Progress | None = None,
) -> JudgeReport:
    """Labels the runs of a directory with a judge, beside the labels that they have. No fact is touched.

    A text is judged once, in whatever snapshots, sessions and runs it occurs. What was judged is kept at once, so that
    the same call goes on where an interrupted one was left; runs that have this judge's labels are passed over.

    Args:
        directory: The directory of the runs.
        judge: A model by its name in ``models``, or ``"overlap"`` for the offline judge.
        models: Which models there are.
        keys: Keys of endpoints that are not in the environment.
        replay: ``"off"``, ``"prefer"`` or ``"only"``: where the answers come from that are not judgements yet.
        answers: The file of recorded answers; ``answers.sqlite`` in ``directory`` if it is not given.
        judgements: The file of judgements; ``judgements.sqlite`` in ``directory`` if it is not given. Several
            directories can share one.
        objectives: The objectives to evaluate; `memorydojo.objectives` if they are not given.
        workers: Most questions under way at once.
        again: Also label runs anew that have this judge's labels. Judgements that are kept are used.
        retry_errors: Ask again what there was no usable answer about, and label the runs anew that have such texts.
        progress: Called after each run with the number of runs done, of all, and the run's id.

    Returns:
        What it took.

    Raises:
        UnknownNameError: No model has this name, or an attack's objective is not among the objectives.
        InvalidInputError: A key is missing, the model cannot judge, or ``workers`` is no count.
        EndpointDownError: The model cannot be asked. What was judged is kept; call again to go on.
        SavedRunError: The directory, a run or a store cannot be used.
    """
    from memorydojo.runs import load_runs

    if workers < 1:
        raise InvalidInputError(f"workers must be at least 1, not {workers}")
    if objectives is None:
        from memorydojo.shipped import objectives as shipped

        objectives = shipped
    runs = load_runs(directory)
    if judge == OFFLINE_JUDGE:
        if models is not None and judge in models:
            raise InvalidInputError(f"{judge!r} is the offline judge; give the model of that name another one")
        return _offline(runs, objectives, again=again, progress=progress)
    examiner = Examiner(
        labels_name(judge),
        RULES,
        judge,
        access=Access(
            models=models or Models(),
            keys=keys or Keys(),
            replay=replay,
            answers=Path(answers) if answers is not None else None,
        ),
        directory=Path(directory),
        judgements=Path(judgements) if judgements is not None else None,
        retry_errors=retry_errors,
    )
    with closing(examiner), ThreadPoolExecutor(workers, thread_name_prefix="memorydojo-judge") as pool:
        bench = _Bench(examiner, objectives, pool)
        return bench.judge(runs, again=again, retry_errors=retry_errors, progress=progress)


def _offline(
    runs: "Sequence[Run]", objectives: Mapping[str, Objective], *, again: bool, progress: Progress | None
) -> JudgeReport:
    judge, kept = OverlapJudge(), 0
    for number, run in enumerate(runs, start=1):
        if not again and _current(run, judge, objectives) is not None:
            kept += 1
        else:
            run.save_labels(label_run(run, judge=judge, objectives=objectives))
        if progress is not None:
            progress(number, len(runs), run.id)
    return JudgeReport(labels=judge.id, runs=len(runs), kept=kept, judging=None)


def _current(run: "Run", judge: OverlapJudge | LLMJudge, objectives: Iterable[str]) -> Labels | None:
    """The labels of a run, if they are this judge's, as it is now, and of the sessions that are saved."""
    if not run.has_labels(judge.id, version=judge.version, objectives=objectives, answers=answers_version(judge)):
        return None
    try:
        return run.labels(judge.id)
    except SavedRunError:
        return None  # of other sessions: the run has been begun anew, or has lost its last line


class _Bench:
    """One judging of many runs."""

    def __init__(self, examiner: Examiner, objectives: Mapping[str, Objective], pool: ThreadPoolExecutor) -> None:
        self._examiner, self._objectives, self._pool = examiner, objectives, pool
        self._judge = LLMJudge(examiner)

    def judge(
        self, runs: "Sequence[Run]", *, again: bool, retry_errors: bool, progress: Progress | None
    ) -> JudgeReport:
        from memorydojo.runs import Run

        kept, accounts = 0, []
        for number, known in enumerate(runs, start=1):
            run = Run(known.directory)  # read anew, so that the sessions of one run at a time are in memory
            labels = None if again else _current(run, self._judge, self._objectives)
            if labels is not None and not (retry_errors and labels.judging and labels.judging.errors):
                kept += 1
            else:
                labels = self._label(run)
                run.save_labels(labels)
            accounts.append(labels.judging)
            if progress is not None:
                progress(number, len(runs), run.id)
        summed = _summed([account for account in accounts if account is not None])
        return JudgeReport(labels=self._judge.id, runs=len(runs), kept=kept, judging=summed)

    def _label(self, run: "Run") -> Labels:
        facts = Facts(run.header, run.sessions, run.history, run.question)
        account = f"{run.id} {run.header.started.isoformat()}"
        questions = self._questions(facts)
        self._ask(questions, account)
        judge = LLMJudge(self._examiner, account)
        labels = label_run(facts, judge=judge, objectives=self._objectives)
        judging = self._account(facts, questions, account)
        return labels.model_copy(update={"model": self._examiner.use, "judging": judging})

    def _questions(self, facts: Facts) -> list[Question]:
        collector = Collector()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come again when the run is labelled
            label_run(facts, judge=collector, objectives=self._objectives)
        return list(collector.questions.values())

    def _ask(self, questions: Sequence[Question], account: str) -> None:
        """Asks what is not known, several at a time. After a failure nothing new is asked; what runs is waited for."""
        unknown = [question for question in questions if self._examiner.known(question) is None]
        futures = [self._pool.submit(self._examiner.answer, question, run=account) for question in unknown]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
            wait(futures)
        for future in futures:
            if not future.cancelled():
                future.result()

    def _account(self, facts: Facts, questions: Sequence[Question], account: str) -> Judging:
        insertion = facts.header.plan.insertion
        everything, exactly = 0, 0
        if insertion is not None:
            everything = count_everything(facts.sessions, insertion.session, facts.history)
            texts = {reached.text for reached in reached_texts(facts.sessions, insertion.session, facts.history)}
            exactly = sum(exact(insertion.payload.text, text) for text in texts)
        responses = sum(question.prompt is not PAYLOAD for question in questions)
        verdicts = {self._examiner.key(question): self._examiner.known(question) for question in questions}
        problems: dict[str, int] = {}
        for verdict in verdicts.values():
            if verdict is not None and verdict.problem is not None:
                problems[verdict.problem] = problems.get(verdict.problem, 0) + 1
        spent = self._examiner.spent(account)
        asked = len(spent.keys() & verdicts.keys())
        sums = total(part for parts in spent.values() for part in parts)
        return Judging(
            mentions=everything + responses,
            texts=len(questions) + exactly,
            exact=exactly,
            asked=asked,
            known=len(questions) - asked,
            errors=sum(problems.values()),
            problems=problems,
            usage=sums.usage,
            waiting=sums.waiting,
        )


def _summed(accounts: Sequence[Judging]) -> Judging:
    problems: dict[str, int] = {}
    for account in accounts:
        for problem, count in account.problems.items():
            problems[problem] = problems.get(problem, 0) + count
    sums = total(Spent(account.usage, account.waiting) for account in accounts)
    numbers = ("mentions", "texts", "exact", "asked", "known", "errors")
    return Judging(
        **{name: sum(getattr(account, name) for account in accounts) for name in numbers},
        problems=problems,
        usage=sums.usage,
        waiting=sums.waiting,
    )
