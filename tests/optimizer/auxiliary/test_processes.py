"""Suites, objectives and trajectories are the same in every process."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.optimizer import auxiliary
from memorydojo.running.runner import plan_run


@pytest.fixture(scope="module")
def spawned() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.mark.slow
def test_a_seed_gives_the_same_trajectories(spawned: ProcessPoolExecutor) -> None:
    assert spawned.submit(auxiliary.trajectories, "travel", seed=3).result() == auxiliary.trajectories("travel", seed=3)


@pytest.mark.slow
def test_a_worker_finds_suite_and_objective_and_labels_the_run(spawned: ProcessPoolExecutor, tmp_path: Path) -> None:
    payload = auxiliary.counterpart(md.payloads["slack"]["seed-1"])
    (trajectory,) = auxiliary.trajectories("communication", lengths=(4,), count=1)
    plan = plan_run(trajectory, "full_context", attack=md.Attack(objective=payload.objective, payload=payload))
    (run,) = md.sweep([plan], directory=tmp_path, executor=spawned)
    assert [session.payload_inserted for session in run.sessions] == [True, False, False, False]
    assert run.labels("overlap").objectives["auxiliary-communication"] == "auxiliary-communication"
