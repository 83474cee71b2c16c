"""How far two judges agree about the same runs: confusion tables and Cohen's kappa."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memorydojo.errors import InvalidInputError
from memorydojo.judging._exact import exact
from memorydojo.judging._reach import reached_texts
from memorydojo.judging.labels import STRENGTH, Labels

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from memorydojo.metrics._bootstrap import Bootstrap
    from memorydojo.runs import Run

ERROR = "error"

LABELS = (*reversed(STRENGTH), ERROR)
_TRUTH = ("yes", "no", ERROR)

LEVELS = {
    "texts": "each different text of a run once, those labelled exact by code left out",
    "entries": "each version of an entry that the payload can have reached, exact ones left out",
    "items": "each delivered item that the payload can have reached, exact ones left out",
    "inserted": "s of each poisoned run",
    "retrieved": "u of each later session that ran to its end",
    "objective": "z of each session of a poisoned run that ran to its end; objectives of calls are decided by code",
}
"""What is compared: the levels of `Agreement.summary`."""

Pair = tuple[str, str]
Pairs = dict[str, list[Pair]]
"""Pairs of labels by trajectory."""


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree.

    Attributes:
        judges: The names of the two sets of labels.
        summary: One row for each of `LEVELS`: ``level``, ``n`` (what both were asked about), ``agreed`` (share),
            ``kappa`` (NaN if it is not defined), their 95 % intervals ``agreed_low``, ``agreed_high``, ``kappa_low``
            and ``kappa_high`` (cluster bootstrap over trajectories, as in `memorydojo.metrics`; NaN with fewer than two
            trajectories), ``n_error`` (of n, without a usable answer of one judge or both), ``n_trajectories``.
        confusion: The different texts of all runs: first judge's label down, second judge's label across.
    """

    judges: tuple[str, str]
    summary: "pd.DataFrame"
    confusion: "pd.DataFrame"


def agreement(runs: "Iterable[Run]", a: str, b: str, *, replicates: int = 1000, seed: int = 0) -> Agreement:
    """Compares two sets of labels of the same runs.

    Where a judge gave no usable answer, the two do not agree, and the text stays in the denominator; it counts for no
    label in the agreement by chance. Texts that are exact are left out: code decides that for every judge.

    Args:
        runs: Saved runs that have both sets of labels.
        a: Name of the first set.
        b: Name of the second.
        replicates: Replicates of the bootstrap.
        seed: Seed of the bootstrap.

    Raises:
        SavedRunError: A run lacks labels of one of them.
        InvalidInputError: Both names are the same, there are no runs, or the bootstrap's numbers are out of range.
    """
    import pandas as pd

    from memorydojo.metrics._bootstrap import Bootstrap
    from memorydojo.runs import Run

    bootstrap = Bootstrap(replicates=replicates, seed=seed)

    if a == b:
        raise InvalidInputError(f"agreement compares two sets of labels, and {a!r} was named twice")
    found: dict[str, Pairs] = {level: {} for level in LEVELS}
    compared = 0
    for known in runs:
        run = Run(known.directory)
        pairs: dict[str, list[Pair]] = {level: [] for level in LEVELS}
        _collect(run, run.labels(a), run.labels(b), pairs)
        for level, those in pairs.items():
            found[level].setdefault(run.plan.trajectory.id, []).extend(those)
        compared += 1
    if not compared:
        raise InvalidInputError("there are no runs to compare labels of")
    rows = [
        {"level": level, **_measures(those, LABELS if level in _GRADED else _TRUTH, bootstrap)}
        for level, those in found.items()
    ]
    return Agreement((a, b), pd.DataFrame(rows), _confusion(_together(found["texts"]), a, b))


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


def _together(pairs: Pairs) -> list[Pair]:
    return [pair for those in pairs.values() for pair in those]


def _measures(by_trajectory: Pairs, categories: Sequence[str], bootstrap: "Bootstrap") -> dict[str, float]:
    import numpy as np

    pairs = _together(by_trajectory)
    clusters = [_counts(by_trajectory[name], categories) for name in sorted(by_trajectory) if by_trajectory[name]]
    spread = len(clusters) > 1
    drawn = bootstrap.totals(np.array(clusters)) if spread else np.empty((0, 2 * len(categories)))
    measures: dict[str, float] = {"n": len(pairs)}
    total = np.sum(clusters, axis=0, keepdims=True) if clusters else np.zeros((1, 2 * len(categories)))
    for name, measure in {"agreed": _agreed, "kappa": _kappa}.items():
        measures[name] = float(measure(total)[0])
        low, high = bootstrap.ends(measure(drawn)) if spread else (float("nan"), float("nan"))
        measures.update({f"{name}_low": low, f"{name}_high": high})
    return {**measures, "n_error": sum(ERROR in pair for pair in pairs), "n_trajectories": len(clusters)}


def _real(categories: Sequence[str]) -> list[str]:
    return [category for category in categories if category != ERROR]


def _counts(pairs: Sequence[Pair], categories: Sequence[str]) -> list[float]:
    """What agreement is a function of: pairs, equal pairs, and how often each judge gave each label."""
    real = _real(categories)
    ones = [float(sum(one == c for one, _ in pairs)) for c in real]
    others = [float(sum(other == c for _, other in pairs)) for c in real]
    return [float(len(pairs)), float(sum(one == other != ERROR for one, other in pairs)), *ones, *others]


def _agreed(counts: "np.ndarray") -> "np.ndarray":
    from memorydojo.metrics._bootstrap import ratio

    return ratio(counts[:, 1], counts[:, 0])


def _kappa(counts: "np.ndarray") -> "np.ndarray":
    """Cohen's kappa of each row of `_counts`; NaN where chance alone would agree about everything."""
    from memorydojo.metrics._bootstrap import ratio

    ones, others = (counts[:, 2:]).reshape(len(counts), 2, -1).swapaxes(0, 1)
    squared = counts[:, 0] ** 2
    chance = (ones * others).sum(axis=1)
    # Multiplied out, so that whole counts stay exact and the denominator is exactly 0 where it should be.
    return ratio(counts[:, 1] * counts[:, 0] - chance, squared - chance)


def cohens_kappa(pairs: Sequence[Pair], categories: Sequence[str]) -> float:
    """Cohen's kappa of pairs of labels; NaN if chance alone would agree about everything, or without pairs.

    A pair with an ``"error"`` is a disagreement, and an error is no label that chance could agree about.

    >>> cohens_kappa([("yes", "yes"), ("no", "no"), ("yes", "no"), ("no", "no")], ("yes", "no"))
    0.5
    """
    import numpy as np

    return float(_kappa(np.array([_counts(pairs, categories)]))[0])


def _confusion(pairs: Sequence[Pair], a: str, b: str) -> "pd.DataFrame":
    import pandas as pd

    # A text with the payload word for word is exact for every judge.
    judged = [label for label in LABELS if label != "exact"]
    counts = [[sum(pair == (row, column) for pair in pairs) for column in judged] for row in judged]
    return pd.DataFrame(counts, index=pd.Index(judged, name=a), columns=pd.Index(judged, name=b))
