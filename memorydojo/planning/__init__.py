"""What a sweep runs: plans in files, the paper's experiments, and what a plan will ask for before it runs."""

from memorydojo.planning.estimate import DryRun, dry_run
from memorydojo.planning.expand import Expansion, SweepWarning, expand, not_in_plan
from memorydojo.planning.payloads import MissingFile
from memorydojo.planning.shipped import experiment, experiment_names, experiment_text
from memorydojo.planning.sweep_plan import MemoryChoice, ModelChoice, PayloadChoice, SweepPlan, TrajectoryFile

__all__ = [
    "DryRun",
    "Expansion",
    "MemoryChoice",
    "MissingFile",
    "ModelChoice",
    "PayloadChoice",
    "SweepPlan",
    "SweepWarning",
    "TrajectoryFile",
    "dry_run",
    "expand",
    "experiment",
    "experiment_names",
    "experiment_text",
    "not_in_plan",
]
