"""Fences around hostile text in a prompt: the text cannot end its fence, for it would have to hold its own hash."""

import hashlib
import json
from collections.abc import Mapping

_DIGITS = 24


def fence_of(prompt: str, parts: Mapping[str, str]) -> str:
    """The mark of the fences of one question.

    It is made of the hash of everything that it fences in, so that equal questions are equal requests, which recorded
    answers need. It occurs in no part.

    Args:
        prompt: The hash of the prompt that the parts are put into.
        parts: The texts by name.
    """
    number = 0
    while True:
        material = json.dumps([prompt, number, *parts.items()], ensure_ascii=True)
        mark = hashlib.sha256(material.encode("ascii")).hexdigest()[:_DIGITS]
        if not any(mark in text.lower() for text in parts.values()):
            return mark
        number += 1


def fenced(mark: str, name: str, text: str) -> str:
    """A text between the lines that open and close its fence."""
    return f"<<<{name} {mark}\n{text}\n{name} {mark}>>>"
