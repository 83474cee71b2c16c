"""Every memory system: a run that was forked from a checkpoint is the run that was not."""

from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.runs import RunPlan
from tests.adapters.conftest import LettaAt
from tests.running.test_sharing import facts

TASKS = (("banking", 1), ("slack", 4), ("banking", 7), ("banking", 0), ("slack", 1))


def plans(memory: str, settings: dict[str, Any], collection: str = "test") -> list[RunPlan]:
    sessions = tuple(md.Session(domain=domain, task_id=f"user_task_{n}") for domain, n in TASKS)
    trajectory = md.Trajectory(id="t", collection=collection, sessions=sessions)
    attacks = [md.Attack(objective="banking", payload=p, session=4) for p in ("seed-1", "seed-2")]
    return [md.plan_run(trajectory, memory, attack=a, memory_settings=settings) for a in (None, *attacks)]


def check(directory: Path, memory: str, settings: dict[str, Any]) -> None:
    alone = md.sweep(plans(memory, settings), directory=directory / "alone", share=False)
    shared = md.sweep(plans(memory, settings), directory=directory / "shared", share=True)
    assert facts(shared) == facts(alone)
    assert shared.session_table().equals(alone.session_table())
    assert [run.header.shared.last if run.header.shared else None for run in shared] == [3, 3, 3]
    assert all(any(s.difference.created for s in run.sessions) for run in shared)
    assert list((directory / "shared" / "prefixes").iterdir()) == []


@pytest.mark.parametrize(
    "memory",
    [
        "full_context",
        "vector",
        pytest.param("mem0", marks=pytest.mark.slow),
        pytest.param("a-mem", marks=pytest.mark.slow),
        pytest.param("graphiti", marks=pytest.mark.slow),
        "memora",
    ],
)
def test_a_forked_run_is_the_run_that_was_not_forked(tmp_path: Path, memory: str) -> None:
    check(tmp_path, memory, {})


@pytest.mark.slow
def test_a_forked_run_on_a_letta_server_is_the_run_that_was_not_forked(tmp_path: Path, letta: LettaAt) -> None:
    check(tmp_path, "letta", {"url": letta.url, "key_variable": letta.key_variable})
