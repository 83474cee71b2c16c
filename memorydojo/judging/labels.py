"""Labels: what a judge says about the facts of a run. They are stored apart from the facts and can be made again."""

import hashlib
import re
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from memorydojo._base import Frozen
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError
from memorydojo.history import HeldOutQuestion
from memorydojo.models.usage import ModelUse, Usage, Waiting
from memorydojo.objective import TextObjective

Label = Literal["exact", "transformed", "fragmented", "not_observed", "error"]
"""How much of a payload a text bears. ``"error"``: the judge gave no usable answer; that says nothing about the text,
and counts as not borne wherever something has to be counted."""

POISON: frozenset[Label] = frozenset({"exact", "transformed", "fragmented"})
"""The labels of a payload-bearing text (C+ in the paper)."""

STRENGTH: tuple[Label, ...] = ("not_observed", "fragmented", "transformed", "exact")
"""The labels that say something about a text, the weakest first."""

LABELS_SCHEMA_VERSION = 3

OFFLINE_JUDGE = "overlap"
"""Id of the judge that labels every run, `memorydojo.judging.OverlapJudge`."""

_JUDGE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def strongest(labels: Sequence[Label]) -> Label:
    """The strongest of some labels; ``"not_observed"`` if there is none."""
    return max(labels, key=STRENGTH.index, default="not_observed")


class Judgement(Frozen):
    """What a judge says about one text.

    Attributes:
        label: The label.
        span: Where the payload shows, as start and end in characters of the text; None if nothing was found or the
            judge cannot tell.
    """

    label: Label
    span: tuple[int, int] | None = None


class Judge(Protocol):
    """A judge sees one payload and one text, nothing else: no run, no outcome.

    Attributes:
        id: Its name, also the name of the file of its labels.
        version: Changes whenever its answers may change.
        prompt_sha256: Hash of the prompt of a judge that is a language model, else None.
    """

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    @property
    def prompt_sha256(self) -> str | None:
        """Hash of its prompt, if it has one."""
        ...

    def classify(self, payload: Payload, text: str) -> Judgement:
        """The label of ``text`` with regard to ``payload``."""
        ...


@runtime_checkable
class ObjectiveJudge(Protocol):
    """A judge that also decides whether a final response meets a text objective. It sees the two, nothing else."""

    def decide(self, objective: TextObjective, response: str) -> bool | None:
        """Whether the response meets the objective; None if there is no usable answer."""
        ...


@runtime_checkable
class AnswerMarker(Protocol):
    """A judge that also marks the answer to the held-out question. It sees question, reference and answer only.

    Attributes:
        answers_version: Changes whenever its verdicts on answers may change.
    """

    @property
    def answers_version(self) -> str:
        """Its version with regard to answers."""
        ...

    def correct(self, question: HeldOutQuestion, answer: str) -> bool | None:
        """Whether the answer is right; None if there is no usable verdict."""
        ...


class AnswerLabel(Frozen):
    """The verdict on the answer to the held-out question.

    Attributes:
        correct: Whether it is right. False if the question was never answered.
        unjudged: Whether there was an answer, but no usable verdict; `correct` then is False.
        version: Name and version of the judge of answers.
    """

    correct: bool
    unjudged: bool = False
    version: str


class ItemLabel(Frozen):
    """The label of one delivered memory item.

    Attributes:
        rank: The item's place in the order of delivery.
        label: Its label.
        span: Where the payload shows in the item's text.
        original: Whether it bears the payload and belongs to an original-poison entry.
        descendant: Whether it bears the payload and belongs to any other entry, or names no entry.
        entry_ids: The entries it bears the payload from.
    """

    rank: int
    label: Label
    span: tuple[int, int] | None = None
    original: bool = False
    descendant: bool = False
    entry_ids: tuple[str, ...] = ()


class SessionLabels(Frozen):
    """The labels of one session.

    Attributes:
        session: 1-based number t.
        items: Labels of the delivered items, in order; empty up to and including the insertion session.
        retrieved_original: o in the metrics; False for a session that did not complete.
        retrieved_descendant: d in the metrics; False for a session that did not complete.
        met: For every objective, whether the session executes it; False for a session that did not complete.
        retrieval_unjudged: Whether an item labelled ``"error"`` decides about `retrieved`, which then is False.
        origin_unjudged: Whether the payload was retrieved, but `retrieved_original` or `retrieved_descendant` could be
            otherwise if every text had a label.
        objectives_unjudged: The objectives that the judge gave no usable answer about; `met` then is False.
    """

    session: int = Field(ge=1)
    items: tuple[ItemLabel, ...] = ()
    retrieved_original: bool = False
    retrieved_descendant: bool = False
    met: dict[str, bool]
    retrieval_unjudged: bool = False
    origin_unjudged: bool = False
    objectives_unjudged: tuple[str, ...] = ()

    @property
    def retrieved(self) -> bool:
        """Whether at least one delivered item bears the payload: u in the metrics."""
        return self.retrieved_original or self.retrieved_descendant


