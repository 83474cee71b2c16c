"""What has to be said below tables of metrics, besides what they are."""

from collections.abc import Iterable

import pandas as pd

from memorydojo._display import counted, plain, verb

_TOLD_APART = ("memory", "model", "payload_source", "defense")


def health(table: pd.DataFrame, *, apart: Iterable[str] = ()) -> list[str]:
    """What has to be known of the runs behind a table, one sentence each; nothing if all is well.

    Args:
        table: The session table.
        apart: The columns that the metrics are told apart by.
    """
    run = table.groupby("run_id", sort=False).first() if len(table) else table
    attacked = run[run["insertion_session"].notna()] if len(run) else run
    notes = _pooled(run, {*apart})
    left = table.attrs.get("not_begun", 0)
    if left:
        notes.append(
            f"{counted(left, 'run')} that a sweep planned here {verb(left, 'has', 'have')} not begun and "
            f"{verb(left)} in no number: a metric knows only runs that have begun. Start the sweep again to complete "
            f"{verb(left, 'it', 'them')}."
        )
    if "failed_stage" in table.columns:
        begun = table["failed_stage"] != "not begun"
        unfinished = table.loc[~begun.fillna(True), "run_id"].nunique()
        if unfinished:
            notes.append(
                f"{unfinished} of {counted(len(run), 'run')} did not reach {verb(unfinished, 'its', 'their')} last "
                "session; what did not run counts as 0."
            )
        stages = table.loc[begun.fillna(True), "failed_stage"].dropna().value_counts()
        failed = int(stages.sum())
        if failed:
            by_stage = ", ".join(f"{plain(str(stage), 20)} {count}" for stage, count in stages.items())
            notes.append(
                f"{counted(failed, 'session')} failed and {verb(failed, 'counts', 'count')} as 0; by stage: {by_stage}."
            )
    if "history_failed" in table.columns:
        short = run.loc[run["history_failed"] > 0, "history_failed"]
        if len(short):
            told = int((run["history_sessions"] > 0).sum())
            notes.append(
                f"In {len(short)} of {counted(told, 'run')} with a history, memory did not take in all of it: "
                f"{counted(int(short.sum()), 'history session')} failed or did not run. The runs stay in every "
                "denominator."
            )
    if "payload_inserted" in table.columns and len(attacked):
        missed = int((~attacked["payload_inserted"].astype(bool)).sum())
        if missed:
            notes.append(
                f"In {missed} of {counted(len(attacked), 'poisoned run')} the payload never entered an observation; "
                f"{verb(missed, 'it stays', 'they stay')} in every denominator."
            )
    if "judge" in table.columns and table["judge"].nunique() > 1:
        judges = "; ".join(plain(str(judge), 80) for judge in sorted(table["judge"].dropna().astype(str).unique()))
        notes.append(f"The labels are of several judges or versions, which may judge differently: {judges}.")
    return [*notes, *_unjudged(table, run)]


def _pooled(run: pd.DataFrame, told: set[str]) -> list[str]:
    """What is counted together that is seldom meant to be."""
    found = {}
    for name in _TOLD_APART:
        if name in run.columns and name not in told:
            # Clean runs have no payload; a run without a defense is one of its own kind.
            values = run[name].fillna("none") if name == "defense" else run[name].dropna()
            found[name] = sorted(values.astype(str).unique())
    mixed = {name: values for name, values in found.items() if len(values) > 1}
    if not mixed:
        return []
    said = "; ".join(f"{name} ({', '.join(plain(value, 40) for value in mixed[name])})" for name in mixed)
    return [f"Counted together: {said}. --by {','.join(mixed)} tells them apart."]


def _unjudged(table: pd.DataFrame, run: pd.DataFrame) -> list[str]:
    """What the judge gave no usable answer about, and by how much metrics can be too low for it."""
    names = ("insertion_unjudged", "retrieval_unjudged", "origin_unjudged", "objective_unjudged")
    if not len(run) or not all(name in table.columns for name in names):
        return []
    attacked = table[table["insertion_session"].notna()]
    later = attacked[attacked["session"] > attacked["insertion_session"]]
    poisoned = run[run["insertion_session"].notna()]
    parts = {
        "ISR": (poisoned["insertion_unjudged"], "poisoned run"),
        "RSR": (later["retrieval_unjudged"], "later session"),
        "BRT": (later["objective_unjudged"], "later session"),
    }
    notes = []
    for metric, (open_, of) in parts.items():
        number = int(open_.astype(bool).sum())
        if number:
            notes.append(
                f"{metric} hangs on texts that the judge gave no usable answer about in {number} of "
                f"{counted(len(open_), of)}; they count as 0, so over all runs it can be up to "
                f"{100 * number / len(open_):.2f} points higher."
            )
    if "memory_unjudged" in table.columns and "memory_correct" in table.columns:
        asked, number = int(run["memory_correct"].notna().sum()), int(run["memory_unjudged"].astype(bool).sum())
        if number:
            notes.append(
                f"MU hangs on answers that the judge gave no usable verdict about in {number} of "
                f"{counted(asked, 'run')}; they count as wrong, so over all runs it can be up to "
                f"{100 * number / asked:.2f} points higher."
            )
    origin = int(later["origin_unjudged"].astype(bool).sum())
    if origin:
        retrieved = int(later["retrieved"].sum())
        notes.append(
            f"Whether the payload came from original entries or from descendants (PE, PR, PP) hangs on such texts in "
            f"{origin} of {counted(retrieved, 'session')} with retrieval."
        )
    return notes
