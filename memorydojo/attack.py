"""Payloads, and where in a trajectory a payload enters."""

import hashlib
from typing import Literal

from pydantic import Field, field_validator

from memorydojo._base import UserInput, WholeNumber
from memorydojo.errors import InvalidInputError


class Payload(UserInput):
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


class Attack(UserInput):
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
    session: Literal["first", "middle"] | WholeNumber = "first"
    observation: WholeNumber = Field(default=1, ge=1)

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
