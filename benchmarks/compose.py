"""Replaying pairs and sequences of tasks: ours against AgentDojo's own way, in CPU time.

Baseline: for every replay an environment is loaded from AgentDojo's files, and each task runs on it through
``TaskSuite.run_task_with_pipeline`` with the ground-truth pipeline. Ours: ``memorydojo.trajectories.replay.Replayer``,
which also finds the flags (drift and stale success) that the baseline does not look for.

Both are measured after AgentDojo was imported and its suite files were read once, which neither can avoid. Ours pays
inside the measurement for everything it prepares: snapshots of the fresh environments, and the replay of every task by
itself. So the ratio grows with the number of replays; the default sample is the harder case.

The default replays a fixed sample of pairs of every domain and a few whole sequences; ``--all`` replays all 2,600 pairs
and the 124 sequences that ship. The verdicts must agree, else the exit code is 1.
"""

import argparse
import json
import sys
import time
from itertools import permutations
from random import Random

from memorydojo.running import environment
from memorydojo.trajectories import load
from memorydojo.trajectories.replay import Replayer
from memorydojo.trajectory import DOMAINS

Pair = tuple[str, str, str]
Tasks = tuple[tuple[str, str], ...]

ONE_IN = 8
"""The default takes one in so many of the pairs of every domain, and of the sequences."""


def main() -> int:
    arguments = argparse.ArgumentParser(description="Measures replays against AgentDojo's own.")
    arguments.add_argument("--all", action="store_true", help="all 2,600 pairs and 124 sequences; takes minutes")
    pairs, sequences = work(everything=arguments.parse_args().all)
    warm_up()
    print(f"{len(pairs)} pairs, {len(sequences)} sequences of {sum(map(len, sequences))} sessions")

    start = time.process_time()
    ours_pairs, ours_sequences = ours(pairs, sequences)
    ours_seconds = time.process_time() - start
    print(f"ours      {ours_seconds:9.2f} CPU s")

    start = time.process_time()
    baseline_pairs = [baseline(((d, first), (d, second))) for d, first, second in pairs]
    baseline_sequences = [baseline(tasks) for tasks in sequences]
    baseline_seconds = time.process_time() - start
    print(f"AgentDojo {baseline_seconds:9.2f} CPU s")

    differ = [p for p, a, b in zip(pairs, ours_pairs, baseline_pairs, strict=True) if a != all(b)]
    differ_sequences = [s for s, a, b in zip(sequences, ours_sequences, baseline_sequences, strict=True) if a != b]
    print(f"verdicts: {sum(map(all, baseline_pairs))} of {len(pairs)} pairs pass,")
    print(f"          {sum(map(all, baseline_sequences))} of {len(sequences)} sequences")
    for item in (*differ, *differ_sequences):
        print(f"verdicts differ: {item}")
    print(
        json.dumps(
            {
                "name": "compose",
                "unit": "CPU s",
                "ours": round(ours_seconds, 3),
                "baseline": round(baseline_seconds, 3),
                "ratio": round(baseline_seconds / ours_seconds, 2),
                "baseline_is": "the same replays through AgentDojo's run_task_with_pipeline, "
                "each with a freshly loaded environment",
            }
        )
    )
    return 1 if differ or differ_sequences else 0


def work(*, everything: bool) -> tuple[list[Pair], list[Tasks]]:
    rng = Random(0)
    pairs: list[Pair] = []
    for domain in DOMAINS:
        of_domain = [(domain, first, second) for first, second in permutations(environment.task_ids(domain), 2)]
        pairs += of_domain if everything else rng.sample(of_domain, len(of_domain) // ONE_IN)
    trajectories = [t for name in ("same-domain", "cross-domain") for t in load(name)]
    chosen = trajectories if everything else trajectories[::ONE_IN]
    return pairs, [tuple((s.domain, s.task_id) for s in trajectory.sessions) for trajectory in chosen]


def warm_up() -> None:
    """AgentDojo reads and parses each suite's files once a process, whoever asks first."""
    for domain in DOMAINS:
        environment.suite(domain).load_and_inject_default_environment({})


def ours(pairs: list[Pair], sequences: list[Tasks]) -> tuple[list[bool], list[list[bool]]]:
    replayer = Replayer()
    by_pair = [replayer.pair(*pair).passed for pair in pairs]
    return by_pair, [[outcome.passed for outcome in replayer.sequence(tasks)] for tasks in sequences]


def baseline(tasks: Tasks) -> list[bool]:
    """Verdicts of the tasks in order, on carried state, up to the first that fails."""
    from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline

    states = {}
    verdicts: list[bool] = []
    for domain, task_id in tasks:
        suite = environment.suite(domain)
        if domain not in states:
            states[domain] = suite.load_and_inject_default_environment({})
        task = suite.user_tasks[task_id]
        try:
            utility, _ = suite.run_task_with_pipeline(
                GroundTruthPipeline(task), task, injection_task=None, injections={}, environment=states[domain]
            )
        except Exception as error:  # the ground truth raised on this state: the replay fails
            print(f"  {domain} {task_id}: {type(error).__name__}: {error}")
            utility = False
        verdicts.append(bool(utility))
        if not utility:
            break
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
