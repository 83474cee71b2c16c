"""Saved runs: a directory of runs that is append-only and crash-safe, and the session table made from it."""

from memorydojo.models.usage import Usage
from memorydojo.runs.collection import Runs, load_runs
from memorydojo.runs.load import Run
from memorydojo.runs.model import (
    SCHEMA_VERSION,
    Failure,
    Insertion,
    RunEnd,
    RunHeader,
    RunPlan,
    SessionResult,
)
from memorydojo.runs.store import RunDirectory, RunWriter, run_id

__all__ = [
    "SCHEMA_VERSION",
    "Failure",
    "Insertion",
    "Run",
    "RunDirectory",
    "RunEnd",
    "RunHeader",
    "RunPlan",
    "RunWriter",
    "Runs",
    "SessionResult",
    "Usage",
    "load_runs",
    "run_id",
]
