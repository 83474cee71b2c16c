"""The command line: parses, calls, prints.

Exit codes: 0 done; 1 a run failed or a check did not hold; 2 the command was used wrongly; 130 Ctrl-C.
"""

import os
import sys
import warnings
from importlib.metadata import entry_points
from importlib.metadata import version as installed
from typing import Annotated

import typer

from memorydojo._display import plain
from memorydojo.cli.demo import demo
from memorydojo.cli.doctor import doctor
from memorydojo.cli.experiments import app as experiments_app
from memorydojo.cli.export import export
from memorydojo.cli.histories import app as histories_app
from memorydojo.cli.judge import judge
from memorydojo.cli.metrics import metrics
from memorydojo.cli.run import run
from memorydojo.cli.sweep import sweep
from memorydojo.cli.trace import trace
from memorydojo.cli.trajectories import app as trajectories_app
from memorydojo.errors import InvalidInputError, MemoryDojoError, UnknownNameError

app = typer.Typer(
    name="memorydojo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Measure what a poisoned observation does to an AI agent's long-term memory."""
    if version:
        typer.echo(installed("memorydojo"))
        raise typer.Exit


app.command()(demo)
app.command()(run)
app.command()(sweep)
app.command()(metrics)
app.command()(trace)
app.command()(export)
app.command()(judge)
app.command()(doctor)
app.add_typer(experiments_app, name="experiments", help="List, show and copy the experiments that ship.")
app.add_typer(trajectories_app, name="trajectories", help="List, show, validate and build trajectories.")
app.add_typer(histories_app, name="histories", help="List, show and prepare histories.")

#: Memory systems bring commands of their own, as Typer applications, for example to start a server.
COMMANDS_GROUP = "memorydojo.commands"
for _point in entry_points(group=COMMANDS_GROUP):
    try:
        app.add_typer(_point.load(), name=_point.name)
    except Exception as _error:  # somebody else's package must not take all other commands away
        sys.stderr.write(f"warning: the command {plain(_point.name)!r} cannot be loaded: {plain(str(_error), 200)}\n")


def main() -> None:
    """Entry point of the command ``memorydojo``."""
    warnings.showwarning = _warn
    # Names such as module:Class may stand for a file beside the user; last, so that it hides nothing.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        app()
    except MemoryDojoError as error:
        sys.stderr.write(f"error: {plain(str(error))}\n")
        sys.exit(2 if isinstance(error, UnknownNameError | InvalidInputError) else 1)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for people, without the place in our code where it arose."""
    sys.stderr.write(f"warning: {plain(str(message))}\n")


if __name__ == "__main__":
    main()
