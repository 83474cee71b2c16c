"""Tables of saved runs as CSV, JSON Lines and Parquet."""

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorydojo._display import valid
from memorydojo.errors import InvalidInputError, MissingPackageError, UnknownNameError
from memorydojo.export._targets import check_runs, new_file
from memorydojo.judging.labels import OFFLINE_JUDGE

if TYPE_CHECKING:
    import pandas as pd

    from memorydojo.runs import Run

SUFFIXES = (".csv", ".jsonl", ".parquet")
_MARK = b"memorydojo"
#: Columns that all tables of one kind have: a file without them was not written here.
_MARKS: tuple[frozenset[str], ...] = (
    frozenset({"run_id", "session", "n_sessions", "insertion_session", "simulated"}),
    frozenset({"run_id", "session", "role", "calls", "input_tokens", "simulated"}),
    frozenset({"run_id", "session", "what", "label", "judge", "simulated"}),
)


def labels_table(runs: "Iterable[Run]", judge: str | None = None) -> "pd.DataFrame":
    """One row for each label: of every entry version from the insertion on, and of every item delivered after it.

    Args:
        runs: Saved runs.
        judge: Whose labels; None for the offline judge, which labels on the fly the runs that have none of its.

    Returns:
        ``run_id``; ``session``; ``what`` (``"entry"`` or ``"item"``); ``entry_id`` of an entry; ``rank`` of an item;
        ``label``; ``original`` and ``descendant``; ``span_start`` and ``span_end`` in characters, null if nothing was
        found or the judge cannot tell; ``judge`` with its version; ``simulated``. It holds no text of a payload.

    Raises:
        SavedRunError: A run has no labels of this judge, or a file is damaged.
    """
    import pandas as pd

    from memorydojo.runs.load import Run as Saved

    check_runs(runs)
    rows = [row for run in runs for row in _labels_of(Saved(run.directory), judge)]
    table = pd.DataFrame(rows, columns=list(_LABELS)).astype({"session": "int64", "rank": "Int64"})
    booleans = {"original": bool, "descendant": bool, "simulated": bool}
    return table.astype({"span_start": "Int64", "span_end": "Int64", **booleans})


_LABELS = (
    *("run_id", "session", "what", "entry_id", "rank", "label", "original", "descendant"),
    *("span_start", "span_end", "judge", "simulated"),
)


def _labels_of(run: "Run", judge: str | None) -> Iterator[dict[str, Any]]:
    from memorydojo.judging.labels import POISON
    from memorydojo.runs.rows import labels_of

    labels = labels_of(run, OFFLINE_JUDGE if judge is None else judge)
    shared = {
        "run_id": run.id,
        "judge": f"{labels.judge} {labels.judge_version}",
        "simulated": run.header.simulated,
    }
    for entry in labels.entries:
        start, end = entry.span or (None, None)
        yield {
            **shared,
            "session": entry.session,
            "what": "entry",
            "entry_id": valid(entry.entry_id),
            "label": entry.label,
            "original": entry.original,
            "descendant": entry.label in POISON and not entry.original,
            "span_start": start,
            "span_end": end,
        }
    for session in labels.sessions:
        for item in session.items:
            start, end = item.span or (None, None)
            yield {
                **shared,
                "session": session.session,
                "what": "item",
                "rank": item.rank,
                "label": item.label,
                "original": item.original,
                "descendant": item.descendant,
                "span_start": start,
                "span_end": end,
            }


def write_table(table: "pd.DataFrame", path: str | os.PathLike[str]) -> Path:
    """Writes a session table, a usage table or a table of labels; by the suffix as CSV, JSON Lines or Parquet.

    `memorydojo.runs.table.read_session_table` reads a session table back equal. All three are for programs: values are
    written as they are. A spreadsheet takes a CSV cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula;
    the tables hold names and ids, no texts, but names are chosen by users, so import such a file as text. An earlier
    export in that place is replaced.

    Args:
        table: The table.
        path: A file that ends in ``.csv``, ``.jsonl`` or ``.parquet``.

    Returns:
        The file.

    Raises:
        UnknownNameError: The suffix is another.
        InvalidInputError: The table is none of these, or the place holds something else.
        MissingPackageError: Parquet needs pyarrow.
        SavedRunError: The file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise UnknownNameError("suffix of a table", suffix, SUFFIXES)
    if not _marked(table.columns):
        raise InvalidInputError(
            "this is no session table, usage table or table of labels with the column 'simulated'; save the results of "
            "metrics with: memorydojo metrics --output"
        )
    writer = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}[suffix]
    with new_file(target, _is_table) as temporary:
        writer(table, temporary)
    return target


def _marked(columns: Iterable[object]) -> bool:
    names = {str(name) for name in columns}
    return any(names >= mark for mark in _MARKS)


def _is_table(path: Path) -> bool:
    """Whether an existing file is one of ours."""
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return _MARK in (pq.read_schema(path).metadata or {})
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix.lower() == ".csv":
                return _marked(next(csv.reader(file), []))
            first = json.loads(file.readline())
            return isinstance(first, dict) and _marked(first)
    except (OSError, ValueError, csv.Error, ImportError):
        return False


def _sound(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table without lone surrogates, which are no Unicode text and fit into no file."""
    result = table.copy()
    for name in result.columns:
        if result[name].dtype == object or result[name].dtype.name.startswith("str"):
            result[name] = result[name].map(lambda value: valid(value) if isinstance(value, str) else value)
    return result


def _write_csv(table: "pd.DataFrame", path: Path) -> None:
    _sound(table).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")


def _write_jsonl(table: "pd.DataFrame", path: Path) -> None:
    columns = [str(name) for name in table.columns]
    with path.open("w", encoding="ascii", newline="\n") as file:
        for values in _sound(table).itertuples(index=False, name=None):
            row = dict(zip(columns, map(_json_value, values), strict=True))
            file.write(json.dumps(row, allow_nan=False) + "\n")


def _json_value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str | bool | int | float) and value == value else None


def _write_parquet(table: "pd.DataFrame", path: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackageError("pyarrow", "writing Parquet", "parquet") from error
    from importlib.metadata import version

    arrow = pa.Table.from_pandas(_sound(table), preserve_index=False)
    simulated = bool(table["simulated"].any())
    note = json.dumps({"version": version("memorydojo"), "simulated": simulated}).encode()
    pq.write_table(arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), _MARK: note}), path)
