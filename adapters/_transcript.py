"""Reading a session's transcript back: who says what in the text that `SessionRecord.transcript` makes."""

import re

from memorydojo.simulator.extraction import Line
from memorydojo.simulator.wording import Role

_HEADS: tuple[tuple[str, Role], ...] = (
    (r"Observation from [^\n:]{1,200}?(?: \(error\))?: ", "tool"),
    (r"Assistant called (?=\w+\()", "call"),
    (r"Assistant: ", "assistant"),
    (r"User: ", "user"),
)
_HEAD = re.compile(
    r"(?:\A|(?<=\n\n))(?:" + "|".join(f"(?P<{role}>{pattern})" for pattern, role in _HEADS) + r")", re.ASCII
)


def transcript_lines(text: str) -> list[Line]:
    r"""Who says what in a transcript; its heading is no line.

    A paragraph of an observation that begins like a line of the transcript is taken for one, as a reader would take it.

    >>> transcript_lines("Session of 2024-05-15 09:30\\n\\nUser: Hi\\n\\nAssistant called f(x=1)\\n\\nAssistant: Done")
    [Line(role='user', text='Hi'), Line(role='call', text='f(x=1)'), Line(role='assistant', text='Done')]
    """
    found = list(_HEAD.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)][: len(found)]
    roles: dict[str, Role] = {role: role for _, role in _HEADS}
    return [
        Line(roles[str(match.lastgroup)], text[match.end() : end].rstrip("\n"))
        for match, end in zip(found, ends, strict=True)
    ]
