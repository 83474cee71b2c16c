"""One self-contained HTML file that nothing in a run can bring to life.

The data is a block of JSON that is never HTML: every ``<``, ``>`` and ``&`` in it is an escape, and the page's script
puts it on the screen as text only. A content security policy allows just this script and this style sheet, by their
hashes: no inline handler, no other script, no image, font, frame, form or connection.
"""

import hashlib
import html
import json
import re
from base64 import b64encode
from importlib.resources import files
from typing import Any

from memorydojo._display import plain
from memorydojo.runs._files import finite

_MARKED = '<meta name="generator" content="memorydojo trace 1">'


def page(name: str, title: str, data: dict[str, Any]) -> str:
    """The HTML of a page, in ASCII.

    Args:
        name: ``"trace"`` or ``"sweep"``: the names of its body and its script.
        title: The page's title; any text.
        data: What the script shows.
    """
    style = _part("style.css")
    script = _part("common.js") + _part(f"{name}.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    parts = {
        "policy": policy,
        "generator": _MARKED,
        "title": html.escape(plain(title)).encode("ascii", "xmlcharrefreplace").decode(),
        "style": style,
        "body": _part(f"{name}.html"),
        "data": _inert(data),
        "script": script,
    }
    # In one pass, so that nothing within a part is taken for a place to fill.
    return re.sub(r"@@(\w+)@@", lambda found: parts[found.group(1)], _part("page.html"))


def is_page(text: str) -> bool:
    """Whether a file is a page of ours, which may be replaced."""
    return _MARKED in text[:2000]


def _part(name: str) -> str:
    return files("memorydojo.viewer").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inert(data: dict[str, Any]) -> str:
    """ASCII JSON without a character that HTML could take for markup."""
    text = json.dumps(finite(data), separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
