"""Metrics of persistent poisoning, as pure functions of the session table (``memorydojo.runs.table``).

They need numpy and pandas and know nothing of agents, models or memory systems.
"""

from memorydojo.metrics._comparison import base_rates, compare
from memorydojo.metrics._definitions import METRICS, Metric
from memorydojo.metrics._funnel import DELIVERIES, LOSSES, STAGES, Delivery, by_delivery, funnel, losses
from memorydojo.metrics._groups import By
from memorydojo.metrics._summary import DISTANCES, PARTS, Part, by_distance, summarize
from memorydojo.metrics._view import view

__all__ = [
    "DELIVERIES",
    "DISTANCES",
    "LOSSES",
    "METRICS",
    "PARTS",
    "STAGES",
    "By",
    "Delivery",
    "Metric",
    "Part",
    "base_rates",
    "by_delivery",
    "by_distance",
    "compare",
    "funnel",
    "losses",
    "summarize",
    "view",
]
