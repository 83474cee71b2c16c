"""Which messages Letta's conversation search found: its results carry no ids."""

import contextlib
import functools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memorydojo.adapters._letta_state import MessageState
from memorydojo.errors import MemorySystemError


def hits(answer: Any, query: str, messages: Sequence[MessageState], limit: int) -> list[int]:
    """Which messages the conversation search found, newest first.

    Its results have no ids, may be cut off in the middle, and let a message that is JSON overwrite their fields. So
    they are known by their times where these are there, and else found again by the search's own rule.

    Raises:
        MemorySystemError: The answer fits the messages in neither way.
    """
    if isinstance(answer, str):
        with contextlib.suppress(ValueError):
            answer = json.loads(answer)
    if isinstance(answer, Mapping):
        results = answer.get("results")
        if isinstance(results, list):
            times = {datetime.fromisoformat(m.created_at): n for n, m in enumerate(messages)}
            found = [times.get(_time(result)) for result in results]
            if None not in found and len(set(found)) == len(found):
                return [n for n in found if n is not None]
        count: int | None = len(results) if isinstance(results, list) else None
    else:
        shown = re.search(r"Showing (\d+) results", str(answer)[:200])
        count = int(shown.group(1)) if shown else None
    again = [n for n in reversed(range(len(messages))) if _pattern(query).search(messages[n].text)][:limit]
    if count != len(again):
        raise MemorySystemError(
            "letta",
            "retrieve",
            f"the conversation search reports {count} results, and {len(again)} messages contain the query",
            "Use a server of version 0.16.8 without a search service of its own.",
        )
    return again


def _time(result: Any) -> datetime:
    try:
        return datetime.fromisoformat(str(result["timestamp"]))
    except (ValueError, KeyError, TypeError):
        return datetime.min


@functools.lru_cache(maxsize=16)
def _pattern(query: str) -> re.Pattern[str]:
    r"""PostgreSQL's ``ILIKE '%query%'``.

    >>> bool(_pattern("50% of").search("it is 50 percent OF it"))
    True
    """
    parts, escaped = [], False
    for character in query:
        if not escaped and character == "\\":
            escaped = True
            continue
        wild = {"%": ".*", "_": "."}.get(character) if not escaped else None
        parts.append(wild or re.escape(character))
        escaped = False
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
