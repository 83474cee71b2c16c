"""How long a fresh interpreter takes to start and import: ours against AgentDojo's.

``import memorydojo`` alone loads next to nothing, since public names are imported when they are first used;
``import memorydojo.metrics`` is what work on saved runs needs (most of it is pandas). A program that uses AgentDojo
imports ``agentdojo.task_suite``. Every import has an interpreter of its own, all in turn, after one uncounted round
that fills the file cache; medians of whole processes count.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

STATEMENTS = {
    "bare": "pass",
    "memorydojo": "import memorydojo",
    "memorydojo.metrics": "import memorydojo.metrics",
    "agentdojo.task_suite": "import agentdojo.task_suite",
}


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for number in range(arguments.repeats + 1):
        for name, statement in STATEMENTS.items():
            one = seconds(statement)
            if number:
                times[name].append(one)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        print(f"{name:<22} median {median[name]:.3f} s, from {min(taken):.3f} to {max(taken):.3f} s")
    theirs = median["agentdojo.task_suite"]
    print(f"agentdojo.task_suite takes {theirs / median['memorydojo.metrics']:.1f} times as long as memorydojo.metrics")
    print(
        json.dumps(
            {
                "name": "import_time",
                "unit": "s",
                "ours": round(median["memorydojo"], 4),
                "baseline": round(theirs, 4),
                "ratio": round(theirs / median["memorydojo"], 2),
                "baseline_is": "a fresh interpreter that imports agentdojo.task_suite",
            }
        )
    )


if __name__ == "__main__":
    main()
