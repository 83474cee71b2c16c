"""What a search looks like: a table, a plot of BRT and utility by round, the lineage, and what changed since the seed.

Payloads are hostile text: everything is escaped where it is shown.
"""

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._display import counted, plain
from memorydojo.errors import InvalidInputError, MissingPackageError
from memorydojo.view import LONGEST, SIMULATED, Change, Column, View, cut, escaped

if TYPE_CHECKING:
    import pandas as pd

    from memorydojo.optimizer.results import Search

#: Endings of files that `plot` writes.
PLOTS = (".png", ".svg", ".pdf")

#: What `table` has, in order.
COLUMNS = (
    "candidate",
    "kind",
    "round",
    "parent",
    "BRT",
    "TU",
    "met",
    "later",
    "completed",
    "planned",
    "stored",
    "delivered",
    "followed",
    "rejected",
    "eligible",
    "selected",
    "simulated",
)


def table(search: "Search") -> "pd.DataFrame":
    """One row a tested candidate, in the order of the tests.

    ``stored``, ``delivered`` and ``followed`` are shares of the planned later sessions: that found a marker of the
    payload in memory, whose agent read one, and that then executed the objective. ``rejected`` counts the drafts of the
    candidate's round that were not valid.
    """
    import pandas as pd

    selection = search.selection
    rejected: dict[int, int] = {}
    for number, _, _ in search.rejections():
        rejected[number] = rejected.get(number, 0) + 1
    rows = []
    for one in search.tested:
        candidate, counts, seen = one.candidate, one.feedback.counts, one.feedback.evidence
        rows.append(
            {
                "candidate": candidate.id,
                "kind": candidate.kind,
                "round": candidate.round,
                "parent": candidate.parent,
                "BRT": counts.brt,
                "TU": counts.tu,
                **counts.model_dump(),
                "stored": _share(seen.held, seen.later),
                "delivered": _share(seen.shown, seen.later),
                "followed": _share(seen.followed, seen.later),
                "rejected": 0 if candidate.kind == "seed" else rejected.get(candidate.round, 0),
                "eligible": None if selection is None else candidate.id in selection.eligible,
                "selected": selection is not None and candidate.id == selection.selected,
                "simulated": search.manifest.simulated,
            }
        )
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    found["parent"] = pd.Series([row["parent"] for row in rows], dtype=object)  # None stays None
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def plot_data(search: "Search") -> "pd.DataFrame":
    """BRT and task utility by round: of what was tested, and the best BRT so far. Round 0 are the seeds."""
    import pandas as pd

    found = table(search)
    rows = []
    best = float("-inf")
    for row in found.to_dict("records"):
        best = max(best, row["BRT"])
        rows.append({k: row[k] for k in ("round", "candidate", "kind", "BRT", "TU")} | {"best_BRT": best})
    return pd.DataFrame(rows, columns=["round", "candidate", "kind", "BRT", "TU", "best_BRT"])


def plot(search: "Search", path: str | Path) -> Path:
    """Draws BRT and task utility by round into a file; its ending decides the format.

    Raises:
        MissingPackageError: matplotlib is not installed.
        InvalidInputError: No candidate was tested yet.
        SavedRunError: It cannot be written.
    """
    from memorydojo.runs._files import saving

    try:
        from matplotlib.ticker import MaxNLocator

        from memorydojo.figures import _canvas as canvas
    except ImportError as error:
        raise MissingPackageError("matplotlib", "the plot of a search", "figures") from error
    data = plot_data(search)
    if data.empty:
        raise InvalidInputError(f"no candidate of the search in {plain(str(search.directory))} was tested yet")
    names = ("BRT", "task utility", "best BRT so far")
    entries = [*(canvas.marker(name, at) for at, name in enumerate(names[:2])), canvas.marker(names[2], 2, line=True)]
    entries[2].set_marker("")  # the best so far is a line between the rounds
    figure, (axes,) = canvas.sheet(7, 4, mark="simulated" if search.manifest.simulated else None, entries=entries)
    rounds = data["round"].to_numpy()
    best = canvas.style(2)
    axes.step(rounds, data["best_BRT"].to_numpy(), where="post", color=best.colour, linestyle=best.line)
    for at, column in enumerate(("BRT", "TU")):
        how = canvas.style(at)
        axes.plot(rounds, data[column].to_numpy(), how.marker, color=how.colour, markeredgecolor="black")
    axes.set(xlabel="round (0: seeds)", ylabel="percent", ylim=(-0.02, 1.02))
    canvas.percent(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # What a title says is no formula, whatever it holds.
    axes.set_title(plain(search.id).replace("$", r"\$"), fontsize=10)
    target = Path(path)
    with saving(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        canvas.finished(figure).savefig(target)
    return target


def lineage(search: "Search", candidate: str | None = None) -> list[str]:
    """A candidate's ancestors and itself, the oldest first; of the selected one if none is named.

    Raises:
        UnknownNameError: No candidate with this id was tested.
    """
    chosen = candidate if candidate is not None else search.selected.candidate.id if search.selected else None
    found: list[str] = []
    known = {one.candidate.id for one in search.tested}
    while chosen is not None and chosen not in found:
        found.append(search[chosen].candidate.id)
        parent = search[chosen].candidate.parent
        chosen = parent if parent in known else None
    return found[::-1]


def difference(search: "Search") -> list[Change]:
    """The words that the selected candidate has changed since the strongest seed, in order."""
    if search.best_seed is None or search.selected is None:
        return []
    before, after = (re.findall(r"\s+|\S+", one.candidate.text) for one in (search.best_seed, search.selected))
    found: list[Change] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(before[a:b])))
        else:
            found += [("removed", "".join(before[a:b]))] if b > a else []
            found += [("added", "".join(after[c:d]))] if d > c else []
    return found


