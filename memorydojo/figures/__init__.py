"""Figures of metrics, as in the paper: made with matplotlib, returned and never shown (extra ``figures``).

Each function takes a session table, or what `memorydojo.metrics` makes of one, or a table of `memorydojo.published`; it
draws the numbers and intervals that are there and computes none of its own. If any row is simulated, the figure says
so. Nothing goes through pyplot: no global state, no window, safe in threads.
"""

import importlib
from typing import TYPE_CHECKING, Any

from memorydojo.errors import MissingPackageError

if TYPE_CHECKING:
    from memorydojo.figures.bars import by_domain, funnel, gains, within_cross
    from memorydojo.figures.grid import heatmap
    from memorydojo.figures.points import by_distance, retrieval_and_reach, utility

_HOME = {
    "by_distance": "points",
    "by_domain": "bars",
    "funnel": "bars",
    "gains": "bars",
    "heatmap": "grid",
    "retrieval_and_reach": "points",
    "utility": "points",
    "within_cross": "bars",
}

__all__ = [
    "by_distance",
    "by_domain",
    "funnel",
    "gains",
    "heatmap",
    "retrieval_and_reach",
    "utility",
    "within_cross",
]


def __getattr__(name: str) -> Any:
    """A figure by name; matplotlib is imported with the first one."""
    if name not in _HOME:
        raise AttributeError(f"module 'memorydojo.figures' has no attribute {name!r}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingPackageError("matplotlib", "memorydojo.figures", "figures") from error
    return getattr(importlib.import_module(f"memorydojo.figures.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
