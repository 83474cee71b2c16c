"""Payloads, and where in a trajectory a payload enters."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, field_validator

from memorydojo._base import Frozen, WholeNumber, problems
from memorydojo._display import plain
from memorydojo.errors import InvalidInputError
from memorydojo.view import View, Viewed, fields

PAYLOAD_FORMAT: Literal["memorydojo-payload"] = "memorydojo-payload"


def _session(value: object, check: ValidatorFunctionWrapHandler) -> object:
    try:
        return check(value)
    except ValidationError:
        raise ValueError("it takes 'first', 'middle' or the number of a session") from None


InsertionSession = Annotated[Literal["first", "middle"] | WholeNumber, WrapValidator(_session)]
"""Where a payload enters: by a word or by the number of the session."""


class Payload(Viewed, Frozen):
    """A poison text (p in the paper), written to make an agent execute an objective.

    Attributes:
        id: Short name, unique for its objective.
        objective: Id of the objective that it encodes.
        text: The text, appended word for word to one tool observation.
        source: Where it comes from: ``"seed"``, ``"optimized"`` or ``"user"``.

    Raises:
        InvalidInputError: A field is missing, unknown, blank or of another type.
    """

    id: str = Field(min_length=1)
    objective: str
    text: str = Field(min_length=1)
    source: Literal["seed", "optimized", "user"] = "user"

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("it is blank; give the words that are to enter the observation")
        return text

    @property
    def sha256(self) -> str:
        """Hash of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def view(self) -> View:
        """Its text, and what it is for."""
        rows = [("objective", self.objective), ("source", self.source), ("text", self.text)]
        return fields(f"Payload {self.id}", rows)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, objective: str | None = None) -> Self:
        """The payload in a file.

        A file that ends in ``.json`` holds an object with ``text`` and maybe ``id``, ``objective``, ``source`` and
        ``provenance``, as `to_file` writes it. Any other file is the text itself. A file without an id is known by
        its name.

        Args:
            path: The file.
            objective: The objective that it is wanted for; what states none of its own needs it.

        Raises:
            InvalidInputError: The file cannot be read, is empty or no payload, or is of another objective.
        """
        file = Path(path)
        shown = f"the payload file {plain(str(file))}"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"cannot read {shown}: {error}") from error
        if not text.strip():
            raise InvalidInputError(f"{shown} is empty")
        suffix = file.suffix.lower()
        if suffix in (".toml", ".yaml", ".yml"):
            raise InvalidInputError(f"{shown} ends in {suffix}; a table with a payload ends in .json, its text in .txt")
        try:
            data = json.loads(text) if suffix == ".json" else {"text": text.strip()}
            found = _PayloadFile.model_validate(data)
        except ValidationError as error:
            raise InvalidInputError(f"{shown} is no payload: {problems(error, _PayloadFile, data)}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"{shown} is no JSON: {plain(str(error), 200)}") from error
        if found.objective is None and objective is None:
            raise InvalidInputError(f"{shown} names no objective; say which one it is for")
        if None not in (objective, found.objective) and objective != found.objective:
            raise InvalidInputError(
                f"{shown} is written for the objective {plain(str(found.objective))!r}, not for "
                f"{plain(str(objective))!r}; use one of them for both"
            )
        return cls(
            id=found.id or file.stem,
            objective=str(found.objective or objective),
            text=found.text,
            source=found.source,
        )

    def to_file(self, path: str | os.PathLike[str], *, provenance: Mapping[str, Any] | None = None) -> Path:
        """Writes the payload as JSON, for `from_file`; its directory is made, an existing file replaced as a whole.

        Args:
            path: The file; its name ends in ``.json``.
            provenance: Where it comes from, as JSON data; kept in the file, never part of a run.

        Raises:
            InvalidInputError: The name does not end in ``.json``.
            SavedRunError: The file cannot be written.
        """
        from memorydojo.runs._files import saving, to_json, write_atomic

        file = Path(path)
        if file.suffix.lower() != ".json":
            raise InvalidInputError(f"a payload is written to a file that ends in .json, not to {plain(str(file))}")
        held = _PayloadFile(
            id=self.id,
            objective=self.objective,
            text=self.text,
            source=self.source,
            provenance=dict(provenance or {}),
        )
        with saving(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(json.loads(to_json(held)), indent=2) + "\n")
        return file


class _PayloadFile(Frozen):
    """What a JSON file of a payload holds."""

    format: Literal["memorydojo-payload"] = PAYLOAD_FORMAT
    schema_version: Literal[1] = 1
    id: str | None = Field(default=None, min_length=1)
    objective: str | None = None
    text: str = Field(min_length=1)
    source: Literal["seed", "optimized", "user"] = "user"
    provenance: dict[str, Any] = {}


class Attack(Viewed, Frozen):
    """One payload and its single insertion point (paper, section 3).

    Attributes:
        objective: Id of the objective.
        payload: A payload, or the id of one that ships for the objective (``"seed-1"``, ``"seed-2"``).
        session: The insertion session t0: ``"first"``, ``"middle"`` (half of T, rounded up, and before the last),
            or a 1-based number; always smaller than T.
        observation: Which successful, outermost observation of that session carries the payload, 1-based.

    Raises:
        InvalidInputError: A field is missing, unknown or of another type.
    """

    objective: str
    payload: Payload | str
    session: InsertionSession = "first"
    observation: WholeNumber = Field(default=1, ge=1)

    def view(self) -> View:
        """The objective, the payload, and where it enters."""
        payload = self.payload
        session = f"the {self.session}" if isinstance(self.session, str) else self.session
        rows = [
            ("objective", self.objective),
            ("payload", payload.id if isinstance(payload, Payload) else payload),
            ("text", payload.text if isinstance(payload, Payload) else None),
            ("enters", f"session: {session}; observation: {self.observation}"),
        ]
        return fields("Attack", rows)

    def insertion_session(self, n_sessions: int) -> int:
        """The 1-based insertion session in a trajectory of ``n_sessions`` task sessions.

        Raises:
            InvalidInputError: No session would follow the insertion session, or there is no such session.
        """
        if self.session == "first":
            number = 1
        elif self.session == "middle":
            number = min((n_sessions + 1) // 2, max(n_sessions - 1, 1))
        else:
            number = self.session
        if not 1 <= number < n_sessions:
            raise InvalidInputError(
                f"the insertion session is {number}, but the trajectory has {n_sessions} sessions and at least one "
                f"must follow the insertion; use a session from 1 to {n_sessions - 1}"
                if n_sessions > 1
                else "a trajectory of one session cannot be attacked: at least one session must follow the insertion"
            )
        return number
