"""Loading what a user names as ``module:function``."""

import importlib
from collections.abc import Callable
from typing import Any

from memorydojo.errors import InvalidInputError


def load_function(kind: str, place: str) -> Callable[..., Any]:
    """The function at ``module:function``.

    Args:
        kind: What it is to be, for the error.
        place: Where it is.

    Raises:
        InvalidInputError: There is none.
    """
    module, _, function = place.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"cannot load the {kind} {place!r}: {error}") from error
    if not callable(found):
        raise InvalidInputError(f"the {kind} {place!r} is no function; see docs/models.md for what it has to be")
    return found  # type: ignore[no-any-return]
