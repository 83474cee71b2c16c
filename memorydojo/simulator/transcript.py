"""Reading a session transcript back into who said what, for simulated models of systems that store transcripts."""

import re
from typing import cast

from memorydojo.simulator.extraction import Line
from memorydojo.simulator.wording import Role

_HEAD = re.compile(r"(?:\A|\n\n)(?:(User|Assistant): ?|Assistant (called) |(Observation) from [^\n:]*: ?)")
_ROLES = {"User": "user", "Assistant": "assistant", "called": "call", "Observation": "tool"}


def lines(transcript: str) -> list[Line]:
    r"""Who says what in a text made by `memorydojo.record.SessionRecord.transcript`.

    A text that contains the head of a message, after an empty line, counts as a message of its own: the format marks
    speakers in plain text, and a language model cannot tell either.

    >>> lines("Session of 2024-05-15 09:30\n\nUser: Hi.\n\nAssistant called f(x=1)\n\nObservation from f: a\n\nb")
    [Line(role='user', text='Hi.'), Line(role='call', text='f(x=1)'), Line(role='tool', text='a\n\nb')]
    """
    heads = list(_HEAD.finditer(transcript))
    ends = [*(head.start() for head in heads[1:]), len(transcript)][: len(heads)]
    return [
        Line(cast(Role, _ROLES[next(filter(None, head.groups()))]), transcript[head.end() : end])
        for head, end in zip(heads, ends, strict=True)
    ]
