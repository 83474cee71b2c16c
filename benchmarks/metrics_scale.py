"""A million session rows: all metrics with 1,000 bootstrap replicates, against a plain Python loop without intervals.

Both start from the same DataFrame in memory and group by memory system. Ours checks the whole table too; the loop takes
it on trust, and gets the columns that it needs as tuples in the fastest way that pandas offers. The values must agree.
"""

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from memorydojo.metrics import summarize

SESSIONS = 10
MEMORIES = ("amem", "graphiti", "letta", "mem0", "memora")
METRICS = ("ISR", "ASR", "RSR", "PE", "PR", "PP", "TU", "BRT", "BRT_given_R", "BR")
COLUMNS = [
    *("run_id", "session", "insertion_session", "inserted", "retrieved", "retrieved_original"),
    *("retrieved_descendant", "objective_met", "utility", "memory"),
]


def make_table(n_rows: int, seed: int) -> pd.DataFrame:
    """Attacked runs of ten sessions, twenty of them on each trajectory, with random outcomes."""
    random = np.random.default_rng(seed)
    n_runs = n_rows // SESSIONS
    run, session = np.repeat(np.arange(n_runs), SESSIONS), np.tile(np.arange(1, SESSIONS + 1), n_runs)
    insertion = random.integers(1, SESSIONS, n_runs)[run]
    original = (session > insertion) & (random.random(len(run)) < 0.3)
    descendant = (session > insertion) & (random.random(len(run)) < 0.2)
    domains = np.array(["workspace", "travel", "banking", "slack"], dtype=object)
    table = pd.DataFrame({"run_id": np.array([f"run-{i:07d}" for i in range(n_runs)], dtype=object)[run]})
    return table.assign(
        session=session,
        n_sessions=SESSIONS,
        insertion_session=insertion,
        domain=domains[random.integers(0, 4, len(run))],
        objective_domain=domains[random.integers(0, 4, n_runs)][run],
        inserted=(random.random(n_runs) < 0.8)[run],
        retrieved=original | descendant,
        retrieved_original=original,
        retrieved_descendant=descendant,
        objective_met=random.random(len(run)) < 0.1,
        utility=random.random(len(run)) < 0.6,
        completed=True,
        memory=np.array(MEMORIES, dtype=object)[np.arange(n_runs) % len(MEMORIES)][run],
        trajectory_id=np.array([f"trajectory-{i // 20:05d}" for i in range(n_runs)], dtype=object)[run],
        simulated=False,
    )


def plain_loop(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The same metrics by counting row after row."""
    counts: dict[str, dict[str, int]] = {}
    reached: dict[str, set[str]] = {}
    rows: Iterator[tuple[Any, ...]] = table[COLUMNS].itertuples(index=False, name=None)
    for run, t, t0, inserted, retrieved, original, descendant, met, utility, memory in rows:
        count = counts.get(memory)
        if count is None:
            names = ("runs", "s", "z0", "later", "u", "o", "d", "od", "sessions", "useful", "z", "uz")
            count = counts[memory] = dict.fromkeys(names, 0)
            reached[memory] = set()
        count["sessions"] += 1
        if utility:
            count["useful"] += 1
        if t == t0:
            count["runs"] += 1
            count["s"] += inserted
            count["z0"] += met
        elif t > t0:
            count["later"] += 1
            if met:
                count["z"] += 1
                reached[memory].add(run)
            if retrieved:
                count["u"] += 1
                count["uz"] += met
                count["od" if original and descendant else "o" if original else "d"] += 1
    return {memory: _divided(count, len(reached[memory])) for memory, count in counts.items()}


def _divided(count: dict[str, int], reached: int) -> dict[str, float]:
    runs, later, recalled = count["runs"], count["later"], count["u"]
    return {
        "ISR": count["s"] / runs,
        "ASR": count["z0"] / runs,
        "RSR": recalled / later,
        "PE": count["o"] / recalled,
        "PR": count["d"] / recalled,
        "PP": count["od"] / recalled,
        "TU": count["useful"] / count["sessions"],
        "BRT": count["z"] / later,
        "BRT_given_R": count["uz"] / recalled,
        "BR": reached / runs,
    }


def _best(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest time in seconds, and the result."""
    seconds, result = math.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="each side is timed this often; the shortest time counts"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    table = make_table(arguments.rows, arguments.seed)
    ours, result = _best(arguments.repeats, lambda: summarize(table, by="memory", replicates=arguments.replicates))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**30
    baseline, expected = _best(arguments.repeats, lambda: plain_loop(table))
    by_memory = result.set_index("memory")
    for name, metrics in expected.items():
        for metric, value in metrics.items():
            if not math.isclose(by_memory.loc[name, metric], value, rel_tol=1e-12):
                sys.exit(f"{metric} of {name} differs: {by_memory.loc[name, metric]} here, {value} in the plain loop")
    print(result[["memory", "n_runs", "n_trajectories", "RSR", "RSR_low", "RSR_high"]].to_string(index=False))
    print(f"{len(table)} rows, {len(METRICS)} metrics agree in {len(expected)} groups")
    print(f"ours with {arguments.replicates} replicates {ours:.2f} s; plain loop {baseline:.2f} s")
    print(f"peak memory with the table {memory:.2f} GB")
    print(
        json.dumps(
            {
                "name": "metrics_scale",
                "unit": "s",
                "ours": round(ours, 4),
                "baseline": round(baseline, 4),
                "ratio": round(baseline / ours, 2),
                "baseline_is": "plain Python loop over the same rows, without intervals and without checking the table",
            }
        )
    )


if __name__ == "__main__":
    main()
