"""The file that a plan was read from: its data, and the lines at which its fields stand."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from memorydojo._base import Place, each_problem, inside, is_list, shown
from memorydojo._display import plain
from memorydojo.errors import InvalidInputError

_SUFFIXES = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True)
class Source:
    """Where a plan comes from.

    Attributes:
        data: What it says.
        name: The file as it may be printed; None for a plan that was made in Python.
        folder: What relative paths are relative to; None for the current directory.
        text: The file's text.
        form: The form of the text.
    """

    data: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    folder: Path | None = None
    text: str = ""
    form: Literal["toml", "yaml"] = "toml"

    def path(self, relative: str) -> Path:
        """A path of the plan."""
        return (self.folder or Path()) / relative

    def where(self, place: Place) -> str:
        """File, line and field of a place in the plan, as far as they are known; for messages."""
        place = _pruned(place, self.data) if self.data else place
        line = self.line(place)
        parts = [self.name or "", f"line {line}" if line is not None else "", shown(place)]
        return ", ".join(part for part in parts if part)

    def line(self, place: Place) -> int | None:
        """The line at which the innermost part of a place begins that has one."""
        if not self.text:
            return None
        return _yaml_line(self.text, place) if self.form == "yaml" else _toml_line(self.text, place)

    def explain(self, error: ValidationError, model: type[BaseModel]) -> str:
        """All problems of a plan, each with its place, and with the nearest name where one is unknown."""
        return "; ".join(
            f"{self.where(place) or 'the plan'}: {what}" for place, what in each_problem(error, model, self.data)
        )


def read(path: Path) -> Source:
    """Reads a TOML or YAML file.

    Raises:
        InvalidInputError: It cannot be read, has another suffix, or is no table.
    """
    name = plain(str(path))
    form = _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise InvalidInputError(f"{name}: a plan is a file that ends in {', '.join(_SUFFIXES)}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"there is no file {name}; the experiments that ship are run with --experiment, "
            "see: memorydojo experiments list"
        ) from error
    except OSError as error:
        raise InvalidInputError(f"cannot read the plan {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is no UTF-8 text, so it is no plan") from error
    return parse(text, form="yaml" if form == "yaml" else "toml", name=name, folder=path.parent)


def parse(text: str, *, form: Literal["toml", "yaml"], name: str, folder: Path | None) -> Source:
    """Reads the text of a file.

    Raises:
        InvalidInputError: It is not of this form, or no table.
    """
    try:
        data = _yaml(text) if form == "yaml" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{name} is no {form.upper()}: {plain(str(error), 300)}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise InvalidInputError(f"{name} holds no table of fields; see docs/sweeps.md")
    return Source(data=data, name=name, folder=folder, text=text, form=form)


def _yaml(text: str) -> Any:
    import yaml

    try:
        _no_key_twice(yaml.compose(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def _no_key_twice(node: Any, seen_before: set[int] | None = None) -> None:
    """YAML takes the last of two equal keys, and half of what was asked for would be lost without a word."""
    import yaml

    # An alias stands for the same node; nine lines of aliases of aliases would be walked for hours.
    visited = set[int]() if seen_before is None else seen_before
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise ValueError(f"line {key.start_mark.line + 1}: the key {key.value!r} stands there twice")
            seen.add(str(key.value))
            _no_key_twice(value, visited)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _no_key_twice(value, visited)


def _yaml_line(text: str, place: Place) -> int | None:
    import yaml

    node, line = yaml.compose(text, Loader=yaml.SafeLoader), None
    for part in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == part), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def _toml_line(text: str, place: Place) -> int | None:
    """The line at which the statement begins that brings a place into the table.

    The shortest beginning of the file that is TOML and has the place ends with that statement; the one before it that
    is TOML ends just before it.
    """
    lines = text.splitlines()
    whole, _ = inside(tomllib.loads(text), place)
    if whole == 0:
        return None
    before = 0
    for count in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("\n".join(lines[:count]))
        except ValueError:
            continue
        if inside(data, place)[0] >= whole:
            return before + 1
        before = count
    return None


def _pruned(place: Place, data: Any) -> Place:
    """A place without what the data writes shorter: one value for a list, a name for a table."""
    kept: list[str | int] = []
    for part in place:
        if isinstance(part, int) and not is_list(data):
            continue
        if isinstance(part, str) and not isinstance(data, Mapping):
            break
        kept.append(part)
        found, inner = inside(data, (part,))
        data = inner if found else {}
    return tuple(kept)
