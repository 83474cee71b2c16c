"""How commands run a sweep: executors, progress, and Ctrl-C."""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memorydojo._display import plain
from memorydojo.errors import UnknownNameError

if TYPE_CHECKING:
    from memorydojo.cost import Price
    from memorydojo.models.access import Replay
    from memorydojo.models.config import Models
    from memorydojo.runs import Runs
    from memorydojo.runs.model import RunPlan

#: Exit code of a command that Ctrl-C has stopped, as shells have it.
INTERRUPTED = 130


def executor_of(kind: str, jobs: int) -> Executor:
    """Threads or processes.

    Raises:
        UnknownNameError: It is neither.
    """
    if kind == "threads":
        return ThreadPoolExecutor(jobs)
    if kind == "processes":
        from memorydojo.running.sweep import end_with_the_parent

        # Spawned, not forked: onnxruntime and spaCy keep threads that a fork would tear.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_the_parent)
    raise UnknownNameError("executor", kind, ["threads", "processes"])


def run_sweep(
    plans: "Sequence[RunPlan]",
    *,
    directory: Path,
    executor: Executor,
    models: "Models | None" = None,
    replay: "Replay" = "off",
    answers: Path | None = None,
    share: bool | None = None,
    repeat_failed: bool = False,
    keep_memory: bool = False,
    prices: "Mapping[str, Price] | None" = None,
    again: str,
) -> "Runs":
    """Runs a sweep with progress; Ctrl-C ends the command with exit code 130, once what is under way is saved.

    Args:
        plans: The runs.
        directory: Where they are saved.
        executor: Runs them, and is shut down.
        models: See `memorydojo.sweep`.
        replay: The same.
        answers: The same.
        share: The same.
        repeat_failed: The same.
        keep_memory: The same.
        prices: Prices by model, for the costs in the progress.
        again: The command that goes on, for the message after Ctrl-C.
    """
    from memorydojo.planning.progress import progress_of
    from memorydojo.running.interrupt import SweepInterrupted
    from memorydojo.running.sweep import sweep

    try:
        with progress_of(plans, directory, prices=prices) as progress:
            runs = sweep(
                plans,
                directory=directory,
                executor=executor,
                models=models,
                replay=replay,
                answers=answers,
                share=share,
                repeat_failed=repeat_failed,
                keep_memory=keep_memory,
                progress=progress or False,
            )
    except SweepInterrupted as stop:
        executor.shutdown()
        typer.echo(plain(str(stop)), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        # Ended at once: neither threads nor worker processes are waited for, and the latter end with this process.
        typer.echo(f"\nended; what was complete is saved. To go on: {plain(again)}", err=True)
        sys.stdout.flush()
        os._exit(INTERRUPTED)
    except BaseException:
        executor.shutdown(cancel_futures=True)
        raise
    executor.shutdown()
    return runs
