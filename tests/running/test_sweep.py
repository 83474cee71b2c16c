import gc
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

import memorydojo as md
from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import InvalidInputError, RunInUseError, UnknownNameError
from memorydojo.record import SessionRecord
from memorydojo.runs import RunDirectory, RunPlan, run_id


def trajectory(name: str, *tasks: int) -> md.Trajectory:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
    return md.Trajectory(id=name, collection="test", sessions=sessions)


def plans() -> list[RunPlan]:
    attack = md.Attack(objective="banking", payload="seed-1")
    trajectories = [trajectory("a", 1, 7), trajectory("b", 8, 1, 7)]
    return [md.plan_run(t, "vector", attack=a) for t in trajectories for a in (None, attack)]


def facts(runs: md.Runs) -> list[Any]:
    return [[s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions] for run in runs]


def test_runs_come_back_in_the_order_of_the_plans_with_labels(tmp_path: Path) -> None:
    runs = md.sweep(plans(), directory=tmp_path)
    assert [run.plan for run in runs] == plans()
    assert all(run.labels().sessions for run in runs)


def test_equal_plans_are_run_once(tmp_path: Path) -> None:
    assert len(md.sweep([*plans(), *plans()], directory=tmp_path)) == 4


def test_a_sweep_goes_on_where_it_was_left(tmp_path: Path) -> None:
    md.sweep(plans()[:2], directory=tmp_path)
    seen: list[tuple[int, int]] = []
    md.sweep(plans(), directory=tmp_path, progress=lambda done, of, _: seen.append((done, of)))
    assert seen == [(3, 4), (4, 4)]


def test_a_trajectory_in_place_of_plans_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"plan_run\(trajectory"):
        md.sweep([trajectory("a", 1)], directory=tmp_path / "new")  # type: ignore[list-item]
    assert not (tmp_path / "new").exists()


def test_one_plan_in_place_of_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="takes a list of plans"):
        md.sweep(plans()[0], directory=tmp_path / "new")  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_the_path_of_a_models_file_is_no_models(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"models=Models\.from_toml\('m\.toml'\), not str"):
        md.sweep(plans(), directory=tmp_path / "new", models="m.toml")  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_an_unknown_task_stops_the_sweep_before_it_starts(tmp_path: Path) -> None:
    bad = md.plan_run(trajectory("c", 1, 99), "vector")
    with pytest.raises(UnknownNameError, match="user_task_99"):
        md.sweep([*plans(), bad], directory=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_runs_of_another_process_are_left_to_it_and_all_others_are_done(tmp_path: Path) -> None:
    store = RunDirectory(tmp_path)
    identity = run_id(plans()[1])
    with store.claim(identity):
        token = hashlib.sha256(identity.encode()).hexdigest()[:16]
        memory = tmp_path / "memories-in-use" / f"{token}-live"
        memory.mkdir(parents=True)
        with pytest.raises(RunInUseError, match=r"1 of 4 runs in .* is being written by another process"):
            md.sweep(plans(), directory=tmp_path)
        assert store.complete_ids() == {run_id(plan) for plan in plans()} - {identity}
        assert memory.exists()
    assert len(md.sweep(plans(), directory=tmp_path)) == 4
    assert not memory.exists()


@pytest.mark.slow
def test_two_processes_on_one_directory_share_the_runs(tmp_path: Path) -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[2])
from test_sweep import plans
import memorydojo as md
from memorydojo.errors import RunInUseError
try:
    md.sweep(plans(), directory=sys.argv[1])
except RunInUseError:
    print("in use")
