"""``memorydojo doctor``: what is installed, what is missing, and the command that adds it."""

import json
import platform
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from memorydojo._display import plain
from memorydojo.adapter import adapters, load_adapter
from memorydojo.errors import MemoryDojoError, install_command

#: Extras that no run needs, and what they are for.
_EXTRAS = {
    "figures": "memorydojo.figures",
    "parquet": "Parquet files",
    "inspect": "Inspect logs",
    "dask": "sweeps on Dask",
}


@dataclass(frozen=True)
class Part:
    """What is there of one part of MemoryDojo.

    Attributes:
        part: What it is.
        ready: Whether all its packages are there.
        packages: Its packages with their versions; None for one that is not installed.
        lacks: What is missing, in words.
        add: The command that adds what is missing.
        note: What else it takes to use it; None if nothing.
    """

    part: str
    ready: bool
    packages: dict[str, str | None] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    add: str | None = None
    note: str | None = None


def doctor(
    model: Annotated[
        list[str] | None, typer.Option(help="Ask this model for a tool call and an embedding; may be repeated.")
    ] = None,
    models: Annotated[Path | None, typer.Option(help="The TOML file that declares models; see docs/models.md.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for machines.")] = False,
) -> None:
    """Say what is installed, what works, and the command that adds what is missing.

    Exits with 1 if something that a run needs is missing, or if a model that is asked answers nothing at all. The
    extras at the end are needed by no run.

    Example: memorydojo doctor --models models.toml --model gpt-mini
    """
    if model:
        _ask_models(model, models, as_json=as_json)
        return
    parts = _parts()
    sound = all(part.ready for part in parts)
    parts += _extras()
    if as_json:
        python = platform.python_version()
        typer.echo(json.dumps({"python": python, "ready": sound, "parts": [asdict(part) for part in parts]}, indent=1))
    else:
        typer.echo(f"{'Python':<28} {platform.python_version()}")
        for part in parts:
            _print(part)
    if not sound:
        raise typer.Exit(1)


def _parts() -> list[Part]:
    """The core, the simulator, and each memory system."""
    from memorydojo.simulator.embedder import PACKAGES

    embedder = list(PACKAGES.values())
    simulator = _look("simulator, and embeddings unless a real model makes them", embedder, "simulator")
    if simulator.ready:
        simulator = replace(simulator, note=f"embedding model {_embed()}")
    parts = [_look("core", ("memorydojo", *_core())), simulator]
    for name, place in sorted(adapters().items()):
        try:
            adapter = load_adapter(name)
        except MemoryDojoError as error:
            parts.append(Part(name, False, lacks=(f"cannot be loaded from {place}: {error}",)))
            continue
        needed = embedder if adapter.embeds else ()
        part = _look(f"memory system {name}", adapter.packages, adapter.extra, adapter.install, embedder=needed)
        parts.append(replace(part, note=adapter.missing()) if part.ready else part)
    return parts


def _print(part: Part) -> None:
    typer.echo(f"{plain(part.part)}: {plain('; '.join(part.lacks)) or 'ready'}")
    for package, there in part.packages.items():
        typer.echo(f"  {plain(package):<26} {there or 'not installed'}")
    if part.add is not None:
        typer.echo(f"  add it with: {part.add}")
    if part.note is not None:
        typer.echo(f"  {plain(part.note)}")


def _extras() -> list[Part]:
    """The extras that no run needs."""
    return [
        _look(f"extra {name}, for {what}", _needed(f"extra == '{name}'".__eq__), name) for name, what in _EXTRAS.items()
    ]


def _core() -> list[str]:
    """The packages that MemoryDojo cannot do without on this system."""
    return _needed(lambda condition: "extra" not in condition)


def _needed(wanted: Callable[[str], bool]) -> list[str]:
    """The packages that MemoryDojo asks for on this system under the conditions that are wanted."""
    needed = []
    for line in requires("memorydojo") or []:
        name, _, condition = line.partition(";")
        if wanted(condition.strip().replace('"', "'")) and not ("win32" in condition and sys.platform == "win32"):
            needed.append(re.split(r"[^\w.-]", name.strip())[0])
    return sorted(needed)


def _look(
    part: str,
    packages: Sequence[str],
    extra: str | None = None,
    install: str | None = None,
    *,
    embedder: Sequence[str] = (),
) -> Part:
    """What is there of a part, and of the ``embedder`` that it needs, and the command that adds what is not."""
    found = {package: _version(package) for package in packages}
    missing = [package for package, there in found.items() if there is None]
    lost = [package for package in embedder if _version(package) is None]
    lacks = [f"missing {', '.join(missing)}"] if missing else []
    lacks += [f"missing {', '.join(lost)} (for embeddings, unless a real model makes them)"] if lost else []
    command = None
    if lacks:
        by_extra = missing and not install and extra
        extras = [*([extra] if by_extra and extra else []), *(["simulator"] if lost else [])]
        others = [] if install or by_extra else missing
        command = install_command(*extras, packages=others, command=install if missing else None)
    return Part(part, not lacks, found, tuple(lacks), command)


def _ask_models(names: list[str], file: Path | None, *, as_json: bool) -> None:
    from memorydojo.models.config import Models
    from memorydojo.models.probe import probe

    known = Models.from_toml(file) if file is not None else Models()
    asked: list[dict[str, Any]] = []
    for name in names:
        route = known.route(name)
        results = probe(known, name)
        asked.append({"model": name, "upstream": route.upstream, "host": route.backend.host, "problems": results})
        if not as_json:
            typer.echo(f"{plain(name)}: {plain(route.upstream)} at {plain(route.backend.host)}")
            for what, problem in results.items():
                typer.echo(f"  {what:<12} {'works' if problem is None else 'does not: ' + plain(problem, 300)}")
    dead = any(all(problem is not None for problem in one["problems"].values()) for one in asked)
    if as_json:
        typer.echo(json.dumps({"ready": not dead, "models": asked}, indent=1))
    if dead:
        raise typer.Exit(1)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _embed() -> str:
    from memorydojo.simulator.embedder import MiniLMEmbedder

    try:
        vector = MiniLMEmbedder().embed(["a sentence"])[0]
    except MemoryDojoError as error:
        return plain(str(error))
    return f"answers with {len(vector)} dimensions"
