"""The paper's experiments, as plans that ship with the package."""

from importlib.resources import files
from pathlib import Path

from memorydojo.errors import UnknownNameError
from memorydojo.planning.source import parse
from memorydojo.planning.sweep_plan import SweepPlan

_FOLDER = "experiments"


def experiment_names() -> list[str]:
    """The names that `experiment` takes."""
    folder = files("memorydojo.planning") / _FOLDER
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def experiment_text(name: str) -> str:
    """The file of an experiment, to copy and change.

    Raises:
        UnknownNameError: No experiment has this name.
    """
    if name not in experiment_names():
        raise UnknownNameError("experiment", name, experiment_names())
    return (files("memorydojo.planning") / _FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def experiment(name: str, *, folder: Path | None = None) -> SweepPlan:
    """A shipped experiment.

    Args:
        name: One of `experiment_names`.
        folder: What its payload files are relative to; the current directory if not given.

    Raises:
        UnknownNameError: No experiment has this name.
    """
    source = parse(experiment_text(name), form="toml", name=f"experiment {name}", folder=folder)
    return SweepPlan.from_source(source)
