"""Every memory system: a run that was forked from a checkpoint is the run that was not."""

from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.history import History, HistoryPrefix
from memorydojo.runs import RunPlan
from tests.adapters.conftest import LettaAt
from tests.running.test_sharing import facts, history

TASKS = (("banking", 1), ("slack", 4), ("banking", 7), ("banking", 0), ("slack", 1))


def plans(memory: str, settings: dict[str, Any], told: History | None, insertion: int) -> list[RunPlan]:
    sessions = tuple(md.Session(domain=domain, task_id=f"user_task_{n}") for domain, n in TASKS)
    prefix = HistoryPrefix.of(told) if told is not None else None
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions, history=prefix)
    attacks = [md.Attack(objective="banking", payload=p, session=insertion) for p in ("seed-1", "seed-2")]
    return [md.plan_run(trajectory, memory, attack=a, memory_settings=settings) for a in (None, *attacks)]


def check(directory: Path, memory: str, settings: dict[str, Any], *, told: History | None, insertion: int) -> None:
    chosen = plans(memory, settings, told, insertion)
    alone = md.sweep(chosen, directory=directory / "alone", share=False)
    shared = md.sweep(chosen, directory=directory / "shared", share=True)
    assert facts(shared) == facts(alone)
    assert shared.session_table().equals(alone.session_table())
    assert [run.header.shared.last if run.header.shared else None for run in shared] == 3 * [insertion - 1]
    assert all(any(s.difference.created for s in run.sessions) for run in shared)
    assert all(session.completed for run in shared for session in run.sessions)
    assert list((directory / "shared" / "prefixes").iterdir()) == []


@pytest.mark.parametrize(
    "memory",
    [
        "full_context",
        "vector",
        pytest.param("mem0", marks=pytest.mark.slow),
        pytest.param("a-mem", marks=pytest.mark.slow),
        pytest.param("graphiti", marks=pytest.mark.slow),
        pytest.param("memora", marks=pytest.mark.slow),
    ],
)
class TestForkedRunsAreThoseThatWereNotForked:
    def test_at_a_middle_insertion(self, tmp_path: Path, memory: str) -> None:
        check(tmp_path, memory, {}, told=None, insertion=4)

    def test_after_a_history(self, tmp_path: Path, memory: str) -> None:
        check(tmp_path, memory, {}, told=history(), insertion=1)


@pytest.mark.slow
@pytest.mark.parametrize(("told", "insertion"), [(None, 4), (history(), 1)], ids=["middle insertion", "history"])
def test_forked_runs_on_a_letta_server_are_those_that_were_not_forked(
    tmp_path: Path, letta: LettaAt, told: History | None, insertion: int
) -> None:
    settings = {"url": letta.url, "key_variable": letta.key_variable}
    check(tmp_path, "letta", settings, told=told, insertion=insertion)
