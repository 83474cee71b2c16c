"""Metrics as CSV and JSON."""

import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import pandas as pd

from memorydojo._display import plain

_MARKS = {"n_runs", "simulated"}
_COMPARISON_MARKS = {"n_runs_a", "simulated"}


def as_csv(result: pd.DataFrame) -> str:
    """A result as CSV; control characters in text are written as escapes, nulls as empty fields."""
    shown = result.map(lambda value: plain(value) if isinstance(value, str) else value)
    return shown.rename(columns=plain).to_csv(index=False, lineterminator="\n")


def as_json(result: pd.DataFrame) -> str:
    """A result as a JSON list of rows, in ASCII; nulls and NaN are null."""
    columns = [str(name) for name in result.columns]
    rows = [
        {name: _json_value(value) for name, value in zip(columns, values, strict=True)}
        for values in result.itertuples(index=False, name=None)
    ]
    return json.dumps(rows, indent=1, allow_nan=False) + "\n"


def _json_value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, str | bool | int | float) else str(value)


def may_replace(path: Path) -> bool:
    """Whether a file is empty or holds metrics, so that nothing else is lost when it is written again."""
    if not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix.lower() == ".csv":
                header = next(csv.reader(file), None)
                return header is None or _marked(set(header))
            text = file.read()
        rows = json.loads(text) if text.strip() else []
    except (OSError, ValueError, csv.Error):
        return False
    return isinstance(rows, list) and all(isinstance(row, dict) and _marked(set(row)) for row in rows)


def _marked(columns: set[str]) -> bool:
    return columns >= _MARKS or columns >= _COMPARISON_MARKS


def write(path: Path, text: str) -> None:
    """Writes a whole file or nothing, and makes its directory.

    Raises:
        OSError: It cannot be written; what was there before still is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".memorydojo-{os.getpid()}-{path.name}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
