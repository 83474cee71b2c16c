"""Intervals by the percentile cluster bootstrap."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from memorydojo.errors import InvalidInputError
from memorydojo.metrics._definitions import Metric
from memorydojo.metrics._sums import FloatArray, Sums

_CELLS_AT_ONCE = 1_000_000
_KEPT_CELLS = 10_000_000


@dataclass
class Bootstrap:
    """How intervals are made.

    Each replicate draws as many clusters as there are, with replacement, and computes the metric from their sums.
    Replicates in which it has no denominator are left out. The draws depend on the seed and the number of clusters
    alone; the clusters are in the order of their names, so neither the order of rows nor other groups matter.

    Attributes:
        replicates: The number of draws.
        seed: Seed of the draws.
        confidence: Mass between the two ends, between 0 and 1.
    """

    replicates: int = 1000
    seed: int = 0
    confidence: float = 0.95
    _kept: tuple[int, list[FloatArray]] | None = field(default=None, init=False, repr=False)
    """The last draws: groups with equal numbers of clusters, which are frequent, have equal draws."""

    def __post_init__(self) -> None:
        if self.replicates < 1:
            raise InvalidInputError(f"replicates is {self.replicates}; use at least 1, or turn intervals off")
        if self.seed < 0:
            raise InvalidInputError(f"seed is {self.seed}; use 0 or a positive whole number")
        if not 0 < self.confidence < 1:
            raise InvalidInputError(f"confidence is {self.confidence}; use a number between 0 and 1, such as 0.95")

    def marked(self, result: pd.DataFrame) -> pd.DataFrame:
        """The table, which says of which confidence its intervals are."""
        result.attrs["confidence"] = self.confidence
        return result

    def intervals(self, sums: Sums, metrics: Sequence[Metric]) -> dict[str, tuple[float, float]]:
        """Lower and upper end of each metric; NaN where fewer than two clusters have a denominator.

        One cluster says nothing about how much clusters differ, and an interval of no width would say that they do not.
        """
        drawn = self._replicated(sums.by_cluster, metrics)
        return {m.name: self.ends(drawn[m.name]) if _spread(sums, m) else (np.nan, np.nan) for m in metrics}

    def paired(self, a: Sums, b: Sums, metrics: Sequence[Metric]) -> dict[str, tuple[float, float]]:
        """The same for the difference a - b over the same clusters, drawn together."""
        first, second = self._replicated(a.by_cluster, metrics), self._replicated(b.by_cluster, metrics)
        return {
            m.name: self.ends(first[m.name] - second[m.name]) if _spread(a, m) and _spread(b, m) else (np.nan, np.nan)
            for m in metrics
        }

    def _replicated(self, by_cluster: Mapping[str, FloatArray], metrics: Sequence[Metric]) -> dict[str, FloatArray]:
        """Each metric in every replicate. The same seed and number of clusters always give the same draws."""
        names = sorted({name for metric in metrics for name in (metric.numerator, metric.denominator)})
        values = np.stack([by_cluster[name] for name in names], axis=1)
        if not len(values):
            return {metric.name: np.full(self.replicates, np.nan) for metric in metrics}
        totals = self.totals(values)
        column = {name: totals[:, at] for at, name in enumerate(names)}
        return {metric.name: ratio(column[metric.numerator], column[metric.denominator]) for metric in metrics}

    def totals(self, values: FloatArray) -> FloatArray:
        """The sums of what each replicate draws: one row a replicate.

        Args:
            values: What is summed, one row a cluster.
        """
        return np.concatenate([times @ values for times in self._draws(len(values))])

    def _draws(self, clusters: int) -> Iterable[FloatArray]:
        """How often each replicate draws each cluster, in blocks of replicates."""
        if self._kept is not None and self._kept[0] == clusters:
            return self._kept[1]
        blocks = self._draw(clusters)
        if self.replicates * clusters > _KEPT_CELLS:
            return blocks
        self._kept = clusters, list(blocks)
        return self._kept[1]

    def _draw(self, clusters: int) -> Iterator[FloatArray]:
        random = np.random.default_rng(self.seed)
        step = max(1, _CELLS_AT_ONCE // clusters)
        for start in range(0, self.replicates, step):
            count = min(step, self.replicates - start)
            drawn = random.integers(0, clusters, size=(count, clusters))
            drawn += np.arange(count)[:, None] * clusters
            times = np.bincount(drawn.ravel(), minlength=count * clusters)
            yield times.reshape(count, clusters).astype(np.float64)

    def ends(self, values: FloatArray) -> tuple[float, float]:
        """The two ends of the interval over one value a replicate; undefined values are left out."""
        defined = values[~np.isnan(values)]
        if not len(defined):
            return np.nan, np.nan
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(defined, [tail, 1 - tail])
        return float(low), float(high)


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """The quotient; NaN where the denominator is 0."""
    result = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def value(sums: Sums, metric: Metric) -> float:
    """A metric of one group; NaN without a denominator."""
    denominator = sums.total(metric.denominator)
    return sums.total(metric.numerator) / denominator if denominator else float("nan")


def _spread(sums: Sums, metric: Metric) -> bool:
    """Whether at least two clusters have a denominator."""
    return int(np.count_nonzero(sums.by_cluster[metric.denominator])) >= 2
