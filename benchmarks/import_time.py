"""How long imports take in a fresh interpreter: ours against AgentDojo's.

``import memorydojo`` and ``import memorydojo.metrics`` are what work on saved runs needs; a program that uses AgentDojo
imports ``agentdojo.task_suite``. Every import has an interpreter of its own, all in turn, after one uncounted round that
fills the file cache; the median counts, less the median start of a bare interpreter.
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
            taken = seconds(statement)
            if number:
                times[name].append(taken)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        print(f"{name:<22} median {median[name]:.3f} s, from {min(taken):.3f} to {max(taken):.3f} s")
    net = {name: value - median["bare"] for name, value in median.items()}
    print(f"import memorydojo.metrics is {net['agentdojo.task_suite'] / net['memorydojo.metrics']:.1f} times faster")
    print(
        json.dumps(
            {
                "name": "import_time",
                "unit": "s",
                "ours": round(net["memorydojo"], 4),
                "baseline": round(net["agentdojo.task_suite"], 4),
                "ratio": round(net["agentdojo.task_suite"] / net["memorydojo"], 2),
                "baseline_is": "import agentdojo.task_suite in a fresh interpreter, less the bare interpreter's start",
            }
        )
    )


if __name__ == "__main__":
    main()
