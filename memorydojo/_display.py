"""Text that may be hostile or broken: made fit for saving, and for showing on a terminal."""


def plain(text: str, limit: int | None = None) -> str:
    r"""The text on one line, with every unprintable character (control, format, bidi, unassigned) as an escape.

    Args:
        text: Any text.
        limit: Longest result in characters; a longer text ends in an ellipsis.

    >>> plain("a\x1b[31mb\u202ec\nd")
    'a\\x1b[31mb\\u202ec\\nd'
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    if limit is not None and len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…"
    return shown


def valid(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD.

    A model's JSON can hold them, but they are no Unicode text: they can be neither saved as UTF-8 nor embedded.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