"""
    command = [sys.executable, "-c", code, str(tmp_path / "shared"), str(Path(__file__).parent)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    shared = md.sweep(plans(), directory=tmp_path / "shared")
    assert facts(shared) == facts(md.sweep(plans(), directory=tmp_path / "alone"))
    assert list((tmp_path / "shared").glob("runs/*/*interrupted*")) == []


def test_garbage_collection_is_as_before_after_a_sweep_that_failed(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        assert gc.get_freeze_count() > 0
        raise ConnectionError("no progress")

    before = gc.get_freeze_count()
    with pytest.raises(ConnectionError):
        md.sweep(plans()[:1], directory=tmp_path, progress=fail)
    assert gc.get_freeze_count() == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path: Path, method: str) -> None:
    code = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, sys.argv[2])
from test_sweep import plans
import memorydojo as md
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(sys.argv[3])) as executor:
        md.sweep(plans(), directory=sys.argv[1], executor=executor)
        print(*executor._processes, flush=True)
        time.sleep(600)
"""
    script = tmp_path / "parent.py"
    script.write_text(code)
    command = [sys.executable, str(script), str(tmp_path / "runs"), str(Path(__file__).parent), method]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    (worker,) = map(int, parent.stdout.readline().split())
    assert not gone(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 30
    while not gone(worker) and time.monotonic() < end:
        time.sleep(0.1)
    assert gone(worker)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def one_by_one(directory: Path) -> md.Runs:
    """The same sweep, one run after another."""
    with ThreadPoolExecutor(1) as executor:
        return md.sweep(plans(), directory=directory, executor=executor)


def test_threads_give_the_same_facts_as_one_after_another(tmp_path: Path) -> None:
    alone = one_by_one(tmp_path / "alone")
    with ThreadPoolExecutor(3) as executor:
        together = md.sweep(plans(), directory=tmp_path / "threads", executor=executor)
    assert facts(together) == facts(alone)


@pytest.mark.slow
def test_processes_give_the_same_facts_as_one_after_another(tmp_path: Path) -> None:
    alone = one_by_one(tmp_path / "alone")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        together = md.sweep(plans(), directory=tmp_path / "processes", executor=executor)
    assert facts(together) == facts(alone)
    assert together.session_table().equals(alone.session_table())


def test_the_memory_of_a_run_that_was_killed_after_its_end_is_removed_by_the_next_sweep(tmp_path: Path) -> None:
    md.sweep(plans()[:2], directory=tmp_path)
    left = [
        tmp_path / "memories-in-use" / f"{hashlib.sha256(run_id(plan).encode()).hexdigest()[:16]}-left"
        for plan in plans()[:3]
    ]
    for folder in left:
        (folder / "store").mkdir(parents=True)
    md.sweep(plans()[:1], directory=tmp_path)
    assert [folder.exists() for folder in left] == [False, True, True]
    md.run(plans()[1].trajectory, "vector", directory=tmp_path, attack=md.Attack(objective="banking", payload="seed-1"))
    assert [folder.exists() for folder in left] == [False, False, True]


class Flaky(FullContextAdapter):
    """A memory that can be broken from outside."""

    broken: ClassVar[bool] = False

    def write(self, record: SessionRecord) -> None:
        if Flaky.broken:
            raise ConnectionError("the store is down")
        super().write(record)


def test_failed_runs_are_repeated_when_that_is_asked_and_what_they_saved_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = [md.plan_run(trajectory("a", 1, 7), Flaky), md.plan_run(trajectory("b", 8, 1), Flaky)]
    md.sweep(planned[:1], directory=tmp_path)
    whole = (tmp_path / "runs" / run_id(planned[0]) / "end.json").stat()
    monkeypatch.setattr(Flaky, "broken", True)
    failed = md.sweep(planned, directory=tmp_path)
    assert [run.ran_whole for run in failed] == [True, False]
    monkeypatch.setattr(Flaky, "broken", False)
    assert [run.ran_whole for run in md.sweep(planned, directory=tmp_path)] == [True, False]
    repeated = md.sweep(planned, directory=tmp_path, repeat_failed=True)
    assert [run.ran_whole for run in repeated] == [True, True]
    assert repeated.session_table()["completed"].all()
    assert (tmp_path / "runs" / run_id(planned[0]) / "end.json").stat() == whole
    kept = sorted(path.name for path in repeated[1].directory.glob("*.interrupted-1*"))
    assert kept == [f"{n}.interrupted-1{s}" for n, s in KEPT]
    assert len(md.load_runs(tmp_path)) == 2


KEPT = [("end", ".json"), ("labels", ""), ("run", ".json"), ("sessions", ".jsonl")]


def test_a_failing_executor_keeps_what_is_saved(tmp_path: Path) -> None:
    class Failing(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            if args[0].trajectory.id == "b":
                return super().submit(_fail)
            return super().submit(fn, *args, **kwargs)

    with Failing(1) as executor, pytest.raises(ConnectionError, match="worker lost"):
        md.sweep(plans(), directory=tmp_path, executor=executor)
    assert len(md.load_runs(tmp_path)) == 2


def _fail() -> str:
    raise ConnectionError("worker lost")


_SCRIPT = """
import sys
import memorydojo as md
tasks = (1, 7, 8, 0, 3, 13)
sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks)
trajectory = md.Trajectory(id="long", collection="test", sessions=sessions)
attack = md.Attack(objective="banking", payload="seed-2")
md.run(trajectory, "vector", directory=sys.argv[1], attack=attack)
"""


@pytest.mark.slow
def test_a_killed_run_starts_again_and_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _SCRIPT, str(tmp_path / "whole")], check=True)
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, str(tmp_path / "cut")])
    deadline = time.monotonic() + 60
    while not list((tmp_path / "cut").glob("runs/*/sessions.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not md.load_runs(tmp_path / "cut")[0].complete
    assert len(md.load_runs(tmp_path / "cut").session_table()) == 6
    subprocess.run([sys.executable, "-c", _SCRIPT, str(tmp_path / "cut")], check=True)
    whole, again = md.load_runs(tmp_path / "whole"), md.load_runs(tmp_path / "cut")
    assert facts(again) == facts(whole)
    assert again.session_table().equals(whole.session_table())
    assert list((tmp_path / "cut" / "memories-in-use").iterdir()) == []
