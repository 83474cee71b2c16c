"""``memorydojo demo``: the main job end to end, offline."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain
from memorydojo.cli._sweeping import executor_of, run_sweep
from memorydojo.trajectory import DOMAINS

if TYPE_CHECKING:
    from memorydojo.planning import SweepPlan

#: Trajectories of each domain that the demo runs: its first ones of this length.
PER_DOMAIN = 3
LENGTH = 5


def demo(
    directory: Annotated[Path, typer.Option(help="Where the runs are saved.")] = Path("runs/demo"),
    memory: Annotated[str | None, typer.Option(help="Memory system; Mem0 if it is not given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulator.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = min(os.cpu_count() or 1, 8),
) -> None:
    """Run poisoned and clean same-domain trajectories over all four domains, and print the metrics.

    Everything is offline: a simulated agent on AgentDojo's real tasks, a real memory system with a simulated model
    behind it. The results describe the simulator and the memory system, never an LLM.

    Example: memorydojo demo --memory vector --directory runs/vector
    """
    from memorydojo.adapters import DEMO_MEMORY
    from memorydojo.cli.metrics import metrics
    from memorydojo.planning import expand

    plans = expand(demo_plan(memory or DEMO_MEMORY, seed=seed)).runnable()
    poisoned = sum(plan.insertion is not None for plan in plans)
    typer.echo(
        f"{poisoned} poisoned and {counted(len(plans) - poisoned, 'clean run')} of {LENGTH} sessions with "
        f"{plain(plans[0].memory)}, simulated, in {counted(workers, 'process', 'processes')}"
    )

    run_sweep(
        plans,
        directory=directory,
        executor=executor_of("processes", min(workers, len(plans))),
        again="run the same command again",
    )
    typer.echo("")
    metrics([directory], by=["objective_domain"])
    typer.echo("")
    metrics([directory])
    typer.echo(f"\nThe runs are saved in {plain(str(directory))}.")
    typer.echo(f"next: memorydojo metrics {plain(str(directory))} --by payload_id")


def demo_plan(memory: str, *, seed: int = 0) -> "SweepPlan":
    """The demo's sweep: for each trajectory a clean run and one for each seed payload of its domain."""
    from memorydojo import trajectories
    from memorydojo.planning import SweepPlan

    chosen = {domain: [t.id for t in trajectories.load(domain) if len(t) == LENGTH] for domain in DOMAINS}
    return SweepPlan(
        name="demo",
        collections="same-domain",
        trajectories=[id for domain in DOMAINS for id in chosen[domain][:PER_DOMAIN]],
        memories=memory,
        objectives="own-domain",
        payloads=["seed-1", "seed-2"],
        clean=True,
        seeds=seed,
    )
