"""Loading what a user names as ``module:function``."""

from collections.abc import Callable
from typing import Any

from memorydojo._installed import load_installed
from memorydojo.errors import InvalidInputError


def load_function(kind: str, place: str) -> Callable[..., Any]:
    """The function at ``module:function``.

    Args:
        kind: What it is to be, for the error.
        place: Where it is.

    Raises:
        InvalidInputError: There is none.
    """
    found = load_installed(kind, place)
    if not callable(found):
        raise InvalidInputError(f"the {kind} {place!r} is no function; see docs/models.md for what it has to be")
    return found  # type: ignore[no-any-return]
