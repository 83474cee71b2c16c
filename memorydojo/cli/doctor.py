"""``memorydojo doctor``: what is installed, what is missing, and the command that adds it."""

import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import typer

from memorydojo._display import plain
from memorydojo.adapter import adapters, load_adapter
from memorydojo.errors import MemoryDojoError, install_command


def doctor(
    model: Annotated[
        list[str] | None, typer.Option(help="Ask this model for a tool call and an embedding; may be repeated.")
    ] = None,
    models: Annotated[Path | None, typer.Option(help="The TOML file that declares models; see docs/models.md.")] = None,
) -> None:
    """Say what is installed, what works, and the command that adds what is missing.

    Exits with 1 if something that a run needs is missing, or if a model that is asked answers nothing at all.
    """
    if model:
        _ask_models(model, models)
        return
    from memorydojo.simulator.embedder import PACKAGES

    typer.echo(f"{'Python':<28} {platform.python_version()}")
    sound = _report("core", ("memorydojo", *_core()))
    embedder = list(PACKAGES.values())
    simulator = _report("simulator, and embeddings unless a real model makes them", embedder, "simulator")
    sound &= simulator
    if simulator:
        typer.echo(f"{'  embedding model':<28} {_embed()}")
    for name, place in sorted(adapters().items()):
        try:
            adapter = load_adapter(name)
        except MemoryDojoError as error:
            typer.echo(f"{plain(name)}: cannot be loaded from {plain(place)}: {plain(str(error))}")
            sound = False
            continue
        needed = embedder if adapter.embeds else ()
        there = _report(f"memory system {name}", adapter.packages, adapter.extra, adapter.install, embedder=needed)
        if there and (lack := adapter.missing()) is not None:
            typer.echo(f"  {plain(lack)}")
        sound &= there
    if not sound:
        raise typer.Exit(1)


def _core() -> list[str]:
    """The packages that MemoryDojo cannot do without on this system."""
    needed = []
    for line in requires("memorydojo") or []:
        name, _, condition = line.partition(";")
        if "extra" not in condition and not ("win32" in condition and sys.platform == "win32"):
            needed.append(re.split(r"[^\w.-]", name.strip())[0])
    return sorted(needed)


def _report(
    part: str,
    packages: Sequence[str],
    extra: str | None = None,
    install: str | None = None,
    *,
    embedder: Sequence[str] = (),
) -> bool:
    """Says what is there of a part, and of the ``embedder`` that it needs, and the command that adds what is not."""
    found = {package: _version(package) for package in packages}
    missing = [package for package, there in found.items() if there is None]
    lost = [package for package in embedder if _version(package) is None]
    lacks = [f"missing {', '.join(missing)}"] if missing else []
    lacks += [f"missing {', '.join(lost)} (for embeddings, unless a real model makes them)"] if lost else []
    typer.echo(f"{plain(part)}: {'; '.join(lacks) or 'ready'}")
    for package, there in found.items():
        typer.echo(f"  {plain(package):<26} {there or 'not installed'}")
    if lacks:
        by_extra = missing and not install and extra
        extras = [*([extra] if by_extra and extra else []), *(["simulator"] if lost else [])]
        others = [] if install or by_extra else missing
        command = install_command(*extras, packages=others, command=install if missing else None)
        typer.echo(f"  add it with: {command}")
    return not lacks


def _ask_models(names: list[str], file: Path | None) -> None:
    from memorydojo.models.config import Models
    from memorydojo.models.probe import probe

    known = Models.from_toml(file) if file is not None else Models()
    dead = False
    for name in names:
        route = known.route(name)
        typer.echo(f"{plain(name)}: {plain(route.upstream)} at {plain(route.backend.host)}")
        results = probe(known, name)
        for what, problem in results.items():
            typer.echo(f"  {what:<12} {'works' if problem is None else 'does not: ' + plain(problem, 300)}")
        dead = dead or all(problem is not None for problem in results.values())
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
