"""What installed packages add to MemoryDojo, by entry points.

An entry point names a thing as ``module:attribute``. It is found in every process that has the package installed, so a
name in a plan means the same in a spawned worker.
"""

import functools
import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from memorydojo.errors import InvalidInputError, MemoryDojoError


def installed(group: str, kind: str) -> Mapping[str, str]:
    """The names that installed packages give to things of a kind, and where each thing is.

    Args:
        group: The entry-point group, for example ``"memorydojo.adapters"``.
        kind: What the group holds, for errors: ``"memory adapter"``.

    Raises:
        InvalidInputError: Two installed packages claim the same name.
    """
    return _read(group, kind, tuple(sys.path))


@functools.lru_cache(maxsize=16)
def _read(group: str, kind: str, path: tuple[str, ...]) -> Mapping[str, str]:
    """Reading all installed packages takes several milliseconds, and every plan and run asks."""
    found: dict[str, str] = {}
    for point in entry_points(group=group):
        if found.setdefault(point.name, point.value) != point.value:
            raise InvalidInputError(
                f"two installed packages provide the {kind} {point.name!r}: "
                f"{found[point.name]} and {point.value}; uninstall one of them"
            )
    return found


def load_installed(kind: str, place: str) -> Any:
    """The thing at ``module:attribute``.

    Args:
        kind: What it is to be, for errors.
        place: Where it is.

    Raises:
        InvalidInputError: It cannot be imported.
        MemoryDojoError: Whatever its module raises on purpose.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except MemoryDojoError:
        raise
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"cannot load the {kind} {place!r}: {error}") from error
