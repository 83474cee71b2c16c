"""The worked example of docs/adding-a-memory-system.md, installed as a package of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook-memory"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example is installed, and nothing of it in this one."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for file in EXAMPLE.iterdir():
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--target", str(target), str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(target)}


@pytest.mark.slow
def test_the_example_passes_the_contract(installed: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE)]
    done = subprocess.run(
        [*command, str(EXAMPLE / "test_notebook_memory.py")], env=installed, capture_output=True, text=True, cwd=EXAMPLE
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
def test_the_example_runs_by_its_registered_name(installed: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memorydojo.cli.main", "run", "banking-003-01", "--memory", "notebook"]
    done = subprocess.run(
        [*command, "--objective", "banking", "--directory", str(tmp_path / "runs")],
        env=installed, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "; stored: " in done.stdout
    assert "(simulated)" in done.stdout
