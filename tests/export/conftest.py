"""Saved runs to export: real ones of the baseline that stores whole sessions, and a hostile one."""

from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.runs import Runs
from tests.metrics.conftest import run_rows
from tests.viewer.conftest import chromium, save

__all__ = ["chromium", "run_rows", "save"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Two trajectories, poisoned and clean."""
    directory = tmp_path_factory.mktemp("runs")
    for name, tasks in (("a", (1, 7, 4)), ("b", (1, 6))):
        sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
        trajectory = md.Trajectory(id=name, collection="test", sessions=sessions)
        for attack in (md.Attack(objective="banking", payload="seed-1"), None):
            md.run(trajectory, "full_context", directory=directory, attack=attack)
    return md.load_runs(directory)


HOSTILE = '=1+1"</script><script>window.pwned=1</script>\u2028\x1b[31m\ud83d ../../$(touch x){0}%s\n@x,\r-2'


@pytest.fixture(scope="session")
def hostile(save: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that says a hostile text wherever it can say anything."""
    directory = tmp_path_factory.mktemp("hostile")
    save.hostile(directory, HOSTILE)  # type: ignore[attr-defined]
    return directory
