"""How well runs overlap: 64 runs in parallel against an endpoint that answers after 200 ms.

Ideal is the time that the calls of one run take one after another, since all runs could wait at the same time. The
figures are model calls a second.
"""

import argparse
import functools
import importlib
import json
import logging
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from _upstream import endpoint  # type: ignore[import-not-found]

import memorydojo as md
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.running.environment import fresh_environment
from memorydojo.runs import RunPlan

LATENCY = 0.2
RUNS = 64


def _plans(sessions: int) -> list[RunPlan]:
    tasks = [f"user_task_{n % 16}" for n in range(sessions)]
    planned = tuple(md.Session(domain="banking", task_id=task) for task in tasks)
    trajectories = [md.Trajectory(id=f"t{n}", collection="benchmark", sessions=planned) for n in range(RUNS)]
    return [md.plan_run(t, "full_context", model="m", embedding_model="m") for t in trajectories]


def _import() -> None:
    """What a process imports once, ahead of the clock and ahead of forking."""
    for module in ("openai", "uvicorn", "aiohttp", "uvloop", "memorydojo.running.llm", "memorydojo.models.app"):
        importlib.import_module(module)
    fresh_environment("banking")


def _warm(number: int, *, directory: Path, models: Models) -> None:
    """One run ahead of the clock, so that every worker has its connections and its gateway."""
    md.sweep([replace_id(_plans(1)[0], f"warm-{number}")], directory=directory, models=models)
    time.sleep(1)


def replace_id(plan: RunPlan, id: str) -> RunPlan:
    """The same plan for a trajectory of another name."""
    return plan.model_copy(update={"trajectory": plan.trajectory.model_copy(update={"id": id})})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=8, help="sessions of each run")
    parser.add_argument("--processes", action="store_true", help="one process for each run instead of one thread")
    options = parser.parse_args()
    logging.disable()
    _import()
    with tempfile.TemporaryDirectory() as scratch, endpoint(LATENCY) as url:
        backend = Backend(base_url=url, key_env="", limits=Limits(concurrency=RUNS))
        models = Models(backends={"b": backend}, models={"m": Model(backend="b")})
        executor: Executor
        if options.processes:
            executor = ProcessPoolExecutor(RUNS, mp_context=get_context("fork"), initializer=logging.disable)
        else:
            executor = ThreadPoolExecutor(RUNS)
        with executor:
            warm = functools.partial(_warm, directory=Path(scratch) / "warm", models=models)
            list(executor.map(warm, range(RUNS)))
            start = time.perf_counter()
            runs = md.sweep(
                _plans(options.sessions), directory=Path(scratch) / "runs", models=models, executor=executor
            )
            took = time.perf_counter() - start
        calls = [sum(u.calls for s in run.sessions for u in s.usage) for run in runs]
    ideal = max(calls) * LATENCY
    sys.stdout.write(f"{RUNS} runs, {sum(calls)} calls, {took:.1f} s; all waiting at once would take {ideal:.1f} s\n")
    result = {
        "name": "concurrency",
        "unit": "calls/s",
        "ours": round(sum(calls) / took, 1),
        "baseline": round(sum(calls) / ideal, 1),
        "ratio": round(ideal / took, 3),
        "baseline_is": f"ideal: {RUNS} runs that wait {LATENCY * 1000:.0f} ms a call and do nothing else",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
