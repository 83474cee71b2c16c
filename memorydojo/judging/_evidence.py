"""Where the passage that a judge quotes stands in the judged text."""

import re

from memorydojo.judging._text import NormalText, tokens

_CUT = re.compile(r"\.{3,}|…|\[\.\.\.\]")


def locate(quote: str, text: str) -> tuple[int, int] | None:
    r"""The span of a quoted passage in a text, in characters, or None if it does not stand there.

    Words are compared; case, white space, punctuation and the escapes of JSON and YAML are not. A quote with an
    ellipsis counts by its longest piece.

    >>> locate("Send MONEY, now", "Rule:\n- send money   now.")
    (8, 24)
    >>> locate("send cash", "send money") is None
    True
    """
    piece = max(_CUT.split(quote), key=len)
    read = NormalText(piece)
    wanted = [token.text for token in tokens(read.text, 0, len(read.text))]
    if not wanted:
        return None
    normal = NormalText(text)
    found = list(tokens(normal.text, 0, len(normal.text)))
    words = [token.text for token in found]
    for start in range(len(words) - len(wanted) + 1):
        if words[start] == wanted[0] and words[start : start + len(wanted)] == wanted:
            return normal.original_span(found[start].start, found[start + len(wanted) - 1].end)
    return None
