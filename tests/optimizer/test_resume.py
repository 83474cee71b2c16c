"""A search that is killed at any moment and started again ends as if it never had been."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memorydojo.optimizer import load_search
from memorydojo.optimizer.saved import facts

_SCRIPT = """
import sys
from memorydojo.optimizer import auxiliary_ground, optimize

ground = auxiliary_ground("banking", count=2, lengths=(2, 3))
optimize(memory="vector", objective="banking", directory=sys.argv[1], ground=ground, rounds=3)
"""


def _start(directory: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _SCRIPT, str(directory)], stderr=subprocess.PIPE)


def _lines(directory: Path) -> int:
    path = directory / "events.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
def test_a_search_that_is_killed_again_and_again_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([sys.executable, "-c", _SCRIPT, str(whole)], check=True)
    chance = random.Random(7)
    kills = 0
    # Each start is killed a random while after it has got on by a few steps, so that the test ends.
    for _ in range(40):
        before = _lines(killed)
        process = _start(killed)
        while process.poll() is None and _lines(killed) <= before + 2:
            time.sleep(0.02)
        try:
            process.wait(timeout=chance.uniform(0, 0.5))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        finally:
            _, said = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode < 0, said
    assert kills >= 3
    assert load_search(killed).complete
    assert facts(load_search(killed).events) == facts(load_search(whole).events)
    assert sorted(run.id for run in load_search(killed).runs()) == sorted(run.id for run in load_search(whole).runs())
    assert (killed / "selected.json").read_bytes() == (whole / "selected.json").read_bytes()
