"""How commands print views."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memorydojo.view import View

_WIDTH = 120


def print_view(view: "View", *, width: int = _WIDTH) -> None:
    """Prints a view to the standard output.

    Args:
        view: What to print.
        width: The width of lines where there is no terminal.
    """
    from rich.console import Console

    # Nothing of the data is markup, an emoji code or a thing to colour; outside a terminal lines have a fixed width.
    shown = None if sys.stdout.isatty() else width
    view.print_to(Console(file=sys.stdout, width=shown, markup=False, highlight=False, emoji=False))
