"""What a replay saves: a recorded sweep of 8 runs against the same sweep on an endpoint that answers after 200 ms.

The replay asks the endpoint nothing, which is gone by then, and gives the same facts; if not, this ends with 1.
"""

import json
import logging
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _upstream import endpoint  # type: ignore[import-not-found]

import memorydojo as md
from memorydojo.models.config import Backend, Model, Models
from memorydojo.runs import RunPlan, Runs

LATENCY = 0.2
RUNS = 8


def _facts(runs: Runs) -> list[Any]:
    return [[s.model_dump(mode="json", exclude={"seconds", "waiting"}) for s in run.sessions] for run in runs]


def _one_by_one(plans: list[RunPlan], directory: Path, models: Models, **more: Any) -> tuple[Runs, float]:
    """The runs, one after another, and the seconds that they took."""
    with ThreadPoolExecutor(1) as alone:
        start = time.perf_counter()
        runs = md.sweep(plans, directory=directory, models=models, executor=alone, **more)
        return runs, time.perf_counter() - start


def main() -> int:
    logging.disable()
    planned = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in range(8))
    trajectories = [md.Trajectory(id=f"t{n}", collection="benchmark", sessions=planned) for n in range(RUNS)]
    plans = [md.plan_run(t, "vector", model="m", embedding_model="m") for t in trajectories]
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch) / "first"
        with endpoint(LATENCY) as url:
            backend = Backend(base_url=url, key_env="")
            models = Models(backends={"b": backend}, models={"m": Model(backend="b")})
            md.sweep(plans[:1], directory=Path(scratch) / "warm", models=models)
            recorded, slow = _one_by_one(plans, first, models)
        again, answers = Path(scratch) / "again", first / "answers.sqlite"
        replayed, fast = _one_by_one(plans, again, models, replay="only", answers=answers)
        same = _facts(recorded) == _facts(replayed) and recorded.session_table().equals(replayed.session_table())
    sys.stdout.write(f"the same facts and session table: {'yes' if same else 'NO'}\n")
    result = {
        "name": "replay",
        "unit": "s",
        "ours": round(fast, 3),
        "baseline": round(slow, 3),
        "ratio": round(slow / fast, 2),
        "baseline_is": f"the same {RUNS} runs, one after another, on an endpoint of {LATENCY * 1000:.0f} ms",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
