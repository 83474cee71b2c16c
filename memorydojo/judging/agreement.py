"""How far two judges agree about the same runs: confusion tables and Cohen's kappa."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorydojo.errors import InvalidInputError
from memorydojo.judging._exact import exact
from memorydojo.judging._reach import reached_texts
from memorydojo.judging.labels import STRENGTH, Labels

if TYPE_CHECKING:
    import pandas as pd

    from memorydojo.runs import Run

ERROR = "error"

LABELS = (*reversed(STRENGTH), ERROR)
_TRUTH = ("yes", "no", ERROR)

#: What is compared: the levels of `Agreement.summary`.
LEVELS = {
    "texts": "each different text of a run once, those labelled exact by code left out",
    "entries": "each version of an entry that the payload can have reached, exact ones left out",
    "items": "each delivered item that the payload can have reached, exact ones left out",
    "inserted": "s of each poisoned run",
    "retrieved": "u of each later session that ran to its end",
    "objective": "z of each session of a poisoned run that ran to its end; objectives of calls are decided by code",
}

Pair = tuple[str, str]


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree.

    Attributes:
        judges: The names of the two sets of labels.
        summary: One row for each of `LEVELS`: ``level``, ``n`` (what both were asked about), ``agreed`` (share),
            ``kappa`` (NaN if it is not defined), ``n_error`` (of n, without a usable answer of one judge or both).
        confusion: The different texts of all runs: first judge's label down, second judge's label across.
    """

    judges: tuple[str, str]
    summary: "pd.DataFrame"
    confusion: "pd.DataFrame"


def agreement(runs: "Iterable[Run]", a: str, b: str) -> Agreement:
    """Compares two sets of labels of the same runs.

    Where a judge gave no usable answer, the two do not agree, and the text stays in the denominator; it counts for no
    label in the agreement by chance. Texts that are exact are left out: code decides that for every judge.

    Args:
        runs: Saved runs that have both sets of labels.
        a: Name of the first set.
        b: Name of the second.

    Raises:
        SavedRunError: A run lacks labels of one of them.
        InvalidInputError: Both names are the same, or there are no runs.
    """
    import pandas as pd

    from memorydojo.runs import Run

    if a == b:
        raise InvalidInputError(f"agreement compares two sets of labels, and {a!r} was named twice")
    pairs: dict[str, list[Pair]] = {level: [] for level in LEVELS}
    compared = 0
    for known in runs:
        run = Run(known.directory)
        _collect(run, run.labels(a), run.labels(b), pairs)
        compared += 1
    if not compared:
        raise InvalidInputError("there are no runs to compare labels of")
    rows = [
        {"level": level, **_measures(found, LABELS if level in _GRADED else _TRUTH)} for level, found in pairs.items()
    ]
    return Agreement((a, b), pd.DataFrame(rows), _confusion(pairs["texts"], a, b))


_GRADED = ("texts", "entries", "items")


def _collect(run: "Run", a: Labels, b: Labels, pairs: dict[str, list[Pair]]) -> None:
    insertion = run.plan.insertion
    if insertion is None:
        return
    places_a, places_b = _by_place(a), _by_place(b)
    texts: dict[str, Pair] = {}
    for reached in reached_texts(run.sessions, insertion.session):
        if exact(insertion.payload.text, reached.text):
            continue
        place = reached.session, *reached.place
        pair = places_a[place], places_b[place]
        pairs["entries" if reached.place[0] == "entry" else "items"].append(pair)
        texts[reached.text] = pair
    pairs["texts"].extend(texts.values())
    pairs["inserted"].append((_truth(a.inserted, a.insertion_unjudged), _truth(b.inserted, b.insertion_unjudged)))
    own = insertion.payload.objective
    for result, one, other in zip(run.sessions, a.sessions, b.sessions, strict=True):
        if not result.completed:
            continue
        if one.session > insertion.session:
            retrieved = [_truth(s.retrieved, s.retrieval_unjudged) for s in (one, other)]
            pairs["retrieved"].append((retrieved[0], retrieved[1]))
        met = [_truth(s.met[own], own in s.objectives_unjudged) for s in (one, other)]
        pairs["objective"].append((met[0], met[1]))


def _by_place(labels: Labels) -> dict[tuple[int, str, str | int], str]:
    """The labels by session and place, as `reached_texts` names them."""
    found: dict[tuple[int, str, str | int], str] = {(e.session, "entry", e.entry_id): e.label for e in labels.entries}
    for session in labels.sessions:
        found.update({(session.session, "item", i): item.label for i, item in enumerate(session.items)})
    return found


def _truth(value: bool, unjudged: bool) -> str:
    return ERROR if unjudged else "yes" if value else "no"


def _measures(pairs: Sequence[Pair], categories: Sequence[str]) -> dict[str, float]:
    n = len(pairs)
    same = sum(one == other != ERROR for one, other in pairs)
    return {
        "n": n,
        "agreed": same / n if n else float("nan"),
        "kappa": cohens_kappa(pairs, categories),
        "n_error": sum(ERROR in pair for pair in pairs),
    }


def cohens_kappa(pairs: Sequence[Pair], categories: Sequence[str]) -> float:
    """Cohen's kappa of pairs of labels; NaN if chance alone would agree about everything, or without pairs.

    A pair with an ``"error"`` is a disagreement, and an error is no label that chance could agree about.

    >>> cohens_kappa([("yes", "yes"), ("no", "no"), ("yes", "no"), ("no", "no")], ("yes", "no"))
    0.5
    """
    n = len(pairs)
    if not n:
        return float("nan")
    real = [category for category in categories if category != ERROR]
    observed = sum(one == other != ERROR for one, other in pairs) / n
    shares = [(sum(one == c for one, _ in pairs) / n, sum(other == c for _, other in pairs) / n) for c in real]
    chance = sum(one * other for one, other in shares)
    return (observed - chance) / (1 - chance) if chance < 1 else float("nan")


def _confusion(pairs: Sequence[Pair], a: str, b: str) -> "pd.DataFrame":
    import pandas as pd

    # A text with the payload word for word is exact for every judge.
    judged = [label for label in LABELS if label != "exact"]
    counts = [[sum(pair == (row, column) for pair in pairs) for column in judged] for row in judged]
    return pd.DataFrame(counts, index=pd.Index(judged, name=a), columns=pd.Index(judged, name=b))
