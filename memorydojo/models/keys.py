"""API keys: from the environment or given, never saved, and removed from every text that might carry them."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from pydantic import Field, SecretStr

from memorydojo._base import Frozen
from memorydojo.errors import InvalidInputError
from memorydojo.models.config import Backend

REDACTED = "[redacted]"
_LONG = 16


class Keys(Frozen):
    """Keys that are not in the environment, by the name of the variable that would hold them.

    They are left out of every serialized form.
    """

    values: Mapping[str, SecretStr] = Field(default={}, exclude=True, repr=False)

    def find(self, backend: Backend) -> str | None:
        """The key of a backend, or None if it is neither given nor in the environment.

        Raises:
            InvalidInputError: It holds characters that no header can carry.
        """
        variable = backend.key_variable
        if variable is None:
            return None
        given = self.values.get(variable)
        key = (given.get_secret_value() if given is not None else os.environ.get(variable, "")).strip()
        if not (key.isascii() and key.isprintable()):
            raise InvalidInputError(f"the key in {variable} holds characters that no key has; set it anew")
        return key or None

    def digest(self) -> str:
        """Tells these keys from others, also in another process, and tells nobody what they are."""
        known = sorted((name, key.get_secret_value()) for name, key in self.values.items())
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()


class Redactor:
    """Removes known secrets from texts.

    Args:
        secrets: What must never be seen.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Knows one more secret, also in the form that it has within addresses."""
        found = {*self._secrets, secret, quote(secret, safe="")} - {""}
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text of an error without any secret."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def answer(self, body: bytes) -> bytes:
        """A model's answer without any long secret.

        Short ones are words that servers without keys are given, such as ``EMPTY``; a model may well say them.
        """
        for secret in self._secrets:
            if len(secret) >= _LONG and secret.encode() in body:
                body = body.replace(secret.encode(), REDACTED.encode())
        return body
