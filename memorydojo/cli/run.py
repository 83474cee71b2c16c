"""``memorydojo run``: one trajectory, one memory, at most one payload."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memorydojo._display import counted, plain, verb
from memorydojo.cli._console import print_view
from memorydojo.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from memorydojo.attack import Attack
    from memorydojo.runs import Run
    from memorydojo.trajectory import Trajectory


def run(
    trajectory: Annotated[str, typer.Argument(help="Id of a trajectory; see `memorydojo trajectories list`.")],
    memory: Annotated[str, typer.Option(help="Memory system: a registered name or module:Class.")],
    directory: Annotated[Path, typer.Option(help="Where runs are saved.")] = Path("runs/single"),
    objective: Annotated[str | None, typer.Option(help="Objective of the attack; without it the run is clean.")] = None,
    payload: Annotated[str | None, typer.Option(help="Id of a shipped payload; seed-1 if not given.")] = None,
    payload_file: Annotated[
        Path | None,
        typer.Option(help="A file with a payload, instead of --payload: plain text, or JSON."),
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Insertion session: first, middle or a number; first if not given.")
    ] = None,
    observation: Annotated[
        int | None, typer.Option(min=1, help="Which observation of it carries the payload; the first if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulator.")] = 0,
    model: Annotated[str, typer.Option(help="Model of the agent, by its name in --models.")] = "simulated",
    memory_model: Annotated[
        str | None, typer.Option(help="Chat model of the memory side; the agent's if not given.")
    ] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="Embedding model of the memory side; the local one if not given.")
    ] = None,
    models: Annotated[Path | None, typer.Option(help="A TOML file that declares models; see docs/models.md.")] = None,
    replay: Annotated[str, typer.Option(help="Recorded answers: off, prefer or only.")] = "off",
    answers: Annotated[
        Path | None, typer.Option(help="The file of recorded answers; answers.sqlite in --directory if not given.")
    ] = None,
    defense: Annotated[str | None, typer.Option(help="A defense of AgentDojo's, or module:function.")] = None,
    on_failure: Annotated[str, typer.Option(help="After a failed session: stop or continue.")] = "stop",
    trajectories: Annotated[
        Path | None, typer.Option(help="A trajectory file of your own to take the trajectory from.")
    ] = None,
    keep_memory: Annotated[bool, typer.Option("--keep-memory", help="Keep the memory system's own files.")] = False,
) -> None:
    """Run one trajectory and print what happened in each session.

    Example: memorydojo run workspace-005-01 --memory mem0 --objective workspace
    """
    from memorydojo.models.config import SIMULATED_EMBEDDING, Models
    from memorydojo.running.runner import run as run_trajectory

    started = datetime.now(UTC)
    attack = _attack(objective, payload, payload_file, session=session, observation=observation)
    planned = find_trajectory(trajectory, trajectories)
    declared = Models.from_toml(models) if models is not None else None
    with _under_way(planned, memory):
        done = run_trajectory(
            planned,
            memory,
            directory=directory,
            attack=attack,
            model=model,
            memory_model=memory_model,
            embedding_model=embedding_model or SIMULATED_EMBEDDING,
            models=declared,
            replay=replay_mode(replay),
            answers=answers,
            defense=defense,
            seed=seed,
            on_failure=_policy(on_failure),
            keep_memory=keep_memory,
        )
    print_view(done.view())
    for line in besides(done):
        typer.echo(line)
    if done.header.started < started:
        typer.echo(
            f"\nThis run was saved before and was not repeated. To repeat it, remove {plain(str(done.directory))} "
            "or give another --directory."
        )
    typer.echo(f"\nsaved in {plain(str(done.directory))}")
    typer.echo(f"next: memorydojo metrics {plain(str(directory))}")
    if not done.ran_whole:
        raise typer.Exit(1)


@contextmanager
def _under_way(trajectory: "Trajectory", memory: str) -> Iterator[None]:
    """A line on a terminal that says what is running, and that goes away; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    history = trajectory.history
    after = f" after a history of {counted(history.n_sessions, 'session')}" if history is not None else ""
    said = f"running {counted(len(trajectory), 'session')} on {plain(memory, 60)}{after} ..."
    # A text is no markup, and stays on one line.
    with Console(stderr=True).status(Text(said, no_wrap=True, overflow="ellipsis")):
        yield


