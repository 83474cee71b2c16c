"""How Memora retrieves: a fused first search, then a policy that stops, expands over cues, or searches anew."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memorydojo.adapters._memora_store import Contents, Fact, Vector
from memorydojo.adapters._memora_talk import Talk
from memorydojo.simulator.onnx import environment

#: Reciprocal rank fusion: the constant, and the weights of the three lists (facts by index, by cue, by BM25).
RRF_K = 60
WEIGHTS = (2.0, 1.0, 1.0)
BM25 = {"method": "lucene", "k1": 1.5, "b": 0.75}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SearchSettings:
    """The budgets of a retrieval; see `memorydojo.adapters.memora.MemoraConfig`."""

    top_k: int
    hybrid_top_k: int
    cue_top_k: int
    max_steps: int


@dataclass(frozen=True)
class Found:
    """A fact of the working set.

    Attributes:
        fact: The fact.
        score: From 0 to 1: the fused score of the search that found it; the cosine of its index and the query if it
            was expanded to.
        cue: The id of the cue that led to it, if nothing else did.
    """

    fact: Fact
    score: float
    cue: str | None = None


class Search:
    """Searches that share one reading of the memory, so its BM25 index is always that of what is stored now."""

    def __init__(self, contents: Contents, talk: Talk, settings: SearchSettings) -> None:
        self._contents, self._talk, self._settings = contents, talk, settings
        self._facts = list(contents.facts.values())
        self._fact_vectors = np.stack([fact.vector for fact in self._facts]) if self._facts else np.empty((0, 0))
        self._cues = list(contents.cues.values())
        self._cue_vectors = np.stack([cue.vector for cue in self._cues]) if self._cues else np.empty((0, 0))
        self._facts_of_cues = contents.facts_of_cues()
        self._words = self._indexed()

    def run(self, query: str) -> list[Found]:
        """The working set after the policy's last step, in the order in which it came together."""
        if not self._facts:
            return []
        vector = self._talk.vectors([query])[0]
        working = {found.fact.id: found for found in self.first(query, vector)}
        trace: list[Mapping[str, Any]] = []
        for step in range(1, self._settings.max_steps + 1):
            frontier = self._frontier(working)
            decision = self._talk.policy(
                query,
                step=step,
                max_steps=self._settings.max_steps,
                working=[found.fact for found in working.values()],
                frontier={id_: (fact, self._contents.cues[cue].text) for id_, (fact, cue) in frontier.items()},
                trace=trace,
            )
            if decision.action == "STOP":
                break
            if decision.action == "EXPAND":
                added = [
                    Found(fact, min(max(_cosine(fact.vector, vector), 0.0), 1.0), cue)
                    for id_ in dict.fromkeys(decision.ids)
                    if id_ in frontier
                    for fact, cue in [frontier[id_]]
                ]
                trace.append({"action": "EXPAND", "ids": decision.ids, "added": len(added)})
            else:
                wanted = decision.query.strip()
                found_now = self.first(wanted, self._talk.vectors([wanted])[0])
                added = [found for found in found_now if found.fact.id not in working]
                trace.append({"action": "RE_QUERY", "query": wanted, "added": len(added)})
            working.update({found.fact.id: found for found in added})
        return list(working.values())

    def first(self, query: str, vector: Vector) -> list[Found]:
        """The fused search: at most ``top_k`` facts, best first, with scores from 0 to 1."""
        by_index = _best((self._fact_vectors * vector).sum(axis=1), self._settings.top_k)
        by_words = _best(self._bm25(query), self._settings.hybrid_top_k, positive=True)
        place = {fact.id: i for i, fact in enumerate(self._facts)}
        leading: dict[int, str] = {}
        if self._cues:
            for c in _best((self._cue_vectors * vector).sum(axis=1), self._settings.cue_top_k):
                for id_ in self._facts_of_cues[self._cues[c].id]:
                    leading.setdefault(place[id_], self._cues[c].id)
        fused: dict[int, float] = {}
        for weight, ranked in zip(WEIGHTS, (by_index, list(leading), by_words), strict=True):
            for rank, i in enumerate(ranked, 1):
                fused[i] = fused.get(i, 0.0) + weight / (RRF_K + rank)
        direct = {*by_index, *by_words}
        order = sorted(fused, key=lambda i: (-fused[i], i))
        scores = _scaled([fused[i] for i in order])
        chosen = zip(order, scores, strict=True)
        found = [Found(self._facts[i], score, None if i in direct else leading[i]) for i, score in chosen]
        return found[: self._settings.top_k]

    def _frontier(self, working: Mapping[str, Found]) -> dict[str, tuple[Fact, str]]:
        """The facts that share a cue with the working set, each with the first such cue."""
        found: dict[str, tuple[Fact, str]] = {}
        for item in working.values():
            for cue in item.fact.cues:
                for id_ in self._facts_of_cues[cue]:
                    if id_ not in working:
                        found.setdefault(id_, (self._contents.facts[id_], cue))
        return found

    def _indexed(self) -> Any:
        """The BM25 index over each fact's index, value and cues."""
        cues = self._contents.cues
        texts = [" ".join([f.heading, f.value, *(cues[id_].text for id_ in f.cues)]) for f in self._facts]
        words = [_words(text) for text in texts]
        if not any(words):
            return None
        with environment(DISABLE_TQDM="1"):  # progress bars: importing them is slow, and warns in notebooks
            index = import_module("bm25s").BM25(**BM25)
        index.index(words, show_progress=False)
        return index

    def _bm25(self, query: str) -> NDArray[np.float64]:
        known = [] if self._words is None else [word for word in _words(query) if word in self._words.vocab_dict]
        if not known:
            return np.zeros(len(self._facts))
        return np.asarray(self._words.get_scores(known), dtype=np.float64)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _cosine(first: Vector, second: Vector) -> float:
    return float((first * second).sum())


def _best(scores: NDArray[np.float64], count: int, *, positive: bool = False) -> list[int]:
    """Places of the highest scores, highest first, of equal ones the earlier."""
    order: Iterable[int] = np.argsort(-scores, kind="stable")[:count].tolist()
    return [i for i in order if not positive or scores[i] > 0]


def _scaled(scores: Sequence[float]) -> list[float]:
    """Scores from 0 to 1; equal ones all become 1."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    return [1.0 if high == low else (score - low) / (high - low) for score in scores]
