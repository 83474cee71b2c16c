"""``memorydojo trajectories``: the collections that ship, and checking and building them."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from memorydojo._display import counted, plain
from memorydojo.cli._console import print_view
from memorydojo.errors import UnknownNameError
from memorydojo.trajectories import collections

_SHOWN = 20

app = typer.Typer(help="List, show, validate and build trajectories.", no_args_is_help=True)


@app.command("list")
def list_collections(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead, for machines.")] = False,
) -> None:
    """List the collections that ship, with the number of trajectories of each length.

    Example: memorydojo trajectories list --json
    """
    found = {name: collections.load(name) for name in collections.names()}
    if as_json:
        typer.echo(json.dumps([_facts(name, collection) for name, collection in found.items()], indent=1))
        return
    for name, collection in found.items():
        flagged = len(collection) - len(collection.without())
        typer.echo(
            f"{name:<16} {counted(len(collection), 'trajectory', 'trajectories', width=3)} "
            f"{counted(collection.n_sessions, 'session', width=4)}  "
            f"lengths {_lengths(collection)}" + (f"  ({flagged} with flagged sessions)" if flagged else "")
        )


def _facts(name: str, collection: collections.Collection) -> dict[str, Any]:
    """A collection in plain data; ``flagged`` counts the trajectories with a flagged session."""
    return {
        "name": name,
        "trajectories": [{"id": one.id, "sessions": len(one), "domains": list(one.domains)} for one in collection],
        "sessions": collection.n_sessions,
        "flagged": len(collection) - len(collection.without()),
    }


def _size(collection: collections.Collection) -> str:
    many = counted(len(collection), "trajectory", "trajectories")
    return f"{many}, {counted(collection.n_sessions, 'session')}"


def _lengths(collection: collections.Collection) -> str:
    lengths = [len(trajectory) for trajectory in collection]
    return ", ".join(f"{lengths.count(length)}x{length}" for length in sorted(set(lengths)))


@app.command()
def show(
    trajectory_id: Annotated[str, typer.Argument(metavar="ID", help="For example workspace-005-03.")],
    file: Annotated[Path | None, typer.Option(help="Look in this file, not in what ships.")] = None,
) -> None:
    """Show the sessions of one trajectory.

    Example: memorydojo trajectories show banking-005-01
    """
    sources = [collections.load_file(file)] if file else [collections.load(name) for name in collections.whole()]
    found = next((source[trajectory_id] for source in sources if trajectory_id in source.ids), None)
    if found is None:
        raise UnknownNameError("trajectory", trajectory_id, [i for source in sources for i in source.ids])
    print_view(found.view())


@app.command()
def validate(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Default: all that ships.")] = None,
) -> None:
    """Replay collections and check what they say; the exit code is 1 if something does not hold, or nothing is there.

    Example: memorydojo trajectories validate mine.json
    """
    from memorydojo.trajectories import validate as checks
    from memorydojo.trajectories.replay import Replayer

    if files:
        loaded = [collections.load_file(file) for file in files]
        replayer = Replayer()
        reports = [checks.validate(collection, replayer) for collection in loaded]
    else:
        reports = checks.validate_shipped()
    for report in reports:
        verdict = counted(len(report.problems), "problem") if report.problems else "all hold"
        if not report.trajectories:
            verdict = "there is nothing to validate"
        typer.echo(
            f"{plain(report.name)}: {counted(report.trajectories, 'trajectory', 'trajectories')}, "
            f"{counted(report.sessions, 'session')}, {counted(report.pairs, 'ordered pair')}, "
            f"{counted(report.flagged, 'flagged session')}: {verdict}"
        )
        for problem in report.problems[:_SHOWN]:
            typer.echo(f"  {plain(str(problem))}")
        if len(report.problems) > _SHOWN:
            typer.echo(f"  and {len(report.problems) - _SHOWN} more")
    if any(report.problems or not report.trajectories for report in reports):
        raise typer.Exit(1)


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="An existing or new directory; nothing in it is overwritten.")],
    seed: Annotated[int | None, typer.Option(help="Default: the seed of the collections that ship.")] = None,
) -> None:
    """Build the collections from a seed: the same seed gives the same files, byte for byte.

    Example: memorydojo trajectories build --out built
    """
    from memorydojo.errors import InvalidInputError
    from memorydojo.trajectories import compose

    targets = {name: out / f"{name}.json" for name in collections.SHIPPED}
    for target in targets.values():
        if target.exists():
            raise InvalidInputError(f"{target} exists; remove it or choose another directory")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot make the directory {out}: {error.strerror}") from error
    for name, collection in compose.build(compose.SEED if seed is None else seed).items():
        collection.save(targets[name])
        typer.echo(f"{plain(str(targets[name]))}: {_size(collection)}")
