"""``memorydojo letta``: starts, stops and looks at a Letta server of one's own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from memorydojo.adapters._server import tail
from memorydojo.errors import MemorySystemError

app = typer.Typer(help="Start, stop and look at a Letta server of your own.", no_args_is_help=True)

_STOP_SECONDS = 60


@app.command("set-up")
def set_up() -> None:
    """Set a Letta server up without starting it. ``up`` does this by itself.

    Example: memorydojo letta set-up
    """
    from memorydojo.adapters import _letta_server as server
    from memorydojo.adapters import _letta_setup as setup

    setup.set_up(server.home(), typer.echo)
    typer.echo(f"set up in {server.home()}")


@app.command()
def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Keep it in this terminal until Ctrl-C.")] = False,
) -> None:
    """Set up a Letta server (the first time) and start it on a free port of loopback.

    Example: memorydojo letta up --foreground
    """
    from memorydojo.adapters import _letta_server as server
    from memorydojo.adapters import _letta_setup as setup

    place = server.home()
    found = server.running(place)
    if found is not None:
        typer.echo(f"running already at {found.url} (process {found.pid})")
        return
    setup.set_up(place, typer.echo)
    typer.echo("starting (about half a minute)")
    if foreground:
        serve(place)
        return
    log = place / "supervisor.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "memorydojo.adapters._letta_cli", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while process.poll() is None:
        found = server.running(place)
        if found is not None and found.pid == process.pid:
            typer.echo(f"ready at {found.url} (process {found.pid}, log {found.log})")
            return
        time.sleep(0.2)
    raise MemorySystemError("letta", "start", f"the server ended at once:\n{tail(log)}", f"See {log}.")


@app.command()
def down() -> None:
    """Stop the server that ``up`` started. Memories stay: they are kept in their own directories.

    Example: memorydojo letta down
    """
    from memorydojo.adapters import _letta_server as server

    place = server.home()
    found = server.running(place)
    if found is None:
        typer.echo("not running")
        return
    os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while server.running(place) is not None or any((place / "running").glob(f"{found.pid}-*")):
        if time.monotonic() > deadline:
            raise MemorySystemError("letta", "stop", f"process {found.pid} does not end", f"See {found.log}.")
        time.sleep(0.1)
    typer.echo("stopped")


@app.command()
def status() -> None:
    """Say whether a server is set up and whether it runs; exits with 1 if it does not run.

    Example: memorydojo letta status
    """
    from memorydojo.adapters import _letta_server as server

    place = server.home()
    typer.echo(f"{'set up' if server.is_set_up(place) else 'not set up'} in {place}")
    found = server.running(place)
    if found is None:
        typer.echo("not running; start it with: memorydojo letta up")
        raise typer.Exit(1)
    typer.echo(f"running at {found.url} (process {found.pid}, log {found.log})")


def serve(place: Path) -> None:
    """Runs the server in this process until it is asked to stop."""
    from memorydojo.adapters import _letta_server as server

    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _: asked.append(received))
    server.serve(place, on_ready=lambda found: typer.echo(f"ready at {found.url}"), stop=lambda: bool(asked))
    typer.echo("stopped")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
