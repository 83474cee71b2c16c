"""What sharing sessions saves: a history-prefixed experiment of 4 objectives x 2 payloads and the clean run.

Both sweeps run here and now against an endpoint that answers after 100 ms. What is counted are the writes that the
memory really got. The figures are memory writes; the seconds are those of one worker, where time is work.
"""

import argparse
import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from _upstream import endpoint  # type: ignore[import-not-found]

import memorydojo as md
from memorydojo.adapter import load_adapter
from memorydojo.models.config import Backend, Limits, Model, Models
from memorydojo.record import SessionRecord
from memorydojo.running.environment import fresh_environment
from memorydojo.runs import RunPlan

LATENCY = 0.1
OBJECTIVES = ("workspace", "travel", "banking", "slack")
PAYLOADS = ("seed-1", "seed-2")


def _plans(memory: str, histories: int) -> list[RunPlan]:
    attacks = [md.Attack(objective=objective, payload=payload) for objective in OBJECTIVES for payload in PAYLOADS]
    return [
        md.plan_run(trajectory, memory, attack=attack, model="m", embedding_model="m")
        for trajectory in md.trajectories.load("history-prefixed")[:histories]
        for attack in (None, *attacks)
    ]


@contextmanager
def _counted(memory: str) -> Iterator[list[str]]:
    """The ids of the records that the memory system is given, as it is given them."""
    adapter, seen, lock = load_adapter(memory), list[str](), threading.Lock()
    write = adapter.write

    def counting(self: md.MemoryAdapter, record: SessionRecord) -> None:
        with lock:
            seen.append(record.id)
        write(self, record)

    with mock.patch.object(adapter, "write", counting):
        yield seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", default="vector", help="the memory system")
    parser.add_argument("--workers", type=int, default=1, help="runs at once; with one, time is work")
    parser.add_argument("--histories", type=int, default=1, help="how many histories")
    options = parser.parse_args()
    logging.disable()
    for domain in OBJECTIVES:
        fresh_environment(domain)
    plans = _plans(options.memory, options.histories)
    writes, seconds = {}, {}
    with tempfile.TemporaryDirectory() as scratch, endpoint(LATENCY) as url:
        backend = Backend(base_url=url, key_env="", limits=Limits(concurrency=64))
        models = Models(backends={"b": backend}, models={"m": Model(backend="b")})
        warm = plans[0].model_copy(update={"seed": 1})
        md.sweep([warm], directory=Path(scratch) / "warm", models=models)
        for share in (False, True):
            with _counted(options.memory) as seen, ThreadPoolExecutor(options.workers) as executor:
                start = time.perf_counter()
                directory = Path(scratch) / str(share)
                runs = md.sweep(plans, directory=directory, models=models, share=share, executor=executor)
                seconds[share] = time.perf_counter() - start
            writes[share] = len(seen)
            if not all(run.complete for run in runs):
                raise SystemExit("a run is not complete")
    sys.stdout.write(
        f"{len(plans)} runs on {options.memory}: {writes[False]} writes and {seconds[False]:.1f} s without sharing, "
        f"{writes[True]} writes and {seconds[True]:.1f} s with it ({LATENCY * 1000:.0f} ms a model call)\n"
    )
    result = {
        "name": "prefix_sharing",
        "unit": "memory writes",
        "ours": writes[True],
        "baseline": writes[False],
        "ratio": round(writes[False] / writes[True], 3),
        "baseline_is": "the same sweep with share=False",
        "seconds": round(seconds[True], 1),
        "baseline_seconds": round(seconds[False], 1),
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
