"""A sweep on a Dask cluster of two worker processes with working directories of their own and one shared directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memorydojo as md
from tests.running.test_sharing import facts, plans

pytest.importorskip("distributed")


@pytest.mark.slow
def test_a_sweep_on_two_workers_of_which_one_is_killed_is_the_sweep_of_one_process(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(Path(__file__).with_name("dask_sweep.py")), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert "3 runs, killed with -9" in done.stdout
    assert "['dask-scratch-space', 'log']" in done.stdout
    alone = md.sweep(plans("vector"), directory=tmp_path / "alone", share=False)
    shared = md.load_runs(tmp_path / "shared")
    ordered = md.Runs([shared[run.id] for run in alone])
    assert facts(ordered) == facts(alone)
    assert ordered.session_table().equals(alone.session_table())
