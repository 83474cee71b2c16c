"""``memorydojo optimize``: searches for the payload that reaches furthest against one memory system."""

from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain
from memorydojo.cli._console import print_view
from memorydojo.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from memorydojo.optimizer.saved import Event
    from memorydojo.optimizer.strategy import Strategy

app = typer.Typer()

Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="The directory of a search.")]
Workers = Annotated[int, typer.Option(min=1, help="How many runs at once.")]
ModelsFile = Annotated[Path | None, typer.Option(help="A TOML file that declares models; see docs/models.md.")]
Answers = Annotated[
    Path | None, typer.Option(help="The file of recorded answers; answers.sqlite in the directory if not given.")
]


@app.callback(invoke_without_command=True)
def search(
    context: typer.Context,
    memory: Annotated[str | None, typer.Option(help="Memory system: a registered name or module:Class.")] = None,
    objective: Annotated[str | None, typer.Option(help="Objective: workspace, travel, banking or slack.")] = None,
    directory: Annotated[
        Path | None, typer.Option(help="Where the search is saved; beside --output, without its ending, if not given.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A .json file that the selected payload is also written to, as sweeps take it.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of revision.")] = 8,
    proposals: Annotated[int, typer.Option(min=1, help="Proposals a round; the best valid one is tested.")] = 4,
    strategy: Annotated[
        str | None,
        typer.Option(help="offline, random, or module:function that returns a Strategy; offline if not given."),
    ] = None,
    optimizer_model: Annotated[
        str | None, typer.Option(help="A model of --models that proposes, instead of --strategy.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="A model of --models that also checks that proposals keep the objective.")
    ] = None,
    tolerance: Annotated[int, typer.Option(min=0, help="How many tasks fewer than the first seed may be done.")] = 2,
    trajectories: Annotated[int, typer.Option(min=1, help="Auxiliary trajectories.")] = 6,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Budget: model calls in all.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Budget: tokens in all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search and of the simulator.")] = 0,
    model: Annotated[str, typer.Option(help="Model of the agent, by its name in --models.")] = "simulated",
    memory_model: Annotated[
        str | None, typer.Option(help="Chat model of the memory side; the agent's if not given.")
    ] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="Embedding model of the memory side; the local one if not given.")
    ] = None,
    models: ModelsFile = None,
    replay: Annotated[str, typer.Option(help="Recorded answers: off, prefer or only.")] = "off",
    answers: Answers = None,
    workers: Workers = 1,
) -> None:
    """Search for the payload that reaches furthest against one memory system; the same command goes on with a search.

    Example: memorydojo optimize --memory mem0 --objective workspace --rounds 8 --directory searches/mem0
    """
    if context.invoked_subcommand is not None:
        return
    if output is not None and output.suffix.lower() != ".json":
        raise typer.BadParameter("the selected payload is written to a file that ends in .json", param_hint="--output")
    if directory is None and output is not None:
        directory = output.with_suffix("")
    missing = {"--memory": memory, "--objective": objective, "--directory": directory}
    absent = [name for name, value in missing.items() if value is None]
    if memory is None or objective is None or directory is None:
        raise typer.BadParameter(f"a search needs {', '.join(absent)}")
    from memorydojo.cli.run import replay_mode
    from memorydojo.models.config import SIMULATED_EMBEDDING, Models
    from memorydojo.optimizer._optimize import auxiliary_ground, optimize
    from memorydojo.optimizer.results import PAYLOAD
    from memorydojo.optimizer.search import Budget
    from memorydojo.optimizer.show import view

    with ExitStack() as stack:
        done = optimize(
            memory=memory,
            objective=objective,
            directory=directory,
            rounds=rounds,
            proposals=proposals,
            strategy=_strategy(strategy, optimizer_model),
            ground=auxiliary_ground(objective, seed=seed, count=trajectories),
            judge=judge,
            tolerance=tolerance,
            budget=Budget(calls=max_calls, tokens=max_tokens),
            seed=seed,
            model=model,
            memory_model=memory_model,
            embedding_model=embedding_model or SIMULATED_EMBEDDING,
            models=Models.from_toml(models) if models is not None else None,
            replay=replay_mode(replay),
            answers=answers,
            executor=_executor(workers, stack),
            on_event=_said,
        )
    print_view(view(done, limit=None))
    place = plain(str(directory))
    if done.stopped:
        typer.echo("to go on, give the same command with a larger budget")
    if done.selected is not None:
        kept = done.write_payload(output) if output is not None else directory / PAYLOAD
        typer.echo(f"the payload is in {plain(str(kept))}, for --payload-file")
        typer.echo(f'in the file of a sweep: payloads = [{{ path = "{plain(str(kept))}", objective = "{objective}" }}]')
        typer.echo(f"next: memorydojo optimize transfer {place}")
    if done.stopped or done.selected is None:
        raise typer.Exit(1)