def _policy(on_failure: str) -> Literal["stop", "continue"]:
    if on_failure == "stop":
        return "stop"
    if on_failure == "continue":
        return "continue"
    raise UnknownNameError("failure policy", on_failure, ["stop", "continue"])


def replay_mode(replay: str) -> Literal["off", "prefer", "only"]:
    """The mode of replay that an option names.

    Raises:
        UnknownNameError: There is no such mode.
    """
    for known in ("off", "prefer", "only"):
        if replay == known:
            return known
    raise UnknownNameError("replay mode", replay, ["off", "prefer", "only"])


def _attack(
    objective: str | None,
    payload: str | None,
    payload_file: Path | None,
    *,
    session: str | None,
    observation: int | None,
) -> "Attack | None":
    from memorydojo.attack import Attack, Payload

    if objective is None:
        given = {
            "--payload": payload,
            "--payload-file": payload_file,
            "--session": session,
            "--observation": observation,
        }
        for option, value in given.items():
            if value is not None:
                raise InvalidInputError(f"{option} needs --objective: without an objective the run is clean")
        return None
    if payload is not None and payload_file is not None:
        raise InvalidInputError("--payload and --payload-file name two payloads, and only one enters; give one of them")
    chosen: Payload | str = payload or "seed-1"
    if payload_file is not None:
        chosen = Payload.from_file(payload_file, objective=objective)
    return Attack(
        objective=objective, payload=chosen, session=_session(session or "first"), observation=observation or 1
    )


def _session(session: str) -> Literal["first", "middle"] | int:
    if session == "first":
        return "first"
    if session == "middle":
        return "middle"
    if session.isascii() and session.isdigit():
        return int(session)
    raise InvalidInputError(f"--session takes first, middle or a number, not {session!r}")


def find_trajectory(id: str, file: Path | None = None) -> "Trajectory":
    """A trajectory by its id, from the shipped collections or from a file.

    Raises:
        UnknownNameError: No trajectory has this id.
    """
    from memorydojo import trajectories

    if file is not None:
        return trajectories.load_file(file)[id]
    known = [trajectory for name in trajectories.whole() for trajectory in trajectories.load(name)]
    for trajectory in known:
        if trajectory.id == id:
            return trajectory
    raise UnknownNameError("trajectory", id, [trajectory.id for trajectory in known])


def besides(run: "Run") -> list[str]:
    """What its view does not say of a run, a line each: the history, what is missing, what was answered."""
    lines = _told(run)
    missing = len(run.plan.trajectory) - len(run.sessions)
    if missing:
        lines.append(
            f"{counted(missing, 'planned session')} did not run; "
            f"{verb(missing, 'it counts', 'they count')} as 0 in every metric"
        )
    return [*lines, *_answered(run)]


def _told(run: "Run") -> list[str]:
    """What became of the history, if there is one."""
    prefix = run.plan.trajectory.history
    if prefix is None:
        return []
    failed = [told for told in run.history if not told.completed]
    taken = f"{len(run.history) - len(failed)} of {counted(prefix.n_sessions, 'session')}"
    lines = [f"history {plain(prefix.id)}: {taken} in memory"]
    for told in failed:
        assert told.failure is not None
        lines.append(
            plain(f"  history session {told.number} failed in {told.failure.stage}: {told.failure.message}", 200)
        )
    return lines


def _answered(run: "Run") -> list[str]:
    """What became of the held-out question, if there is one."""
    asked, verdict = run.question, run.labels().answer
    if verdict is None:
        return []
    if asked is None:
        return ["held-out question: never asked; it counts as wrong"]
    said = asked.answer if asked.answer is not None else f"failed: {asked.failure.message if asked.failure else ''}"
    return [
        f"held-out question: {plain(asked.query, 160)}",
        f"  {'right' if verdict.correct else 'wrong'}: {plain(said, 160)}  (reference: "
        f"{plain(str(asked.question.reference), 120)}; {counted(len(asked.items), 'item')})",
    ]
