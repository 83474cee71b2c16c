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


def counted(number: int, one: str, many: str | None = None, *, width: int = 0) -> str:
    """A number of things, in the singular or the plural.

    Args:
        number: How many.
        one: What one of them is called.
        many: What several are called; with an s at the end if it is not given.
        width: In a table of lines: the width of the number; the word is then as wide as in the plural.

    >>> counted(1, "run"), counted(0, "run"), counted(2, "history", "histories")
    ('1 run', '0 runs', '2 histories')
    """
    several = many or f"{one}s"
    return f"{number:>{width}} {one if number == 1 else several:<{len(several) if width else 0}}"


def verb(number: int, one: str = "is", many: str = "are") -> str:
    """The form of a verb, or of another word, that goes with a number of things.

    >>> verb(1), verb(3), verb(1, "counts", "count")
    ('is', 'are', 'counts')
    """
    return one if number == 1 else many