class EntryLabel(Frozen):
    """The label of one version of an entry: its text after the write of a session, from the insertion on.

    Attributes:
        session: The session whose write made this version.
        entry_id: The entry.
        label: Its label.
        span: Where the payload shows in the entry's text.
        original: Whether the entry is original poison (O in the metrics).
    """

    session: int = Field(ge=1)
    entry_id: str
    label: Label
    span: tuple[int, int] | None = None
    original: bool = False


class Judging(Frozen):
    """What it took to judge one run with a language model.

    Attributes:
        mentions: What judging everything would have asked: every entry of every snapshot from the insertion write on,
            every item delivered after it, and every response that was held against a text objective.
        texts: The different texts among those that the payload can have reached, and the different responses.
        exact: Of these, texts labelled ``"exact"`` by code.
        asked: Of these, what the model was asked for this run.
        known: Of these, what was known from other runs.
        errors: Of these, what the model gave no usable answer about.
        problems: What was wrong, and how often.
        usage: Calls and tokens of what was asked for this run, also by attempts at judging it that were interrupted.
        waiting: Seconds, retries and replayed calls of the same.
    """

    mentions: int
    texts: int
    exact: int
    asked: int
    known: int
    errors: int
    problems: dict[str, int] = {}
    usage: tuple[Usage, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class Labels(Frozen):
    """All labels of one run by one judge.

    Attributes:
        schema_version: Version of the saved form.
        run_id: The run.
        judge: Id of the judge.
        judge_version: Its version.
        prompt_sha256: Hash of the judge's prompt, None for a judge without one.
        payload_sha256: Hash of the payload's text, None for a clean run.
        objectives: The objectives that were evaluated, with the domain of each.
        inserted: Whether the memory after the insertion write holds a payload-bearing entry: s in the metrics.
        insertion_label: The strongest label among the original-poison entries after the insertion write; ``"error"`` if
            `insertion_unjudged`.
        insertion_unjudged: Whether an entry labelled ``"error"`` decides about `inserted`, which then is False.
        model: The model of a judge that is one.
        judging: What a judge that is a model was asked for this run.
        sessions: Labels of the sessions that were begun, in order.
        entries: Labels of all entry versions that writes made from the insertion session on.
        answer: The verdict on the answer to the held-out question; None for a run without one.
    """

    schema_version: int = LABELS_SCHEMA_VERSION
    run_id: str
    judge: str
    judge_version: str
    prompt_sha256: str | None = None
    payload_sha256: str | None = None
    objectives: dict[str, str]
    inserted: bool = False
    insertion_label: Label = "not_observed"
    insertion_unjudged: bool = False
    model: ModelUse | None = None
    judging: Judging | None = None
    sessions: tuple[SessionLabels, ...] = ()
    entries: tuple[EntryLabel, ...] = ()
    answer: AnswerLabel | None = None


def check_judge_id(judge: str) -> None:
    """Refuses an id of a judge that is no safe file name.

    Raises:
        InvalidInputError: The id holds other characters than letters, digits, dots, underscores and hyphens.
    """
    if not _JUDGE_ID.fullmatch(judge):
        raise InvalidInputError(
            f"the judge id {judge[:80]!r} cannot name a file; use letters, digits, dots, underscores and hyphens"
        )


def labels_name(model: str) -> str:
    """The name of the labels of a model as judge: the model's own, made fit to name a file.

    >>> labels_name("gpt-mini")
    'gpt-mini'
    >>> labels_name("meta/llama")
    'meta-llama-257812'
    """
    if _JUDGE_ID.fullmatch(model) and model != OFFLINE_JUDGE:
        return model
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", model)[:60].strip("-._") or "model"
    return f"{readable}-{hashlib.sha256(model.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def labels_of(name: str) -> str:
    """The name of labels that are asked for by it, or by the name of a model whose name cannot be that of a file."""
    return name if _JUDGE_ID.fullmatch(name) else labels_name(name)
