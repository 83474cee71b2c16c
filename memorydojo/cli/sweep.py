"""``memorydojo sweep``: many runs from one file."""

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain, verb
from memorydojo.cli._console import print_view
from memorydojo.cli._sweeping import executor_of, run_sweep
from memorydojo.cli.run import replay_mode
from memorydojo.errors import InvalidInputError

if TYPE_CHECKING:
    from memorydojo.planning import SweepPlan
    from memorydojo.runs import Runs


def sweep(
    file: Annotated[Path | None, typer.Argument(help="A plan: .toml or .yaml; see docs/sweeps.md.")] = None,
    experiment: Annotated[
        str | None, typer.Option(help="An experiment that ships, instead of FILE; see `memorydojo experiments list`.")
    ] = None,
    directory: Annotated[
        Path | None, typer.Option(help="Where the runs are saved; runs/ and the plan's name if not given.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The dry run as JSON.")] = False,
    trajectories: Annotated[
        str | None, typer.Option(help="A collection or a trajectory file, instead of the plan's collections and files.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once.")] = min(os.cpu_count() or 1, 8),
    executor: Annotated[str, typer.Option(help="What runs them: threads or processes.")] = "threads",
    models: Annotated[Path | None, typer.Option(help="A TOML file that declares models; see docs/models.md.")] = None,
    replay: Annotated[str, typer.Option(help="Recorded answers: off, prefer or only.")] = "off",
    answers: Annotated[
        Path | None, typer.Option(help="The file of recorded answers; answers.sqlite in --directory if not given.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="A TOML file of prices, for the costs; see docs/models.md.")
    ] = None,
    share: Annotated[
        bool | None,
        typer.Option(help="Run the sessions that several runs begin with once; if not given, where that is exact."),
    ] = None,
    repeat_failed: Annotated[
        bool,
        typer.Option("--repeat-failed", help="Run anew what has failed sessions, as after an outage; facts are kept."),
    ] = False,
    keep_memory: Annotated[bool, typer.Option("--keep-memory", help="Keep the memory systems' own files.")] = False,
) -> None:
    """Run a plan, and go on where it was left. Ctrl-C ends it after the runs under way; the exit code is then 130.

    Example: memorydojo sweep --experiment table-1 --dry-run
    """
    from memorydojo.cost import read_prices
    from memorydojo.models.config import Models
    from memorydojo.planning import dry_run as look_ahead
    from memorydojo.planning import expand
    from memorydojo.planning._view import dry_run_view
    from memorydojo.planning.expand import not_in_plan, say_others

    plan = _plan(file, experiment, trajectories)
    place = directory or Path("runs") / plan.name
    expansion = expand(plan)
    declared = Models.from_toml(models) if models is not None else None
    price = read_prices(prices) if prices is not None else None
    if dry_run:
        report = look_ahead(expansion, directory=place, models=declared, share=share)
        report = replace(report, name=plan.name)
        if as_json:
            typer.echo(json.dumps(report.as_data(), indent=1))
        else:
            print_view(dry_run_view(report, description=plan.description, directory=place, limit=None))
        return
    if as_json:
        raise InvalidInputError("--json is for --dry-run; the results of a sweep are in its directory")
    plans = expansion.runnable()
    typer.echo(f"{plain(plan.name)}: {counted(len(plans), 'run')}, saved in {plain(str(place))}")
    runs = run_sweep(
        plans,
        directory=place,
        executor=executor_of(executor, jobs),
        models=declared,
        replay=replay_mode(replay),
        answers=answers,
        share=share,
        repeat_failed=repeat_failed,
        keep_memory=keep_memory,
        prices=price,
        again="run the same command again",
    )
    failed, never_entered = _not_as_planned(runs)
    typer.echo(f"{counted(len(runs), 'run')} {verb(len(runs))} done and saved in {plain(str(place))}")
    if never_entered:
        typer.echo(
            f"warning: in {never_entered} of the poisoned runs the payload never entered an observation; "
            f"{verb(never_entered, 'it counts', 'they count')} as 0 in every metric of the attack",
            err=True,
        )
    others = not_in_plan(plans, place)
    if others:
        typer.echo(f"warning: {plain(say_others(others, place))}", err=True)
    typer.echo(f"next: memorydojo metrics {plain(shlex.quote(str(place)))} --by memory")
    if failed:
        typer.echo(
            f"{failed} of them {verb(failed, 'has', 'have')} sessions that failed; `memorydojo metrics` says at which "
            "stage. When the cause is gone, the same command with --repeat-failed runs "
            f"{verb(failed, 'it', 'them')} anew"
        )
        raise typer.Exit(1)


def _plan(file: Path | None, experiment: str | None, trajectories: str | None) -> "SweepPlan":
    from memorydojo.planning import SweepPlan
    from memorydojo.planning import experiment as shipped

    if (file is None) == (experiment is None):
        raise InvalidInputError("give either a file or --experiment; `memorydojo experiments list` shows what ships")
    plan = SweepPlan.from_file(file) if file is not None else shipped(str(experiment))
    return plan.on_trajectories(trajectories) if trajectories is not None else plan


def _not_as_planned(runs: "Runs") -> tuple[int, int]:
    """How many runs did not run whole, and in how many the payload never entered."""
    from memorydojo.runs.load import Run

    # A run of its own each: the sessions of all together may not fit into memory.
    known = (Run(run.directory) for run in runs)
    found = [(not run.ran_whole, run.end is not None and run.end.payload_inserted is False) for run in known]
    return sum(failed for failed, _ in found), sum(missed for _, missed in found)
