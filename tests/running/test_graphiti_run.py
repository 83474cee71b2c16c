from pathlib import Path
from typing import Any

import pytest

import memorydojo as md

pytestmark = pytest.mark.slow


def facts_of(run: Any) -> list[dict[str, Any]]:
    """What happened in each session, without what depends on the clock of the machine."""
    return [session.model_dump(mode="json", exclude={"seconds", "usage", "waiting"}) for session in run.sessions]


def test_a_run_on_graphiti_works_offline_and_is_the_same_every_time(tmp_path: Path) -> None:
    trajectory = md.trajectories.load("same-domain")["workspace-005-01"]
    attack = md.Attack(objective="workspace", payload="seed-1")
    runs = [md.run(trajectory, memory="graphiti", attack=attack, directory=tmp_path / name) for name in "ab"]
    assert all(session.completed for run in runs for session in run.sessions)
    assert facts_of(runs[0]) == facts_of(runs[1])
    assert {item.kind for session in runs[0].sessions for item in session.items} == {"fact"}
    table = (
        runs[0].session_table() if hasattr(runs[0], "session_table") else md.load_runs(tmp_path / "a").session_table()
    )
    assert len(table) == 5
