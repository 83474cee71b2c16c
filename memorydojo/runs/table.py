"""The session table: one row for each planned task session of each run. Every metric is a function of it.

It holds no texts and no objects, so that anything can make one: saved runs, another tool, a spreadsheet. A session that
did not happen is a row too, with every indicator False; that is why denominators never shrink.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from memorydojo.errors import InvalidInputError
from memorydojo.runs._coerce import BoolArray, Kind, coerce

MET_PREFIX = "met_"
"""``met_<objective id>``: whether that objective's predicate holds in the session, in clean runs too."""


@dataclass(frozen=True)
class Column:
    """A column that a session table must or may have.

    Attributes:
        name: Its name.
        kind: ``"text"`` (``str`` in pandas 3, ``object`` before), ``"integer"`` (``int64``, or ``Int64`` if nullable)
            or ``"boolean"`` (``bool``, or ``boolean`` if nullable).
        meaning: What a value says.
        nullable: Whether a value may be missing.
        required: Whether a table without it is refused.
        per_run: Whether all rows of a run hold the same value.
    """

    name: str
    kind: Kind
    meaning: str
    nullable: bool = False
    required: bool = True
    per_run: bool = False


SESSION_TABLE: tuple[Column, ...] = (
    Column("run_id", "text", "the run"),
    Column("session", "integer", "t: 1-based number among the planned task sessions of the run"),
    Column("n_sessions", "integer", "T: planned task sessions of the run", per_run=True),
    Column("insertion_session", "integer", "t0, below T; null in a run without attack", nullable=True, per_run=True),
    Column("domain", "text", "domain of the session's task, without the variant of an installed suite"),
    Column("objective_domain", "text", "domain of the attack objective, if it has one", nullable=True, per_run=True),
    Column("inserted", "boolean", "s: after the insertion write, memory holds a payload-bearing entry", per_run=True),
    Column("retrieved", "boolean", "u: at least one delivered item bears the payload; False up to and including t0"),
    Column("retrieved_original", "boolean", "o: such an item belongs to an original-poison entry"),
    Column("retrieved_descendant", "boolean", "d: such an item belongs to any other entry"),
    Column("objective_met", "boolean", "z: the objective's predicate holds in this session"),
    Column("utility", "boolean", "the task's own success check"),
    Column("completed", "boolean", "the session ran to its end"),
    Column("memory", "text", "memory system", nullable=True, required=False, per_run=True),
    Column("model", "text", "model of the agent", nullable=True, required=False, per_run=True),
    Column("collection", "text", "collection of the trajectory", nullable=True, required=False, per_run=True),
    Column("trajectory_id", "text", "trajectory, unique in its collection; the cluster", required=False, per_run=True),
    Column("objective", "text", "id of the attack objective", nullable=True, required=False, per_run=True),
    Column("payload_id", "text", "id of the payload", nullable=True, required=False, per_run=True),
    Column("defense", "text", "defense in force", nullable=True, required=False, per_run=True),
    Column("simulated", "boolean", "the offline simulator took part in the run", required=False, per_run=True),
    Column(
        "insertion_unjudged",
        "boolean",
        "inserted is False, but the judge gave no usable answer about an entry of the insertion write",
        required=False,
        per_run=True,
    ),
    Column("retrieval_unjudged", "boolean", "retrieved is False, but the same of a delivered item", required=False),
    Column("origin_unjudged", "boolean", "original or descendant could be otherwise, for the same", required=False),
    Column("objective_unjudged", "boolean", "objective_met is False for want of a usable answer", required=False),
    Column("memory_unjudged", "boolean", "memory_correct is False for want of a usable verdict", required=False),
    Column(
        "memory_correct",
        "boolean",
        "the run's held-out question was answered right; null if it has none, False if it was never answered",
        nullable=True,
        required=False,
        per_run=True,
    ),
)
"""The columns that have a meaning here. Any further column is a key to group by, except ``met_<objective id>``: these
are nullable booleans, null in all rows of a run in which that objective was not evaluated."""

