"""Matchers for the arguments of tool calls: each normalises a value as an agent may write it, then compares.

Agents write one recipient as a string or a list, amounts as numbers or text, addresses with a display name. A matcher
takes the argument's JSON value and says whether it means the expected one.
"""

import re
from collections.abc import Callable
from typing import Any

Matcher = Callable[[Any], bool]

_CURRENCY = r"(?:[$€£¥]|[A-Za-z]{3}|dollars?|euros?|pounds?)?"
_AMOUNT = re.compile(rf"{_CURRENCY}\s*(-?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?)\s*{_CURRENCY}")


def _values(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]


def folded(text: Any) -> str:
    """Text with white space folded and case ignored."""
    return " ".join(str(text).split()).casefold()


def text(expected: str) -> Matcher:
    """The same text, apart from white space and case."""
    return lambda value: folded(value) == folded(expected)


def containing(part: str) -> Matcher:
    """A text that contains ``part``, apart from white space and case."""
    return lambda value: folded(part) in folded(value)


def email(address: str) -> Matcher:
    """An e-mail address, or a list that holds it; ``Mark <mark@example.com>`` means the address in it.

    >>> email("mark@example.com")(["Ann <ann@example.com>", "Mark <Mark@Example.com>"])
    True
    """
    return lambda value: any(_address(v) == folded(address) for v in _values(value))


def _address(value: Any) -> str:
    inner = re.search(r"<([^<>]*)>\s*$", str(value))
    return folded(inner.group(1) if inner else value)


def account(number: str) -> Matcher:
    """An account number, apart from spaces, hyphens and case."""

    def strip(value: Any) -> str:
        return re.sub(r"[\s-]", "", str(value)).casefold()

    return lambda value: strip(value) == strip(number)


def amount(expected: float) -> Matcher:
    """An amount of money, as a number or as text with a currency sign or thousands separators.

    >>> amount(10)("$10.00"), amount(10)(100), amount(1000)("1,000 USD"), amount(10)(True)
    (True, False, True, False)
    """
    return lambda value: _number(value) == float(expected)


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match.group(1).replace(",", "")) if match else None


def equal(expected: Any) -> Matcher:
    """The same JSON value: text folded, numbers by value, lists without order."""

    def form(value: Any) -> Any:
        if isinstance(value, list | tuple | set | frozenset):
            return sorted((form(v) for v in value), key=repr)
        if isinstance(value, dict):
            return {k: form(v) for k, v in value.items()}
        if value is None or isinstance(value, bool):
            return ("constant", value)  # apart from numbers: True equals 1 in Python
        number = _number(value)
        return number if number is not None else folded(value)

    return lambda value: form(value) == form(expected) or form(value) == form([expected])
