"""Metrics as tables in a terminal: groups side by side, or row by row."""

import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memorydojo._display import plain
from memorydojo.metrics import METRICS

_WIDTH = 120
_LABEL_WIDTH = 24
_COUNTS = {
    "n_runs": "runs",
    "n_trajectories": "trajectories",
    "n_sessions": "task sessions",
    "n_later": "later sessions",
    "n_retrieved": "with retrieval",
}
_HEADS = {
    **_COUNTS,
    "n_met": "met",
    "n_only_a": "only a",
    "n_only_b": "only b",
    "n_runs_a": "runs a",
    "n_runs_b": "runs b",
}
_FRACTIONS = ("base_rate", "a", "b", "difference")
_SIMULATED = "simulated: these numbers describe the offline simulator and the memory systems, never a language model."


def print_groups(result: pd.DataFrame, *, title: str, notes: Sequence[str]) -> None:
    """Prints a summary with a row for each metric and a column for each group, as many side by side as fit."""
    console = _console()
    keys = list(result.columns[: list(result.columns).index("n_runs")])
    keys = [key for key in keys if key != "simulated"]
    metrics = [name for name in METRICS if name in result.columns]
    wide = any(name.endswith("_low") for name in result.columns)
    beside = max(1, (console.width - _LABEL_WIDTH) // (25 if wide else 16))
    for start in range(0, max(len(result), 1), beside):
        block = result.iloc[start : start + beside]
        table = _table(title, result)
        table.add_column("percent" if not wide else "percent [95 %]", overflow="fold")
        for _, row in block.iterrows():
            head = "\n".join(f"{key}={_text(row[key], 40)}" for key in keys) or "all runs"
            table.add_column(Text(plain_lines(head)), justify="right", overflow="fold")
        groups = [row for _, row in block.iterrows()]
        table.add_row("simulated", *("yes" if row["simulated"] else "no" for row in groups))
        for name, label in _COUNTS.items():
            if name in result.columns:
                table.add_row(label, *(_text(row[name]) for row in groups), end_section=name == "n_retrieved")
        for name in metrics:
            table.add_row(name.replace("_", " "), *(_percent(row, name) for row in groups))
        console.print(table)
    _print_notes(console, result, notes)


def print_rows(result: pd.DataFrame, *, title: str, notes: Sequence[str]) -> None:
    """Prints base rates or differences row by row."""
    console = _console()
    table = _table(title, result)
    shown = [str(name) for name in result.columns if not str(name).endswith(("_low", "_high"))]
    for name in shown:
        head = f"{name.replace('_', ' ')} %" if name in _FRACTIONS else _HEADS.get(name, name)
        table.add_column(
            Text(plain(head)), justify="right" if name in _HEADS or name in _FRACTIONS else "left", overflow="fold"
        )
    for _, row in result.iterrows():
        table.add_row(*(Text(_percent(row, name) if name in _FRACTIONS else _text(row[name], 40)) for name in shown))
    console.print(table)
    _print_notes(console, result, notes)


def _console() -> Console:
    # Nothing of the data is markup, an emoji code or a thing to colour; outside a terminal lines have a fixed width.
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def _table(title: str, result: pd.DataFrame) -> Table:
    marked = f"{title} (simulated)" if bool(result["simulated"].any()) else title
    return Table(title=Text(plain(marked)), title_justify="left")


def _print_notes(console: Console, result: pd.DataFrame, notes: Sequence[str]) -> None:
    simulated = [_SIMULATED] if bool(result["simulated"].any()) else []
    for note in [*simulated, *notes]:
        console.print(Text(plain(note)))


def plain_lines(text: str) -> str:
    """Text made plain line by line."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _text(value: Any, limit: int | None = None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if pd.isna(value) else plain(str(value), limit)


def _percent(row: "pd.Series[Any]", name: str) -> str:
    """A fraction in percent with its interval; a dash where it is undefined."""
    if pd.isna(row[name]):
        return "-"
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    value = f"{100 * row[name]:.2f}"
    return value if low is None or pd.isna(low) else f"{value} [{100 * low:.2f}, {100 * high:.2f}]"