SAVED_RUNS: tuple[Column, ...] = (
    Column("condition", "text", "poisoned or clean", required=False),
    Column("payload_source", "text", "seed, optimized or user", nullable=True, required=False),
    Column("payload_sha256", "text", "hash of the payload's text", nullable=True, required=False),
    Column("payload_inserted", "boolean", "the payload entered an observation", required=False),
    Column("insertion_observation", "integer", "the observation that was to carry it", nullable=True, required=False),
    Column("insertion_label", "text", "strongest label after the insertion write", nullable=True, required=False),
    Column("seed", "integer", "seed of the simulator", required=False),
    Column("judge", "text", "whose labels, and of which version", required=False),
    Column("task_id", "text", "task template", required=False),
    Column("flags", "text", "flags of the planned session, joined by commas", required=False),
    Column("failed_stage", "text", "stage at which the session failed", nullable=True, required=False),
    Column("n_items", "integer", "delivered memory items", required=False),
    Column("context_chars", "integer", "their length in characters", required=False),
    Column("failed_check", "text", "earliest check that the payload failed", nullable=True, required=False),
    Column("retrieved_routes", "text", "routes that delivered the payload, joined by commas", required=False),
    Column("retrieved_kinds", "text", "kinds of the entries that bore it, joined by commas", required=False),
    Column("question_type", "text", "type of the held-out question", nullable=True, required=False),
    Column("history_id", "text", "history before the first task", nullable=True, required=False),
    Column("history_sessions", "integer", "its recorded conversations", required=False),
    Column("history_failed", "integer", "of these, not taken in by memory", required=False),
)
"""Further columns of the table that saved runs make. A table of another origin may use these names as it likes."""

_RETRIEVED = ("retrieved", "retrieved_original", "retrieved_descendant")
_GAPS = ["", "NaN", "nan", "NA", "<NA>", "None", "null", "NULL"]
_INDICATORS = "a session that did not happen is a row with every indicator False"


