"""Making the pages and writing them to files."""

import html
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError
from memorydojo.judging.labels import OFFLINE_JUDGE
from memorydojo.runs._files import saving, write_atomic
from memorydojo.runs.load import Run
from memorydojo.runs.rows import labels_of, session_table
from memorydojo.viewer._page import is_page, page
from memorydojo.viewer._trace_data import trace_data

INDEX = "index.html"
STAGES = ("entered", "stored", "retrieved", "acted on")
_KEYS = ("memory", "model", "objective", "defense", "collection", "condition")


def trace_page(run: Run, *, judge: str | None = None) -> str:
    """The trace of a run as one self-contained HTML page.

    Args:
        run: A saved run.
        judge: Whose labels to show; None for the offline judge, which labels the run on the fly if it has to.

    Raises:
        SavedRunError: A file of the run is damaged, or it has no labels of this judge.
    """
    labels = labels_of(run, OFFLINE_JUDGE if judge is None else judge)
    return page("trace", f"Trace of {run.id}", trace_data(run, labels))


def write_trace(run: Run, path: str | os.PathLike[str], *, judge: str | None = None) -> Path:
    """Writes the trace of a run, and makes its directory; an earlier page in that place is replaced.

    Raises:
        SavedRunError: The run cannot be read or the file cannot be written.
        InvalidInputError: The place holds something else than a page of this library.
    """
    target = Path(path)
    _check_target(target)
    text = trace_page(run, judge=judge)
    with saving(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, text)
    return target


def frame(text: str, *, height: int = 720) -> str:
    """A page in a sandboxed frame, for a notebook: it can run its own script, and reach nothing around it."""
    return (
        f'<iframe sandbox="allow-scripts" width="100%" height="{int(height)}" '
        f'srcdoc="{html.escape(text, quote=True)}"></iframe>'
    )


def sweep_page(runs: Sequence[Run], *, title: str = "Runs", judge: str | None = None) -> str:
    """The table of runs with filters and their funnel; every row links to the trace beside it.

    Raises:
        SavedRunError: A file of a run is damaged, or a run has no labels of this judge.
    """
    data = {"title": title, "stages": STAGES, **_rows(runs, OFFLINE_JUDGE if judge is None else judge)}
    return page("sweep", title, data)


def write_sweep(runs: Sequence[Run], directory: str | os.PathLike[str], *, judge: str | None = None) -> Iterator[Path]:
    """Writes the trace of every run into a directory, then the table; yields each file once it is there.

    Raises:
        SavedRunError: A run cannot be read or a file cannot be written.
        InvalidInputError: A file is in the way that is no page of this library.
    """
    root = Path(directory)
    if root.exists() and not root.is_dir():
        raise InvalidInputError(f"{plain(str(root))} is no directory; the pages of several runs need one")
    targets = [root / f"{run.id}.html" for run in runs]
    for target in (*targets, root / INDEX):
        _check_target(target)
    with saving(root):
        root.mkdir(parents=True, exist_ok=True)
    for known, target in zip(runs, targets, strict=True):
        # A run of its own for reading: the sessions of all runs together may not fit into memory.
        write_atomic(target, trace_page(Run(known.directory), judge=judge))
        yield target
    write_atomic(root / INDEX, sweep_page(runs, title=counted(len(runs), "run"), judge=judge))
    yield root / INDEX


def _rows(runs: Sequence[Run], judge: str) -> dict[str, Any]:
    table = session_table(runs, judge)
    status = {run.id: run.end.status if run.end else "interrupted" for run in runs}
    rows = []
    for run_id, found in table.groupby("run_id", sort=False):
        first = {name: None if pd.isna(value) else value for name, value in found.iloc[0].items()}
        attacked = first["condition"] == "poisoned"
        later = found[found["session"] > first["insertion_session"]] if attacked else found.iloc[:0]
        rows.append(
            {
                "id": run_id,
                "href": f"./{quote(f'{run_id}.html')}",
                "attacked": attacked,
                "status": status[str(run_id)],
                "simulated": bool(first["simulated"]),
                **{name: first[name] for name in _KEYS},
                "payload": first["payload_id"],
                "label": first["insertion_label"],
                "entered": bool(first["payload_inserted"]),
                "stored": bool(first["inserted"]),
                "planned": len(found),
                "useful": int(found["utility"].sum()),
                "later": len(later),
                "retrieved": int(later["retrieved"].sum()),
                "met": int(later["objective_met"].sum()),
                "acted": int((later["retrieved"] & later["objective_met"]).sum()),
            }
        )
    judges = sorted(set(table["judge"])) if len(table) else [judge]
    return {"runs": rows, "judge": ", ".join(judges)}


def _check_target(path: Path) -> None:
    """Refuses to write over what is no page of ours."""
    if not path.exists():
        return
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as file:
            if is_page(file.read(4000)):
                return
    raise InvalidInputError(
        f"{plain(str(path))} exists and holds something else than a trace; choose another name or remove it"
    )
