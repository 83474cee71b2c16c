"""Sweeps that are killed at random moments and started again; run by ``test_killed_sweeps.py``.

``python killed_sweeps.py DIRECTORY KILLS SEED``. Everything is imported once and each sweep is a fork, so that a kill
costs no start of Python. Half of the kills take the coordinating process only, half all processes at once.
"""

import contextlib
import importlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import memorydojo as md
from memorydojo.running.sweep import end_with_the_parent
from memorydojo.runs import RunPlan

TASKS = ((1, 7), (8, 1, 7), (3, 8))


def plans() -> list[RunPlan]:
    """Clean and poisoned runs, inserted first and in the middle, so that some share their first sessions."""
    attacks = [
        None,
        md.Attack(objective="banking", payload="seed-1"),
        md.Attack(objective="banking", payload="seed-2"),
        md.Attack(objective="banking", payload="seed-1", session="middle"),
    ]
    trajectories = [
        md.Trajectory(
            id=f"short-{number}",
            collection="test",
            sessions=tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks),
        )
        for number, tasks in enumerate(TASKS)
    ]
    return [md.plan_run(t, "vector", attack=attack) for t in trajectories for attack in attacks]


def sweep(directory: Path) -> None:
    """A sweep with two worker processes."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context, initializer=end_with_the_parent) as executor:
        md.sweep(plans(), directory=directory, executor=executor, progress=False)


def complete(directory: Path) -> dict[str, list[list[int]]]:
    """The state of the files of complete runs: a run that is made again has other ones."""
    found = {}
    for end in directory.glob("runs/*/end.json"):
        states = [os.stat(end.with_name(name)) for name in ("run.json", "sessions.jsonl", "end.json")]
        found[end.parent.name] = [[s.st_ino, s.st_size, s.st_mtime_ns] for s in states]
    return found


def _start(directory: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        sweep(directory)
        code = 0
    except md.MemoryDojoError as error:  # workers of the sweep before may hold runs for another moment
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        os._exit(code)


def _ended(child: int, seconds: float) -> int | None:
    """The exit code of a sweep, or None if it is still running after so many seconds."""
    until = time.monotonic() + seconds
    while True:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.005)


def _alive(directory: Path, since: float) -> bool:
    """Whether a sweep has got so far as to write runs."""
    for path in directory.glob("runs/*/*"):
        with contextlib.suppress(FileNotFoundError):  # it has just got another name
            if path.stat().st_mtime > since:
                return True
    return False


def _import_what_a_sweep_imports(root: Path) -> None:
    """Here, once, in place of in each fork; a fork finds out what that is."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        md.sweep(plans()[:1], directory=root / "first", progress=False)
        os.write(writing, json.dumps([*sys.modules]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        names = json.load(file)
    os.waitpid(child, 0)
    for name in names:
        if name != "__main__" and name not in sys.modules:
            with contextlib.suppress(ImportError, KeyError):
                importlib.import_module(name)


def main(root: Path, kills: int, seed: int) -> None:
    """Kills sweeps, one directory after another, until there were so many kills; the last one ends whole, too."""
    _import_what_a_sweep_imports(root)
    luck = random.Random(seed)
    child = _start(root / "whole")
    while not _alive(root / "whole", 0):
        time.sleep(0.005)
    start = time.monotonic()
    assert _ended(child, 600) == 0
    duration = time.monotonic() - start
    done, number = 0, 0
    seen: dict[str, dict[str, list[list[int]]]] = {}
    while done < kills:
        directory = root / f"killed-{number}"
        number += 1
        known = seen.setdefault(directory.name, {})
        code: int | None = 1
        while code != 0:
            since = time.time()
            child = _start(directory)
            if done >= kills:
                code = _ended(child, 600)
            elif luck.random() < 0.1:  # while it is starting, mostly
                code = _ended(child, luck.uniform(0, 0.5))
            else:
                while (code := _ended(child, 0.002)) is None and not _alive(directory, since):
                    pass
                code = _ended(child, luck.uniform(0, duration / 4)) if code is None else code
            if code is None:
                os.kill(child, signal.SIGKILL) if luck.random() < 0.5 else os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                done += 1
            for run, state in complete(directory).items():
                known.setdefault(run, state)
    sys.stdout.write(json.dumps({"kills": done, "duration": duration, "complete": seen}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