def in_saved_dtypes(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the further columns of saved runs in their dtypes, where their values fit; the rest as it is.

    Files do not keep dtypes, or, as CSV does, take an empty text for a null: so a table is the same before and after.
    """
    result = table.copy()
    for column in SAVED_RUNS:
        if column.name in result.columns:
            given = result[column.name]
            if column.kind == "text":
                if not all(isinstance(value, str) for value in given.dropna()):
                    continue
                given = given if column.nullable else given.astype(object).fillna("")
            values, wrong = coerce(given, column.kind, nullable=column.nullable)
            if not wrong.any():
                result[column.name] = values
    return result


def met_columns(table: pd.DataFrame) -> dict[str, str]:
    """The ``met_<objective id>`` columns of a table, by objective id, in the table's order."""
    return {name.removeprefix(MET_PREFIX): name for name in map(str, table.columns) if name.startswith(MET_PREFIX)}


def empty_session_table() -> pd.DataFrame:
    """A table of no runs that has every declared column in its dtype."""
    none = pd.Series([], dtype=object)
    return pd.DataFrame({c.name: coerce(none, c.kind, nullable=c.nullable)[0] for c in SESSION_TABLE})


def check_session_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every declared column in its dtype, if it is a session table.

    Accepts what comes back from CSV, JSON and Parquet files: whole floats or digits for integers; 0/1, ``"True"`` and
    ``"false"`` (any case) for booleans; whole numbers for text. Further columns stay as they are. The order of rows and
    columns is kept, the index is replaced, and the table that was given is not changed.

    Args:
        table: Rows of any number of runs, in any order.

    Raises:
        InvalidInputError: A column is missing or holds values of another kind, or the rows contradict each other. The
            message names run, session, column and rule, and what to do.
    """
    return check_with_runs(table)[0]


@dataclass(frozen=True)
class RunIndex:
    """Which run each row belongs to.

    Attributes:
        run: The number of each row's run.
        first: The first row of each run.
    """

    run: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]

    def varies(self, values: "pd.Series[Any]") -> BoolArray:
        """In which rows a column differs from the first row of the same run; nulls equal each other."""
        of_first = self.first[self.run]
        if isinstance(values.dtype, np.dtype | pd.StringDtype):
            # Comparing is several times faster than numbering the values, but it takes nulls for different ones.
            plain = values.to_numpy() if isinstance(values.dtype, np.dtype) else values.to_numpy(dtype=object)
            different = np.asarray(plain[of_first] != plain, dtype=bool)
            if different.any():
                null = np.asarray(values.isna(), dtype=bool)
                different &= ~(null & null[of_first])
            return different
        codes, _ = pd.factorize(values)
        return np.asarray(codes[of_first] != codes, dtype=bool)


def check_with_runs(table: pd.DataFrame) -> tuple[pd.DataFrame, RunIndex]:
    """As ``check_session_table``, and the runs of its rows, which the check finds anyway."""
    _check_columns(table)
    checked = table.reset_index(drop=True)
    for column in _declared(checked):
        values, wrong = coerce(checked[column.name], column.kind, nullable=column.nullable)
        if wrong.any():
            _refuse_value(checked, column, int(wrong.argmax()))
        checked[column.name] = values
    run, runs = pd.factorize(checked["run_id"])
    first = np.empty(len(runs), dtype=np.intp)
    first[run[::-1]] = np.arange(len(checked))[::-1]
    index = RunIndex(run, first)
    _Invariants(checked, index).check()
    return checked, index


def _declared(table: pd.DataFrame) -> list[Column]:
    """The specification of every column of this table that has one."""
    met = [
        Column(name, "boolean", f"objective {objective!r} is met", nullable=True, required=False)
        for objective, name in met_columns(table).items()
    ]
    return [column for column in SESSION_TABLE if column.name in table.columns] + met


def _check_columns(table: pd.DataFrame) -> None:
    names = list(table.columns)
    doubled = sorted({str(name) for name in names if names.count(name) > 1})
    if doubled:
        raise InvalidInputError(f"the session table has more than one column named {', '.join(map(repr, doubled))}")
    missing = [column for column in SESSION_TABLE if column.required and column.name not in names]
    if missing:
        wanted = "; ".join(f"{column.name!r} ({column.kind}: {column.meaning})" for column in missing)
        raise InvalidInputError(f"the session table lacks {len(missing)} columns: {wanted}. Add them")


def _place(table: pd.DataFrame, row: int) -> str:
    def shown(value: Any) -> str:
        return repr(value.item() if isinstance(value, np.generic) else value)[:200]

    return f"run {shown(table['run_id'].iloc[row])}, session {shown(table['session'].iloc[row])}"


def _refuse_value(table: pd.DataFrame, column: Column, row: int) -> None:
    value = table[column.name].iloc[row]
    expected = {"text": "text", "integer": "a whole number", "boolean": "True or False"}[column.kind]
    raise InvalidInputError(
        f"session table, {_place(table, row)}: column {column.name!r} holds "
        f"{'no value' if pd.api.types.is_scalar(value) and pd.isna(value) else repr(value)[:200]}, but it must be "
        f"{expected}{' or null' if column.nullable else ''} ({column.meaning}). Correct or fill this column"
    )


class _Invariants:
    """The rules that tie rows and columns together, on whole columns at a time."""

    def __init__(self, table: pd.DataFrame, index: RunIndex) -> None:
        self.table, self.index = table, index
        self.run, self.first = index.run, index.first
        self.session = table["session"].to_numpy()
        self.planned = table["n_sessions"].to_numpy()

    def check(self) -> None:
        self._numbers()
        self._constants()
        self._one_row_each()
        self._insertion()
        self._retrieval()
        self._objective()

    def refuse(self, broken: BoolArray, column: str, rule: str, remedy: str) -> None:
        """Raises for the first row that breaks a rule, if one does."""
        if broken.any():
            row = int(broken.argmax())
            more = int(broken.sum()) - 1
            raise InvalidInputError(
                f"session table, {_place(self.table, row)}: column {column!r}: {rule}"
                f"{f' (and {more} more rows)' if more else ''}. {remedy[:1].upper()}{remedy[1:]}"
            )

    def _numbers(self) -> None:
        outside = (self.session < 1) | (self.session > self.planned)
        self.refuse(outside, "session", "it must be from 1 to n_sessions", "history sessions have no row here")

    def _constants(self) -> None:
        columns = [(column.name, False) for column in _declared(self.table) if column.per_run]
        columns += [(name, True) for name in met_columns(self.table).values()]
        for name, only_nullness in columns:
            values = self.table[name]
            differs = self.index.varies(values.isna() if only_nullness else values)
            rule = "it is null in some rows of the run only" if only_nullness else "it differs within the run"
            self.refuse(differs, name, rule, "all rows of one run_id must belong to one run")

    def _one_row_each(self) -> None:
        rows = np.bincount(self.run, minlength=len(self.first))
        planned = self.planned[self.first]
        offset = np.cumsum(rows) - rows
        # Within its own run a session number is at most n_sessions; beyond the rows there are, another one is missing.
        within = self.session <= rows[self.run]
        slot = (offset[self.run] + self.session - 1)[within]
        seen = np.bincount(slot, minlength=len(self.table))
        repeated = np.zeros(len(self.table), dtype=bool)
        repeated[within] = seen[slot] > 1
        self.refuse(repeated, "session", "this session has more than one row", "keep one row for each session of a run")
        short = rows != planned
        if short.any():
            code = int(short.argmax())
            have = set(self.session[self.run == code].tolist())
            missing = next(number for number in range(1, int(planned[code]) + 1) if number not in have)
            raise InvalidInputError(
                f"session table, run {self.table['run_id'].iloc[self.first[code]]!r}: {int(planned[code])} sessions "
                f"are planned (n_sessions), but session {missing} has no row. Add it: {_INDICATORS}"
            )

    def _insertion(self) -> None:
        column = self.table["insertion_session"]
        self.insertion = column.fillna(0).to_numpy(dtype=np.int64)
        self.attacked = np.asarray(column.notna(), dtype=bool)
        wrong = self.attacked & ((self.insertion < 1) | (self.insertion >= self.planned))
        rule = "it must be at least 1 and less than n_sessions: at least one session has to follow the insertion"
        self.refuse(wrong, "insertion_session", rule, "leave it null in a run without attack")
        inserted = self.table["inserted"].to_numpy() & ~self.attacked
        rule = "it is True in a run without attack (insertion_session is null)"
        self.refuse(inserted, "inserted", rule, "set it to False, or give the insertion session")

    def _retrieval(self) -> None:
        early = self.session <= self.insertion
        for name in _RETRIEVED:
            values = self.table[name].to_numpy()
            rule = "it is True in a run without attack (insertion_session is null)"
            self.refuse(values & ~self.attacked, name, rule, "set it to False, or give the insertion session")
            rule = "it is True at or before the insertion session"
            self.refuse(values & early, name, rule, "a payload cannot be retrieved before it was written")
        either = self.table["retrieved_original"].to_numpy() | self.table["retrieved_descendant"].to_numpy()
        rule = "it must be True exactly if retrieved_original or retrieved_descendant is"
        self.refuse(self.table["retrieved"].to_numpy() != either, "retrieved", rule, "derive it from the two")

    def _objective(self) -> None:
        """In an attacked run, the indicator agrees with the predicate of the objective that the run names."""
        if "objective" not in self.table.columns:
            return
        met = self.table["objective_met"].to_numpy()
        for objective, name in met_columns(self.table).items():
            predicate = self.table[name]
            named = self.attacked & np.asarray(self.table["objective"] == objective, dtype=bool)
            differs = (
                named
                & np.asarray(predicate.notna(), dtype=bool)
                & (predicate.fillna(False).to_numpy(dtype=bool) != met)
            )
            rule = f"it differs from {name!r}, though the run's objective is {objective!r}"
            self.refuse(differs, "objective_met", rule, "both are the same predicate")


def read_session_table(path: Path) -> pd.DataFrame:
    """A session table from a file: ``.csv``, ``.json`` (a list of rows), ``.jsonl`` or ``.parquet``.

    In a CSV file an empty field is null, in text columns nothing else is: a defense named ``None`` stays one.

    Raises:
        InvalidInputError: The file has another suffix, cannot be read, or is no session table.
    """
    readers = {".csv": _read_csv, ".json": _read_json, ".jsonl": _read_json, ".parquet": _read_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InvalidInputError(f"{str(path)!r} is no session table: use a file that ends in {', '.join(readers)}")
    try:
        table = reader(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read the session table {str(path)!r}: {error}") from error
    try:
        return in_saved_dtypes(check_session_table(table))
    except InvalidInputError as error:
        raise InvalidInputError(f"{str(path)!r}: {error}") from error


def _read_csv(path: Path) -> pd.DataFrame:
    header = pd.read_csv(path, nrows=0)
    kinds = {column.name: column.kind for column in _declared(header)}
    text = {name: str for name, kind in kinds.items() if kind == "text"}
    nulls = {name: _GAPS if kinds.get(name, "text") != "text" else [""] for name in map(str, header.columns)}
    return pd.read_csv(path, dtype=text, keep_default_na=False, na_values=nulls, low_memory=False)


def _read_json(path: Path) -> pd.DataFrame:
    # Not by pandas.read_json, which turns text that looks like a number or a date into one.
    text = path.read_text(encoding="utf-8")
    lines = path.suffix.lower() == ".jsonl"
    # Only newlines end a line of JSON: str.splitlines also splits at U+2028, which may stand in a text.
    rows = [json.loads(line) for line in text.split("\n") if line.strip()] if lines else json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(f"{str(path)!r} holds no list of rows; write each row as an object, column by column")
    return pd.DataFrame(rows)


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise InvalidInputError(
            f"reading {str(path)!r} needs the package pyarrow, which is not installed. "
            "Install it with: pip install 'memorydojo[parquet]'; or save the table as CSV"
        ) from error
