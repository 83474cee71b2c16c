"""``memorydojo histories``: the histories that ship, and preparing those of LongMemEval."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memorydojo.history import History

_FILE_HELP = "A file of LongMemEval or of `histories prepare`; the shipped histories if not given."

app = typer.Typer(help="List, show and prepare histories.", no_args_is_help=True)


@app.command("list")
def list_histories(file: Annotated[Path | None, typer.Option(help=_FILE_HELP)] = None) -> None:
    """List histories: type of question, size, and the time that they span.

    Example: memorydojo histories list --file histories.json
    """
    for history in _histories(file):
        first, last = history.sessions[0].time, history.sessions[-1].time
        abstention = " (abstention)" if history.question.abstention else ""
        typer.echo(
            f"{plain(history.id, 40):<20} {history.question.type + abstention:<40} "
            f"{counted(len(history.sessions), 'session', width=4)} "
            f"{counted(history.n_messages, 'message', width=5)}  {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        )


@app.command()
def show(
    history_id: Annotated[str, typer.Argument(metavar="ID", help="For example dojo-update-1.")],
    file: Annotated[Path | None, typer.Option(help=_FILE_HELP)] = None,
    session: Annotated[int | None, typer.Option(min=1, help="Print this session whole.")] = None,
) -> None:
    """Show one history: its question, the reference answer and its sessions; * marks those that hold the answer.

    Example: memorydojo histories show dojo-update-1 --session 2
    """
    found, known = None, []
    for history in _histories(file):
        known.append(history.id)
        if history.id == history_id:
            found = history
            break
    if found is None:
        raise UnknownNameError("history", history_id, known)
    if session is None:
        _print(found)
    elif session > len(found.sessions):
        raise InvalidInputError(
            f"{found.id!r} has {counted(len(found.sessions), 'session')}; there is no session {session}"
        )
    else:
        told = found.sessions[session - 1]
        typer.echo(f"{plain(told.id)}, {told.time:%Y-%m-%d %H:%M}")
        for turn in told.turns:
            typer.echo(f"\n{turn.role}:")
            for line in turn.text.splitlines():
                typer.echo(f"  {plain(line)}")


def _print(history: "History") -> None:
    question = history.question
    asked = f", asked on {question.asked:%Y-%m-%d %H:%M}" if question.asked is not None else ""
    typer.echo(f"{plain(history.id)} ({question.type}{asked})")
    typer.echo(f"question:  {plain(question.text)}")
    typer.echo(f"reference: {plain(str(question.reference))}")
    for number, told in enumerate(history.sessions, start=1):
        mark = "*" if told.id in history.evidence else " "
        head = f"{number:>4}{mark} {told.time:%Y-%m-%d %H:%M}  {counted(len(told.turns), 'message', width=3)}  "
        typer.echo(head + plain(told.turns[0].text, 70))


@app.command()
def prepare(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A file of LongMemEval.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The trajectory file to write; new.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed selects other histories.")] = 0,
    all_: Annotated[bool, typer.Option("--all", help="Take every history of the file; select none.")] = False,
) -> None:
    """Select the paper's histories from LongMemEval and put each in front of a cross-domain trajectory.

    Example: memorydojo histories prepare longmemeval_s_cleaned.json -o histories.json
    """
    from memorydojo.trajectories import HistoryFile, pair, select
    from memorydojo.trajectories.longmemeval import HOW_TO_OBTAIN

    if file is None:
        raise InvalidInputError(f"no file was given. {HOW_TO_OBTAIN}")
    if output is None:
        raise InvalidInputError("say where to write the trajectories: -o histories.json")
    if output.exists():
        raise InvalidInputError(f"{output} exists; remove it or choose another place")
    source = HistoryFile(file)
    chosen = list(source) if all_ else select(source, seed=seed)
    if not chosen:
        raise InvalidInputError(f"{file} holds no histories; give a file of LongMemEval. {HOW_TO_OBTAIN}")
    collection = pair(chosen)
    _print_selection(chosen, compare=not all_)
    for note in ("empty sessions", "histories sorted by date"):
        if source.notes[note]:
            typer.echo(
                f"in the {counted(source.notes['instances'], 'instance')} of the file: {note}: {source.notes[note]}"
            )
    collection.save(output)
    typer.echo(
        f"{plain(str(output))}: {counted(len(collection), 'trajectory', 'trajectories')}, "
        f"{counted(collection.n_sessions, 'task session')}\n"
        f"next: memorydojo run {plain(collection[0].id)} --trajectories {plain(str(output))} --memory mem0"
    )


def _print_selection(chosen: "list[History]", *, compare: bool) -> None:
    """Counts by type, and beside the paper's sums."""
    from memorydojo.history import QUESTION_TYPES
    from memorydojo.trajectories.histories import PAPER_MESSAGES, PAPER_SESSIONS

    for type_ in QUESTION_TYPES:
        of = [history for history in chosen if history.question.type == type_]
        if of:
            sizes = [len(history.sessions) for history in of]
            typer.echo(
                f"{type_:<26} {counted(len(of), 'history', 'histories', width=3)} "
                f"{counted(sum(sizes), 'session', width=6)} ({min(sizes)} to {max(sizes)}) "
                f"{counted(sum(h.n_messages for h in of), 'message', width=7)}"
            )
    sessions, messages = sum(len(h.sessions) for h in chosen), sum(h.n_messages for h in chosen)
    typer.echo(
        f"{'together':<26} {counted(len(chosen), 'history', 'histories', width=3)} "
        f"{counted(sessions, 'session', width=6)} {counted(messages, 'message', width=7)}"
    )
    if compare:
        typer.echo(
            f"{'the paper':<26} {31:>3} histories {PAPER_SESSIONS:>6} sessions {PAPER_MESSAGES:>7} messages  "
            "(it does not say which histories it took)"
        )


def _histories(file: Path | None) -> "Iterable[History]":
    """The shipped histories, those in front of the trajectories of a file, or those of a file of LongMemEval."""
    from memorydojo.trajectories import HistoryFile, load_file
    from memorydojo.trajectories.histories import shipped

    if file is None:
        return shipped()
    try:
        with file.open("rb") as opened:
            collection = opened.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except OSError:
        collection = False  # the reader says what is wrong
    return load_file(file).histories if collection else HistoryFile(file)
