"""A sweep on a local Dask cluster of two worker processes against the same sweep on one thread here.

The endpoint answers after 100 ms. Every worker has done a run before the clock starts. The figures are sessions a
second.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from _dask_cluster import cluster  # type: ignore[import-not-found]
from _upstream import endpoint  # type: ignore[import-not-found]

import memorydojo as md
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.runs import RunPlan

LATENCY = 0.1
WORKERS = 2


def _plans(name: str, runs: int, sessions: int) -> list[RunPlan]:
    planned = tuple(md.Session(domain="banking", task_id=f"user_task_{n % 16}") for n in range(sessions))
    trajectories = [md.Trajectory(id=f"{name}-{n}", collection="benchmark", sessions=planned) for n in range(runs)]
    return [md.plan_run(t, "vector", model="m", embedding_model="m") for t in trajectories]


def _timed(plans: list[RunPlan], directory: Path, models: Models, executor: Executor) -> float:
    start = time.perf_counter()
    runs = md.sweep(plans, directory=directory, models=models, executor=executor, progress=False)
    if not all(session.completed for run in runs for session in run.sessions):
        raise SystemExit("a session failed")
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--sessions", type=int, default=3, help="sessions of each run")
    parser.add_argument("--threads", type=int, default=4, help="threads of each of the two workers")
    options = parser.parse_args()
    logging.disable()
    plans = _plans("timed", options.runs, options.sessions)
    total = options.runs * options.sessions
    with tempfile.TemporaryDirectory() as scratch, endpoint(LATENCY) as url:
        backend = Backend(base_url=url, key_env="", limits=Limits(concurrency=64))
        models = Models(backends={"b": backend}, models={"m": Model(backend="b")})
        place = Path(scratch)
        with cluster(place / "workers", workers=WORKERS, threads=options.threads) as (client, _):
            executor = client.get_executor(pure=False)
            # Waiting jobs go to whoever is free, so this many give every worker one.
            _timed(_plans("warm", 4 * WORKERS * options.threads, 1), place / "warm-dask", models, executor)
            ours = _timed(plans, place / "dask", models, executor)
        with ThreadPoolExecutor(1) as serial:
            _timed(_plans("warm", 1, 1), place / "warm-serial", models, serial)
            baseline = _timed(plans, place / "serial", models, serial)
    sys.stdout.write(
        f"{options.runs} runs of {options.sessions} sessions: {ours:.1f} s on {WORKERS} workers of {options.threads} "
        f"threads, {baseline:.1f} s one after another ({os.cpu_count()} cores)\n"
    )
    result = {
        "name": "dask_workers",
        "unit": "sessions/s",
        "ours": round(total / ours, 2),
        "baseline": round(total / baseline, 2),
        "ratio": round(baseline / ours, 2),
        "baseline_is": f"the same sweep on one thread of one process, {LATENCY * 1000:.0f} ms a model call",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
