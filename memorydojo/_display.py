"""Showing text that may be hostile: payloads, observations and memories never reach a terminal raw."""

import unicodedata

_UNSAFE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def plain(text: str, limit: int | None = None) -> str:
    r"""The text with control, format, bidi and unassigned characters written as escapes, on one line.

    Args:
        text: Any text.
        limit: Longest result in characters; a longer text ends in an ellipsis.

    >>> plain("a\x1b[31mb\u202ec\nd")
    'a\\x1b[31mb\\u202ec\\nd'
    """
    shown = "".join(
        c if unicodedata.category(c) not in _UNSAFE else c.encode("unicode_escape").decode("ascii") for c in text
    )
    if limit is not None and len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…"
    return shown
