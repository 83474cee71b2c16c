"""Progress of a sweep, for people: in a terminal, in a notebook, and nowhere else."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._display import counted
from memorydojo.cost import Price
from memorydojo.runs.model import RunPlan
from memorydojo.runs.store import run_id

if TYPE_CHECKING:
    from memorydojo.runs import Run

Progress = Callable[[int, int, str], None]

_SHORTEST_BAR, _LONGEST_BAR = 8, 24
_PERCENTAGE = 4
_GAPS = 2
"""The spaces between the bar, the percentage and the line."""


@dataclass
class Counter:
    """What a sweep has done, and how long the rest will take.

    Attributes:
        directory: Where the runs are saved.
        lengths: Task sessions by run id.
        prices: Prices by model, if costs are wanted.
        clock: The time in seconds.
    """

    directory: Path
    lengths: Mapping[str, int]
    prices: Mapping[str, Price] | None = None
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    sessions: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    _started: float = field(init=False)
    _before: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._started = self.clock()
        saved = {path.parent.name for path in self.directory.glob("runs/*/end.json")} & self.lengths.keys()
        self.done = len(saved)
        self._before = sum(self.lengths[identity] for identity in saved)

    def __call__(self, done: int, of: int, identity: str) -> None:
        """Counts a run that has ended."""
        from memorydojo.runs.load import Run

        self.done = done
        self.sessions += self.lengths.get(identity, 0)
        self._count(Run(self.directory / "runs" / identity))

    def _count(self, run: "Run") -> None:
        from memorydojo.cost import summarize_cost, usage_table

        table = usage_table([run])
        self.calls += int(table["calls"].sum())
        self.tokens += int(table["input_tokens"].sum() + table["output_tokens"].sum())
        if self.prices is not None and self.cost is not None and len(table):
            price = float(summarize_cost(table, by=["run_id"], prices=self.prices)["price"].sum(skipna=False))
            self.cost = None if price != price else self.cost + price

    @property
    def fraction(self) -> float:
        """The part of all task sessions that is done."""
        total = sum(self.lengths.values())
        return (self._before + self.sessions) / total if total else 1.0

    @property
    def rate(self) -> float:
        """Task sessions a minute since the start."""
        return 60 * self.sessions / max(self.clock() - self._started, 1e-9)

    @property
    def remaining(self) -> float | None:
        """Seconds that the rest will take at this rate; None before the first run has ended."""
        if not self.sessions:
            return None
        rest = sum(self.lengths.values()) - self._before - self.sessions
        return 60 * rest / self.rate

    def line(self, width: int | None = None) -> str:
        """All of it on one line, or what is most important of it, if only so many characters fit."""
        rest = self.remaining
        runs = f"{self.done}/{counted(len(self.lengths), 'run')}"
        cost = "cost unknown (a model has no price)" if self.cost is None else f"cost {self.cost:,.2f}"
        # With the rank of each part: the last ranks are left out first.
        parts = [
            (0, runs),
            (3, f"{self.rate:.1f} sessions/min"),
            (4, f"{self.calls:,} {'call' if self.calls == 1 else 'calls'}, {self.tokens:,} tokens"),
            *([(2, cost)] if self.prices is not None else []),
            (1, "remaining: unknown yet" if rest is None else f"remaining {_duration(rest)}"),
        ]
        while True:
            line = "  ".join(said for _, said in parts)
            if width is None or len(line) <= width or len(parts) == 1:
                return line
            parts.remove(max(parts))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


@contextmanager
def progress_of(
    plans: Sequence[RunPlan], directory: Path, *, prices: Mapping[str, Price] | None = None
) -> Iterator[Progress | None]:
    """Progress for `memorydojo.sweep`: a bar in a terminal or notebook, None elsewhere.

    Args:
        plans: The runs.
        directory: Where they are saved.
        prices: Prices by model; without them no costs are shown.
    """
    notebook = _notebook()
    if notebook is None and not sys.stdout.isatty():
        yield None
        return
    counter = Counter(directory, {run_id(plan): len(plan.trajectory) for plan in plans}, prices)
    with _in_notebook(counter, notebook) if notebook is not None else _in_terminal(counter) as progress:
        yield progress


@contextmanager
def shown(progress: "Progress | bool", plans: Sequence[RunPlan], directory: Path) -> Iterator[Progress | None]:
    """What `memorydojo.sweep` calls after each run: what it was given, a bar if that is True, or nothing."""
    if not isinstance(progress, bool):
        yield progress
    elif progress:
        with progress_of(plans, directory) as bar:
            yield bar
    else:
        yield None


def _notebook() -> Any:
    """IPython's display module, if this runs in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return importlib.import_module("IPython.display")


@contextmanager
def _in_notebook(counter: Counter, display: Any) -> Iterator[Progress]:
    handle = display.display(display.Pretty(counter.line()), display_id=True)

    def show(done: int, of: int, identity: str) -> None:
        counter(done, of, identity)
        handle.update(display.Pretty(f"{100 * counter.fraction:3.0f} %  {counter.line()}"))

    yield show


@contextmanager
def _in_terminal(counter: Counter) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    # Only the bar may become narrower: the line is made to fit into what is left.
    columns = (
        BarColumn(bar_width=None, table_column=Column(min_width=_SHORTEST_BAR, max_width=_LONGEST_BAR, ratio=1)),
        TaskProgressColumn(table_column=Column(width=_PERCENTAGE, no_wrap=True)),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
    )
    console = Console(file=sys.stdout)

    def line() -> str:
        return counter.line(console.width - _SHORTEST_BAR - _PERCENTAGE - _GAPS)

    with Bar(*columns, console=console, transient=False) as bar:
        task = bar.add_task(line(), total=1.0)
        bar.update(task, completed=counter.fraction)

        def show(done: int, of: int, identity: str) -> None:
            counter(done, of, identity)
            bar.update(task, completed=counter.fraction, description=line())

        yield show
