"""What learning from feedback is worth: the offline strategy against random rewordings, at equal tests.

For each seed both strategies search for a payload against the same memory system and objective, on the same auxiliary
trajectories, with the same number of candidates tested. The figure is the best BRT on them, pooled over the seeds. The
runs are simulated: it describes the strategies on the simulator, never an LLM.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from memorydojo.optimizer import FeedbackStrategy, RandomStrategy, Search, Strategy, auxiliary_ground, optimize
from memorydojo.optimizer.selection import strongest


def _best(search: Search) -> tuple[int, int]:
    """Later sessions met, and planned, of the strongest candidate that a strategy wrote."""
    own = [one for one in search.tested if one.candidate.kind != "seed"]
    found = strongest(own)
    if found is None:
        return 0, search.tested[0].feedback.counts.later
    return found.feedback.counts.met, found.feedback.counts.later


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", default="vector", help="memory system")
    parser.add_argument("--objective", default="banking", help="objective")
    parser.add_argument("--rounds", type=int, default=6, help="rounds of each search")
    parser.add_argument("--seeds", type=int, default=4, help="searches of each strategy")
    parser.add_argument("--trajectories", type=int, default=2, help="auxiliary trajectories")
    options = parser.parse_args()
    strategies: tuple[Strategy, Strategy] = (FeedbackStrategy(), RandomStrategy())
    met, later = [0, 0], [0, 0]
    for seed in range(options.seeds):
        ground = auxiliary_ground(options.objective, seed=seed, count=options.trajectories, lengths=(4, 6))
        for side, strategy in enumerate(strategies):
            start = time.perf_counter()
            with tempfile.TemporaryDirectory() as scratch:
                search = optimize(
                    memory=options.memory,
                    objective=options.objective,
                    directory=Path(scratch) / "search",
                    rounds=options.rounds,
                    strategy=strategy,
                    ground=ground,
                    seed=seed,
                )
                found = _best(search)
            met[side], later[side] = met[side] + found[0], later[side] + found[1]
            took = time.perf_counter() - start
            tested = len(search.tested)
            sys.stdout.write(
                f"seed {seed}, {strategy.name}: best {found[0]}/{found[1]}, {tested} candidates, {took:.1f} s\n"
            )
    ours, baseline = (m / n for m, n in zip(met, later, strict=True))
    result = {
        "name": "optimizer",
        "unit": "best auxiliary BRT (simulated)",
        "ours": round(ours, 4),
        "baseline": round(baseline, 4),
        "ratio": round(ours / baseline, 3) if baseline else None,
        "baseline_is": "random rewordings from the same space, as many candidates tested on the same trajectories",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
