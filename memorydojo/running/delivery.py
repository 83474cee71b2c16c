"""How retrieved memory is delivered to the agent: prepended to the task request (paper, section 4.2)."""

from collections.abc import Sequence

from memorydojo.record import MemoryItem

#: Name and version of the form below, saved with every run.
DELIVERY = "plain-list/1"

_HEAD = "Relevant memories from earlier sessions:"
_REQUEST = "Current request:"


def deliver(items: Sequence[MemoryItem], request: str) -> str:
    """The request with the retrieved items before it, in order; the request alone if there are none.

    The text of an item is taken as it is. It is untrusted, and that it can imitate this form is part of what is
    measured.
    """
    if not items:
        return request
    listed = "\n".join(f"- {item.text}" for item in items)
    return f"{_HEAD}\n{listed}\n\n{_REQUEST}\n{request}"
