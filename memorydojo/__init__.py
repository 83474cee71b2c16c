"""MemoryDojo: measure what a poisoned observation does to an AI agent's long-term memory.

A trajectory of tasks is run session by session: retrieve memory, let the agent work, write the session to memory. A
payload enters one tool observation once. What memory stores of it, what later comes back and what the agent then does
is saved, labelled, and measured: ISR, RSR, BRT and BR.

    import memorydojo as md

    trajectories = md.trajectories.load("same-domain")
    run = md.run(trajectories[0], memory="mem0", directory="runs/first",
                 attack=md.Attack(objective="workspace", payload="seed-1"))
    md.metrics.summarize(md.load_runs("runs/first").session_table())

Public names are imported when they are first used, so that ``import memorydojo`` stays light.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memorydojo import export, figures, judging, matching, metrics, optimizer, planning, published, trajectories
    from memorydojo.adapter import AdapterConfig, MemoryAdapter, MemoryDescription
    from memorydojo.attack import Attack, Payload
    from memorydojo.errors import MemoryDojoError
    from memorydojo.injection import from_injection_task
    from memorydojo.objective import CallObjective, ExpectedCall, Objective, RecommendationObjective
    from memorydojo.planning.sweep_plan import SweepPlan
    from memorydojo.record import (
        Action,
        MemoryEntry,
        MemoryItem,
        Message,
        SessionRecord,
        Snapshot,
        SnapshotDifference,
        ToolCall,
    )
    from memorydojo.running.runner import plan_run, run
    from memorydojo.running.sweep import sweep
    from memorydojo.runs import Run, Runs, load_runs
    from memorydojo.shipped import objectives, payloads
    from memorydojo.trajectory import Session, Trajectory

_MODULES = (
    "export",
    "figures",
    "judging",
    "matching",
    "metrics",
    "optimizer",
    "planning",
    "published",
    "trajectories",
)
_NAMES = {
    "memorydojo.adapter": ("AdapterConfig", "MemoryAdapter", "MemoryDescription"),
    "memorydojo.attack": ("Attack", "Payload"),
    "memorydojo.errors": ("MemoryDojoError",),
    "memorydojo.injection": ("from_injection_task",),
    "memorydojo.objective": ("CallObjective", "ExpectedCall", "Objective", "RecommendationObjective"),
    "memorydojo.planning.sweep_plan": ("SweepPlan",),
    "memorydojo.record": (
        "Action",
        "MemoryEntry",
        "MemoryItem",
        "Message",
        "SessionRecord",
        "Snapshot",
        "SnapshotDifference",
        "ToolCall",
    ),
    "memorydojo.running.runner": ("plan_run", "run"),
    "memorydojo.running.sweep": ("sweep",),
    "memorydojo.runs": ("Run", "Runs", "load_runs"),
    "memorydojo.shipped": ("objectives", "payloads"),
    "memorydojo.trajectory": ("Session", "Trajectory"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Action",
    "AdapterConfig",
    "Attack",
    "CallObjective",
    "ExpectedCall",
    "MemoryAdapter",
    "MemoryDescription",
    "MemoryDojoError",
    "MemoryEntry",
    "MemoryItem",
    "Message",
    "Objective",
    "Payload",
    "RecommendationObjective",
    "Run",
    "Runs",
    "Session",
    "SessionRecord",
    "Snapshot",
    "SnapshotDifference",
    "SweepPlan",
    "ToolCall",
    "Trajectory",
    "export",
    "figures",
    "from_injection_task",
    "judging",
    "load_runs",
    "matching",
    "metrics",
    "objectives",
    "optimizer",
    "payloads",
    "plan_run",
    "planning",
    "published",
    "run",
    "sweep",
    "trajectories",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"memorydojo.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'memorydojo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
