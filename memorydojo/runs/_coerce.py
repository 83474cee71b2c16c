"""Columns of a session table as they come from files and other tools, in the one dtype that they have here."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types

Kind = Literal["text", "integer", "boolean"]
BoolArray = npt.NDArray[np.bool_]
Coerced = tuple["pd.Series[Any]", BoolArray]
"""The column in its dtype, and which rows hold a value that is none of its kind (their result means nothing)."""

_EXACT = 2.0**53
_BOOLEAN_WORDS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


def _text_dtype() -> Any:
    """The dtype of text: ``str`` in pandas 3, ``object`` before."""
    return pd.Series([""]).dtype


def coerce(values: "pd.Series[Any]", kind: Kind, *, nullable: bool) -> Coerced:
    """One column in its dtype.

    Text may be any text dtype, categorical, or whole numbers (``"7"`` comes back from a CSV file as 7). Integers may
    be integers, whole floats (a column with gaps comes back as floats) or text of them. Booleans may be booleans, the
    numbers 0 and 1, or the words true, false, 1 and 0 in any case, which is what CSV writers make of them.

    Args:
        values: The column.
        kind: What it has to hold.
        nullable: Whether nulls are allowed.

    Returns:
        The column as text, ``int64`` (``Int64`` if nullable) or ``bool`` (``boolean`` if nullable), and which rows
        are wrong, nulls that are not allowed among them.
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.dtype.categories.dtype)
    if _is_done(values, kind):
        wrong = np.zeros(len(values), dtype=bool)
        if kind == "text":
            return values, wrong if nullable else np.asarray(values.isna(), dtype=bool)
        if nullable:
            return values.astype("Int64" if kind == "integer" else "boolean"), wrong
        return values, wrong
    null = np.asarray(values.isna(), dtype=bool)
    result, wrong = _text(values, null) if kind == "text" else _number(values, null, kind, nullable=nullable)
    return result, wrong if nullable else wrong | null


def _is_done(values: "pd.Series[Any]", kind: Kind) -> bool:
    """Whether the dtype alone says that there is nothing wrong but perhaps a null in text."""
    if kind == "text":
        return isinstance(values.dtype, pd.StringDtype) and values.dtype == _text_dtype()
    return values.dtype == np.bool_ if kind == "boolean" else values.dtype == np.int64


def _text(values: "pd.Series[Any]", null: BoolArray) -> Coerced:
    if null.all():
        return pd.Series(np.full(len(values), None, dtype=object)).astype(_text_dtype()), np.zeros(len(values), bool)
    inferred = types.infer_dtype(values, skipna=True)
    if inferred == "string":
        return _as_text(values), np.zeros(len(values), bool)
    whole = inferred == "integer" and not types.is_bool_dtype(values.dtype)
    objects = values.to_numpy(dtype=object)
    fits = np.array([isinstance(value, str) or whole for value in objects], dtype=bool)
    as_text = [str(value) if good and not gap else None for value, good, gap in zip(objects, fits, null, strict=True)]
    return _as_text(pd.Series(as_text, dtype=object)), ~fits & ~null


def _as_text(values: "pd.Series[Any]") -> "pd.Series[Any]":
    """Texts in the dtype of text; where pyarrow backs that, texts with lone surrogates are kept as Python's own."""
    try:
        return values.astype(_text_dtype())
    except UnicodeEncodeError:
        return values.astype(pd.StringDtype("python", na_value=np.nan))


def _number(values: "pd.Series[Any]", null: BoolArray, kind: Kind, *, nullable: bool) -> Coerced:
    numbers, wrong = _floats(values, null, boolean=kind == "boolean")
    if kind == "boolean":
        wrong = wrong | (~null & (numbers != 0) & (numbers != 1))
    else:
        wrong = wrong | (~null & ((np.floor(numbers) != numbers) | (np.abs(numbers) > _EXACT)))
    numbers = np.where(null | wrong, 0, numbers)
    plain = pd.Series(numbers.astype(bool if kind == "boolean" else np.int64))
    return (plain.astype("boolean" if kind == "boolean" else "Int64").mask(null) if nullable else plain), wrong


def _floats(values: "pd.Series[Any]", null: BoolArray, *, boolean: bool) -> tuple[npt.NDArray[np.float64], BoolArray]:
    """Every value as a float (0 for nulls), and the values that are no number or, among integers, a boolean."""
    if types.is_numeric_dtype(values.dtype) and not types.is_complex_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=0.0) if null.any() else values.to_numpy(dtype=np.float64)
        mismatch = types.is_bool_dtype(values.dtype) and not boolean
        return numbers, np.full(len(values), mismatch) & ~null
    given = zip(values.to_numpy(dtype=object), null, strict=True)
    found = [0.0 if gap else _float(value, boolean=boolean) for value, gap in given]
    wrong = np.array([number is None for number in found], dtype=bool)
    return np.array([0.0 if number is None else number for number in found], dtype=np.float64), wrong


def _float(value: object, *, boolean: bool) -> float | None:
    if isinstance(value, bool | np.bool_):
        return float(value) if boolean else None
    if boolean and isinstance(value, str):
        return _BOOLEAN_WORDS.get(value.strip().lower())
    if isinstance(value, int | float | np.integer | np.floating | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None
