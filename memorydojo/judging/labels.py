"""Labels: what a judge says about the facts of a run. They are stored apart from the facts and can be made again."""

import re
from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import Field

from memorydojo._base import Frozen
from memorydojo.attack import Payload
from memorydojo.errors import InvalidInputError

Label = Literal["exact", "transformed", "fragmented", "not_observed"]

POISON: frozenset[Label] = frozenset({"exact", "transformed", "fragmented"})
"""The labels of a payload-bearing text (C+ in the paper)."""

STRENGTH: tuple[Label, ...] = ("not_observed", "fragmented", "transformed", "exact")
"""All labels, the weakest first."""

LABELS_SCHEMA_VERSION = 1

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
    """

    session: int = Field(ge=1)
    items: tuple[ItemLabel, ...] = ()
    retrieved_original: bool = False
    retrieved_descendant: bool = False
    met: dict[str, bool]

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
        insertion_label: The strongest label among the original-poison entries after the insertion write.
        sessions: Labels of the sessions that were begun, in order.
        entries: Labels of all entry versions that writes made from the insertion session on.
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
    sessions: tuple[SessionLabels, ...] = ()
    entries: tuple[EntryLabel, ...] = ()


def check_judge_id(judge: str) -> None:
    """Refuses an id of a judge that is no safe file name.

    Raises:
        InvalidInputError: The id holds other characters than letters, digits, dots, underscores and hyphens.
    """
    if not _JUDGE_ID.fullmatch(judge):
        raise InvalidInputError(
            f"the judge id {judge[:80]!r} cannot name a file; use letters, digits, dots, underscores and hyphens"
        )