@app.command()
def show(
    directory: Directory,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a page (.html) or a plot (.png, .svg, .pdf) instead of printing."),
    ] = None,
) -> None:
    """Show a search: its candidates, the outcome, and what changed since the best seed.

    Example: memorydojo optimize show searches/mem0 -o search.html
    """
    from memorydojo.optimizer.results import load_search
    from memorydojo.optimizer.show import PLOTS, plot, view, write_page

    found = load_search(directory)
    if output is None:
        print_view(view(found, limit=None))
        return
    if output.suffix.lower() in (".html", ".htm"):
        write_page(found, output)
    elif output.suffix.lower() in PLOTS:
        plot(found, output)
    else:
        raise InvalidInputError(f"-o takes a file that ends in .html or in one of {', '.join(PLOTS)}, not {output}")
    typer.echo(f"wrote {plain(str(output))}")


@app.command()
def transfer(
    directory: Directory,
    trajectories: Annotated[
        int | None, typer.Option(min=1, help="So many of the objective's same-domain trajectories; all if not given.")
    ] = None,
    models: ModelsFile = None,
    replay: Annotated[str, typer.Option(help="Recorded answers: off, prefer or only.")] = "off",
    answers: Answers = None,
    workers: Workers = 1,
) -> None:
    """Run the selected payload and the seeds on the benchmark, and compare them, paired by trajectory.

    Example: memorydojo optimize transfer searches/mem0 --trajectories 10
    """
    from memorydojo.cli.run import replay_mode
    from memorydojo.models.config import Models
    from memorydojo.optimizer._transfer import transfer as run_transfer
    from memorydojo.optimizer.results import load_search

    with ExitStack() as stack:
        done = run_transfer(
            load_search(directory),
            trajectories=trajectories,
            models=Models.from_toml(models) if models is not None else None,
            replay=replay_mode(replay),
            answers=answers,
            executor=_executor(workers, stack),
            progress=lambda number, of, run: typer.echo(f"  {number:>3}/{of}  {plain(run)}", err=True),
        )
    print_view(done.view())


def _strategy(name: str | None, model: str | None) -> "Strategy":
    from memorydojo._load import load_function
    from memorydojo.optimizer.offline import FeedbackStrategy, RandomStrategy
    from memorydojo.optimizer.proposer import ModelStrategy
    from memorydojo.optimizer.strategy import Strategy

    if model is not None:
        if name is not None:
            raise InvalidInputError("--strategy and --optimizer-model name two strategies; give one of them")
        return ModelStrategy(model)
    known: dict[str, Strategy] = {"offline": FeedbackStrategy(), "random": RandomStrategy()}
    if name is None or name in known:
        return known[name or "offline"]
    if ":" not in name:
        raise UnknownNameError("strategy", name, known)
    found = load_function("strategy", name)()
    if not isinstance(found, Strategy):
        raise InvalidInputError(f"{name} returns no strategy; see docs/optimizer.md for what one has to be")
    return found


def _executor(workers: int, stack: ExitStack) -> Executor:
    return stack.enter_context(ThreadPoolExecutor(workers))


def _said(event: "Event") -> None:
    """A line for each step, on the error channel."""
    from memorydojo.optimizer.saved import Evaluated, Proposed, Validated

    if isinstance(event, Evaluated):
        counts = event.feedback.counts
        said = f"{event.candidate.id}: BRT {counts.met}/{counts.later}, tasks {counts.completed}/{counts.planned}"
    elif isinstance(event, Proposed):
        said = f"round {event.round}: {counted(len(event.drafts), 'proposal')}" + (
            f"; {event.problem}" if event.problem else ""
        )
    elif isinstance(event, Validated):
        rejected = [reason for reasons in event.reasons for reason in reasons]
        said = f"round {event.round}: {sum(not r for r in event.reasons)} valid" + "".join(f"; {r}" for r in rejected)
    else:
        return
    typer.echo(f"  {plain(said, 300)}", err=True)