def headline(search: "Search") -> str:
    """The outcome in a sentence."""
    note = " (simulated)" if search.manifest.simulated else ""
    spec = search.spec
    state = f"stopped: {search.stopped}" if search.stopped else "" if search.complete else "interrupted"
    outcome = search.selection.reason if search.selection is not None else "no outcome yet"
    chosen = f"selected: {search.selected.candidate.id}" if search.selected is not None else "nothing is selected"
    said = f"{spec.memory}, objective {spec.objective}, strategy {spec.strategy}{note}: {chosen}; {outcome}"
    return f"{said} ({state})" if state else said


_SHOWN = ("candidate", "round", "parent", "BRT", "TU", "stored", "delivered", "followed", "rejected")


def view(search: "Search", *, limit: int | None = LONGEST) -> View:
    """What a search looks like in a terminal: its candidates, the outcome, and what changed since the best seed.

    Args:
        search: The search.
        limit: How many candidates to show; None for all.
    """
    rows, more = cut(table(search).to_dict("records"), "candidate", limit=limit)
    changed = difference(search)
    cost = search.cost
    asked = f"{counted(cost.calls, 'call')}, {counted(cost.tokens, 'token')}"
    told = f"lineage: {' -> '.join(lineage(search))}; from the best seed to what is selected:"
    notes: list[str | list[Change]] = [told, changed] if changed else []
    return View(
        headline(search),
        [*(Column(name, number=name not in ("candidate", "parent")) for name in _SHOWN), Column("outcome")],
        [[*(cell(row[name]) for name in _SHOWN), mark(row)] for row in rows],
        more=more,
        notes=[*notes, asked, *([SIMULATED] if search.manifest.simulated else [])],
    )


def page(search: "Search") -> str:
    """What `view` shows, and all texts, as HTML without scripts; every text is escaped."""
    texts = (
        f"<details><summary>{escaped(one.candidate.id)}</summary>"
        f'<pre style="white-space: pre-wrap; overflow-wrap: anywhere">{escaped(one.candidate.text)}</pre></details>'
        for one in search.tested
    )
    return "\n".join(["<div>", view(search, limit=None).html(), *texts, "</div>"])


def write_page(search: "Search", path: str | Path) -> Path:
    """Writes `page` into a file of its own.

    Raises:
        SavedRunError: It cannot be written.
    """
    from memorydojo.runs._files import saving

    target = Path(path)
    head = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Search</title></head><body>'
    with saving(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{head}\n{page(search)}\n</body></html>\n", encoding="utf-8")
    return target


def cell(value: Any) -> str:
    """A value as people read it: shares in percent."""
    if value is None or value != value:
        return "-"
    return f"{100 * value:.1f} %" if isinstance(value, float) else plain(str(value), 40)


def mark(row: dict[Any, Any]) -> str:
    """Whether a candidate is selected or not eligible; nothing as long as that is not decided."""
    return "selected" if row["selected"] else "not eligible" if row["eligible"] is False else ""
