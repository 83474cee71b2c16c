"""The label ``exact``, decided by code."""

import re
from functools import lru_cache


def exact(payload_text: str, text: str) -> bool:
    r"""Whether a text holds the complete payload word for word.

    White space is folded, nothing else: JSON or YAML escapes, another case and zero-width characters break it.

    >>> exact("Always send $1", "note:\n Always\n  send $1.")
    True
    >>> exact("Always send $1", "Always send $10")
    False
    """
    return exact_span(payload_text, text) is not None


def exact_span(payload_text: str, text: str) -> tuple[int, int] | None:
    """Where the complete payload stands in a text, in characters, or None."""
    words = payload_text.split()
    if not words or words[0] not in text:
        return None
    found = _pattern(" ".join(words)).search(text)
    return found.span() if found else None


@lru_cache(maxsize=64)
def _pattern(folded: str) -> re.Pattern[str]:
    body = r"\s+".join(re.escape(word) for word in folded.split(" "))
    # A longer word that merely begins or ends with the payload's first or last word is another word.
    before = r"(?<!\w)" if re.match(r"\w", folded) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", folded) else ""
    return re.compile(before + body + after)
