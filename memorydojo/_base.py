"""The base class of everything that is saved or configured, and how a wrong value is told."""

import difflib
import operator
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, ValidationError

from memorydojo._display import plain
from memorydojo.errors import InvalidInputError

Place = tuple[str | int, ...]
_MOST = 5

#: What pydantic says in its own terms, by its type of error.
_WORDS = {
    "missing": "it is missing",
    "string_too_short": "it is empty",
    "too_short": "it is empty; give at least one",
    "frozen_instance": "it cannot be changed; make another one with the value that you want",
    "model_type": "it takes a table of fields",
    "model_attributes_type": "it takes a table of fields",
    "dict_type": "it takes a table of fields",
    "mapping_type": "it takes a table of fields",
    "tuple_type": "it takes a list",
    "list_type": "it takes a list",
    "frozen_set_type": "it takes a list",
    "set_type": "it takes a list",
    "string_type": "it takes a text",
    "string_unicode": "it takes a text, without half a character (a lone surrogate)",
    "bool_type": "it takes true or false",
    "bool_parsing": "it takes true or false",
    "int_type": "it takes a whole number",
    "int_parsing": "it takes a whole number",
    "int_from_float": "it takes a whole number",
    "float_type": "it takes a number",
    "float_parsing": "it takes a number",
    "finite_number": "it takes a number that is finite",
}
_BOUNDS = {
    "literal_error": "it takes {expected}",
    "greater_than_equal": "it takes {ge} or more",
    "greater_than": "it takes more than {gt}",
    "less_than_equal": "it takes {le} or less",
    "less_than": "it takes less than {lt}",
}
"""The same, with what pydantic says of the context; none of it is of the value that was given."""


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields.

    Made with its name, as users do it, or changed, it tells what is wrong by an `InvalidInputError` that names the
    field. What reads files calls ``model_validate``, which raises pydantic's error, and says which file it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInputError(f"{type(self).__name__}: {problems(error, type(self), data)}") from None

    # Without this mark pydantic would call it for every model inside another one that it reads, which takes long.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    if not TYPE_CHECKING:  # type checkers know by themselves that nothing can be set

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                super().__setattr__(name, value)
            except ValidationError as error:
                raise InvalidInputError(f"{type(self).__name__}: {problems(error, type(self))}") from None


def reason(error: ValidationError) -> str:
    """What is wrong first, on one line, without the (perhaps hostile) text around it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return plain(f"{where}: {first['msg']}" if where else first["msg"], 300)


def problems(error: ValidationError, model: type[BaseModel], data: Any = None) -> str:
    """All that is wrong with what a user gave, each with its field and the nearest known name; no value is repeated.

    Args:
        error: What pydantic says.
        model: The model that was to be made.
        data: What it was made from, so that places are named as they stand there.
    """
    found = [f"{shown(place)}: {what}" if place else what for place, what in each_problem(error, model, data)]
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def each_problem(error: ValidationError, model: type[BaseModel], data: Any = None) -> Iterator[tuple[Place, str]]:
    """Each place that is wrong, once, and what is wrong there."""
    found: dict[Place, str] = {}
    for one in error.errors(include_url=False, include_input=False):
        # Of the alternatives of a union pydantic reports each with a part of its own in the location.
        place = in_data(one["loc"], data) if data is not None else tuple(one["loc"])
        if one["type"] in ("missing", "extra_forbidden"):
            place = (*in_data(one["loc"][:-1], data), one["loc"][-1]) if data is not None else tuple(one["loc"])
        found.setdefault(place, plain(_said(one, place, model), 300))
    for place, what in found.items():
        # What is wrong deeper inside says more than that the whole is nothing else either.
        if not any(len(other) > len(place) and other[: len(place)] == place for other in found):
            yield place, what


def _said(one: Any, place: Place, model: type[BaseModel]) -> str:
    kind = str(one["type"])
    if kind == "extra_forbidden":
        names = _fields_at(model, place)
        near = difflib.get_close_matches(str(place[-1]), names, n=2, cutoff=0.5)
        if not names:
            return "there is no such field, as there are none at all"
        known = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(names)}"
        return f"there is no such field; {known}"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**one["ctx"])
    return _WORDS.get(kind) or str(one["msg"]).removeprefix("Value error, ")


def shown(place: Sequence[str | int]) -> str:
    """A place as people write it, counted from 1: ``memories[2].settings.top_k``."""
    text = ""
    for part in place:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return plain(text, 200)


def inside(data: Any, place: Place) -> tuple[int, Any]:
    """How many parts of a place exist in the data, and what stands at the last of them."""
    for depth, part in enumerate(place):
        has = (
            part in data if isinstance(data, Mapping) else isinstance(part, int) and is_list(data) and part < len(data)
        )
        if not has:
            return depth, data
        data = data[part]
    return len(place), data


def in_data(place: Sequence[str | int], data: Any) -> Place:
    """The parts of a pydantic location that the data has; names of types and validators fall away."""
    kept: list[str | int] = []
    for part in place:
        found, inner = inside(data, (part,))
        if found:
            kept.append(part)
            data = inner
    return tuple(kept)


def is_list(data: Any) -> bool:
    """Whether data is a list or the like, and no text."""
    return isinstance(data, Sequence) and not isinstance(data, str)


def _fields_at(model: type[BaseModel], place: Place) -> list[str]:
    """The fields that there are where a place is."""
    models: list[type[BaseModel]] = [model]
    for part in place[:-1]:
        if isinstance(part, str):
            # A part that is no field is a key of a mapping: the models are those of its values.
            fields = [m.model_fields[part].annotation for m in models if part in m.model_fields]
            models = [inner for field in fields for inner in _models_in(field)] or models
    return list(dict.fromkeys(name for m in models for name in m.model_fields))


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in typing.get_args(annotation) for found in _models_in(inner)]


def _whole(value: object) -> object:
    # NumPy's integers are whole numbers too; True and "3" are none.
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value


#: A whole number; no text and no truth value is taken for one.
WholeNumber = Annotated[int, Strict(), BeforeValidator(_whole)]
