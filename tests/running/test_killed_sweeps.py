"""A sweep that is killed at random moments and started again ends as if nothing had happened."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md

KILLS = 50


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("killed")
    script = Path(__file__).with_name("killed_sweeps.py")
    command = [sys.executable, str(script), str(root), str(KILLS), "1"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert said.returncode == 0, said.stderr[-2000:]
    return root, json.loads(said.stdout)


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("killed_sweeps", Path(__file__).with_name("killed_sweeps.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _directories(killed: tuple[Path, dict[str, Any]]) -> list[Path]:
    root, said = killed
    assert said["kills"] == KILLS
    return [root / name for name in said["complete"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks and looks at inodes")
class TestFiftyKills:
    def test_the_session_table_is_that_of_an_uninterrupted_sweep(self, killed: tuple[Path, dict[str, Any]]) -> None:
        expected = md.load_runs(killed[0] / "whole").session_table()
        for directory in _directories(killed):
            assert md.load_runs(directory).session_table().equals(expected), directory.name

    def test_the_labels_are_those_of_an_uninterrupted_sweep(self, killed: tuple[Path, dict[str, Any]]) -> None:
        whole = md.load_runs(killed[0] / "whole")
        for directory in _directories(killed):
            assert [run.labels() for run in md.load_runs(directory)] == [run.labels() for run in whole]

    def test_the_facts_are_those_of_an_uninterrupted_sweep(self, killed: tuple[Path, dict[str, Any]]) -> None:
        def facts(directory: Path) -> list[Any]:
            runs = md.load_runs(directory)
            return [[s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions] for run in runs]

        for directory in _directories(killed):
            assert facts(directory) == facts(killed[0] / "whole"), directory.name

    def test_nothing_that_was_complete_is_run_again(self, killed: tuple[Path, dict[str, Any]]) -> None:
        complete = _script().complete

        for directory in _directories(killed):
            seen, now = killed[1]["complete"][directory.name], complete(directory)
            assert {run: now[run] for run in seen} == seen
        assert any(seen for seen in killed[1]["complete"].values())

    def test_the_kills_hit_runs_under_way(self, killed: tuple[Path, dict[str, Any]]) -> None:
        interrupted = [path for d in _directories(killed) for path in d.glob("runs/*/run.interrupted-*.json")]
        assert len(interrupted) >= KILLS // 5

    def test_no_memory_and_no_checkpoint_is_left_behind(self, killed: tuple[Path, dict[str, Any]]) -> None:
        for directory in _directories(killed):
            assert [p.name for p in (directory / "memories-in-use").glob("*")] == []
