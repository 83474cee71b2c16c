"""Metrics as tables in a terminal: groups side by side, or row by row."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memorydojo._display import plain
from memorydojo.metrics import METRICS

_WIDTH = 120
_LABEL_WIDTH = 20
_LONGEST_HEAD = 40
_HEADS = {
    "n_runs": "runs",
    "n_trajectories": "trajectories",
    "n_sessions": "task sessions",
    "n_later": "later sessions",
    "n_retrieved": "with retrieval",
    "n_met": "met",
    "failed_check": "earliest failed check",
    "share": "share %",
    "RSR": "RSR %",
    "BRT_given_R": "BRT given R %",
    "base_rate": "base rate %",
}
_FRACTIONS = ("base_rate", "a", "b", "difference", "share", "RSR", "BRT_given_R")
_SIMULATED = "simulated: these numbers describe the offline simulator and the memory systems, never a language model."


def health(table: pd.DataFrame) -> list[str]:
    """What in the runs behind a table did not go as planned, one sentence each; nothing if all is well."""
    run = table.groupby("run_id", sort=False).first() if len(table) else table
    attacked = run[run["insertion_session"].notna()] if len(run) else run
    notes = []
    if "failed_stage" in table.columns:
        begun = table["failed_stage"] != "not begun"
        unfinished = table.loc[~begun.fillna(True), "run_id"].nunique()
        if unfinished:
            notes.append(
                f"{unfinished} of {len(run)} runs did not reach their last session; what did not run counts as 0."
            )
        stages = table.loc[begun.fillna(True), "failed_stage"].dropna().value_counts()
        if len(stages):
            by_stage = ", ".join(f"{plain(str(stage), 20)} {count}" for stage, count in stages.items())
            notes.append(f"{stages.sum()} sessions failed and count as 0; by stage: {by_stage}.")
    if "history_failed" in table.columns:
        short = run.loc[run["history_failed"] > 0, "history_failed"]
        if len(short):
            notes.append(
                f"In {len(short)} of {int((run['history_sessions'] > 0).sum())} runs with a history, memory did not "
                f"take in all of it: {int(short.sum())} history sessions failed or did not run. The runs stay in every "
                "denominator."
            )
    if "payload_inserted" in table.columns and len(attacked):
        missed = int((~attacked["payload_inserted"].astype(bool)).sum())
        if missed:
            notes.append(
                f"In {missed} of {len(attacked)} poisoned runs the payload never entered an observation; they stay in "
                "every denominator."
            )
    if "judge" in table.columns and table["judge"].nunique() > 1:
        judges = "; ".join(plain(str(judge), 80) for judge in sorted(table["judge"].dropna().astype(str).unique()))
        notes.append(f"The labels are of several judges or versions, which may judge differently: {judges}.")
    return [*notes, *_unjudged(table, run)]


def _unjudged(table: pd.DataFrame, run: pd.DataFrame) -> list[str]:
    """What the judge gave no usable answer about, and by how much metrics can be too low for it."""
    names = ("insertion_unjudged", "retrieval_unjudged", "origin_unjudged", "objective_unjudged")
    if not len(run) or not all(name in table.columns for name in names):
        return []
    attacked = table[table["insertion_session"].notna()]
    later = attacked[attacked["session"] > attacked["insertion_session"]]
    poisoned = run[run["insertion_session"].notna()]
    parts = {
        "ISR": (poisoned["insertion_unjudged"], "poisoned runs"),
        "RSR": (later["retrieval_unjudged"], "later sessions"),
        "BRT": (later["objective_unjudged"], "later sessions"),
    }
    notes = []
    for metric, (open_, of) in parts.items():
        number = int(open_.astype(bool).sum())
        if number:
            notes.append(
                f"{metric} hangs on texts that the judge gave no usable answer about in {number} of {len(open_)} {of}; "
                f"they count as 0, so over all runs it can be up to {100 * number / len(open_):.2f} points higher."
            )
    if "memory_unjudged" in table.columns and "memory_correct" in table.columns:
        asked, number = int(run["memory_correct"].notna().sum()), int(run["memory_unjudged"].astype(bool).sum())
        if number:
            notes.append(
                f"MU hangs on answers that the judge gave no usable verdict about in {number} of {asked} runs; they "
                f"count as wrong, so over all runs it can be up to {100 * number / asked:.2f} points higher."
            )
    origin = int(later["origin_unjudged"].astype(bool).sum())
    if origin:
        retrieved = int(later["retrieved"].sum())
        notes.append(
            f"Whether the payload came from original entries or from descendants (PE, PR, PP) hangs on such texts in "
            f"{origin} of {retrieved} sessions with retrieval."
        )
    return notes


def print_groups(result: pd.DataFrame, *, title: str, notes: Sequence[str]) -> None:
    """Prints a summary with a row for each metric and a column for each group, as many side by side as fit."""
    console = _console()
    _print_title(console, title, result)
    names = [str(name) for name in result.columns]
    keys = [name for name in names[: names.index("n_runs")] if name != "simulated"]
    counts = [name for name in _HEADS if name in names and name.startswith("n_")]
    wide = any(name.endswith("_low") for name in names)
    groups = [row for _, row in result.iterrows()]
    longest = max((len(f"{key}={_text(row[key])}") for row in groups for key in keys), default=0)
    beside = max(1, (console.width - _LABEL_WIDTH) // max(26 if wide else 14, min(longest, _LONGEST_HEAD) + 3))
    for start in range(0, len(groups), beside):
        block = groups[start : start + beside]
        table = Table()
        table.add_column("percent [95 %]" if wide else "percent", no_wrap=True)
        for row in block:
            head = "\n".join(plain(f"{key}={_text(row[key])}", 60) for key in keys) or "all runs"
            table.add_column(Text(head), justify="right", overflow="fold")
        table.add_row("simulated", *(_text(row["simulated"]) for row in block))
        for name in counts:
            table.add_row(_HEADS[name], *(_text(row[name]) for row in block), end_section=name == counts[-1])
        for name in (name for name in METRICS if name in names):
            table.add_row(name.replace("_", " "), *(_percent(row, name) for row in block))
        console.print(table)
    _print_notes(console, result, notes)


def print_comparison(
    result: pd.DataFrame, *, title: str, notes: Sequence[str], sides: tuple[str, str] = ("poisoned", "clean")
) -> None:
    """Prints differences between the two sides, ``a`` and ``b`` of a comparison."""
    names = [str(name) for name in result.columns]
    shown = result[[*names[: names.index("metric")], "metric", "a", "b", "difference"]].copy()
    for end in ("difference_low", "difference_high"):
        if end in names:
            shown[end] = result[end]
    if "sign" in names:
        shown["sign"] = result["sign"].fillna("")
    shown["trajectories"] = result["n_trajectories"]
    pairs = {"left out": ("n_only_a", "n_only_b"), "runs": ("n_runs_a", "n_runs_b")}
    for head, (a, b) in pairs.items():
        shown[head] = result[a].astype(str) + " / " + result[b].astype(str)
    explained = [f"Left out (not in both) and runs: {' / '.join(sides)}."]
    if "sign" in names:
        explained.append("Sign: + or - where the whole interval lies on that side of 0, else 0.")
    heads = {"a": f"{sides[0]} %", "b": f"{sides[1]} %"}
    print_rows(shown, title=title, notes=[*notes, *explained], heads=heads)


def print_rows(
    result: pd.DataFrame, *, title: str, notes: Sequence[str], heads: Mapping[str, str] | None = None
) -> None:
    """Prints base rates, differences or shares row by row.

    Args:
        result: What to print.
        title: Stands above the table.
        notes: Stand below it, one a line.
        heads: Heads of columns; other columns have their own head or their name.
    """
    console = _console()
    _print_title(console, title, result)
    table = Table()
    shown = [str(name) for name in result.columns if not str(name).endswith(("_low", "_high"))]
    for name in shown:
        number = name in (*_FRACTIONS, "n", "of") or name.startswith("n_")
        head = Text(plain({**_HEADS, **(heads or {})}.get(name, name)))
        table.add_column(head, justify="right" if number else "left", overflow="fold", no_wrap=name in _FRACTIONS)
    for _, row in result.iterrows():
        table.add_row(*(Text(_percent(row, name) if name in _FRACTIONS else _text(row[name])) for name in shown))
    console.print(table)
    _print_notes(console, result, notes)


def _console() -> Console:
    # Nothing of the data is markup, an emoji code or a thing to colour; outside a terminal lines have a fixed width.
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def _print_title(console: Console, title: str, result: pd.DataFrame) -> None:
    console.print(Text(plain(f"{title} (simulated)" if bool(result["simulated"].any()) else title), style="bold"))


def _print_notes(console: Console, result: pd.DataFrame, notes: Sequence[str]) -> None:
    simulated = [_SIMULATED] if bool(result["simulated"].any()) else []
    for note in [*simulated, *notes]:
        console.print(Text(plain(note)))


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return "none" if pd.isna(value) else plain(str(value), 60)


def _percent(row: "pd.Series[Any]", name: str) -> str:
    """A fraction in percent with its interval; a dash where it is undefined."""
    if pd.isna(row[name]):
        return "-"
    low, high = row.get(f"{name}_low", np.nan), row.get(f"{name}_high", np.nan)
    value = f"{100 * row[name]:.2f}"
    return value if pd.isna(low) else f"{value} [{100 * low:.2f}, {100 * high:.2f}]"
