"""``memorydojo demo``: the main job end to end, offline."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import plain
from memorydojo.trajectory import DOMAINS

if TYPE_CHECKING:
    from memorydojo.runs.model import RunPlan

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
    """
    from memorydojo.adapters import DEMO_MEMORY
    from memorydojo.cli.metrics import metrics
    from memorydojo.running.sweep import sweep

    plans = list(demo_plans(memory or DEMO_MEMORY, seed=seed))
    poisoned = sum(plan.insertion is not None for plan in plans)
    typer.echo(
        f"{poisoned} poisoned and {len(plans) - poisoned} clean runs of {LENGTH} sessions with "
        f"{plain(plans[0].memory)}, simulated, in {workers} processes"
    )

    def progress(done: int, of: int, identity: str) -> None:
        typer.echo(f"  {done:>3}/{of}  {plain(identity)}")

    # Spawned, not forked: onnxruntime and spaCy keep threads that a fork would tear.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(plans)), mp_context=context) as executor:
        sweep(plans, directory=directory, executor=executor, progress=progress)
    typer.echo("")
    metrics([directory], by=["objective_domain"])
    typer.echo("")
    metrics([directory])
    typer.echo(f"\nThe runs are saved in {plain(str(directory))}.")
    typer.echo(f"next: memorydojo metrics {plain(str(directory))} --by payload_id")


def demo_plans(memory: str, *, seed: int = 0) -> "Iterator[RunPlan]":
    """The plans of the demo: for each trajectory a clean run and one for each seed payload of its domain."""
    from memorydojo import trajectories
    from memorydojo.attack import Attack
    from memorydojo.running.runner import plan_run
    from memorydojo.shipped import payloads

    for domain in DOMAINS:
        chosen = [t for t in trajectories.load(domain) if len(t) == LENGTH][:PER_DOMAIN]
        for trajectory in chosen:
            yield plan_run(trajectory, memory, seed=seed)
            for payload in payloads[domain]:
                yield plan_run(trajectory, memory, seed=seed, attack=Attack(objective=domain, payload=payload))
