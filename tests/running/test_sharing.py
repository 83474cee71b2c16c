from pathlib import Path
from typing import Any

import memorydojo as md
from memorydojo.runs import RunPlan

SHARED_FIELDS = {"run_id", "started", "shared", "waiting"}


def trajectory(*tasks: int) -> md.Trajectory:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
    return md.Trajectory(id="t", collection="test", sessions=sessions)


def plans(memory: str = "vector", *, insertion: int = 3) -> list[RunPlan]:
    attacks = [md.Attack(objective="banking", payload=p, session=insertion) for p in ("seed-1", "seed-2")]
    return [md.plan_run(trajectory(1, 7, 8, 0, 3), memory, attack=attack) for attack in (None, *attacks)]


def facts(runs: md.Runs) -> list[Any]:
    return [
        (
            run.header.model_dump(mode="json", exclude=SHARED_FIELDS),
            [s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions],
            run.labels().model_dump(mode="json"),
        )
        for run in runs
    ]


def test_a_shared_sweep_saves_what_an_unshared_one_saves(tmp_path: Path) -> None:
    alone = md.sweep(plans(), directory=tmp_path / "alone", share=False)
    shared = md.sweep(plans(), directory=tmp_path / "shared")
    assert facts(shared) == facts(alone)
    assert shared.session_table().equals(alone.session_table())
    assert [run.header.shared is not None for run in shared] == [True, True, True]
    assert [run.header.shared for run in alone] == [None, None, None]
