"""Histories from files in LongMemEval's form (Wu et al., 2025): a JSON array of instances, read one at a time.

The S file is 278 MB and the M file larger, so an instance is decoded as soon as it is whole and let go before the next.
The standard decoder does it: given the place where an object begins, it also says where it ends.

The form of an instance: ``question_id``, ``question_type``, ``question``, ``question_date``, ``answer``,
``answer_session_ids``, and the parallel lists ``haystack_session_ids``, ``haystack_dates``, ``haystack_sessions``; a
session is a list of turns with ``role``, ``content`` and, at times, ``has_answer``. Further fields are passed over.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from memorydojo.errors import InvalidInputError
from memorydojo.history import QUESTION_TYPES, HeldOutQuestion, History, HistorySession, Turn

DATASET = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned"
FILE = "longmemeval_s_cleaned.json"

HOW_TO_OBTAIN = (
    "LongMemEval (MIT licence) is not part of this package. Get the file that the paper selects from, 278 MB, with: "
    f"curl -L -o {FILE} {DATASET}/resolve/main/{FILE} ; then give its path: "
    f"memorydojo histories prepare {FILE} -o histories.json"
)
"""What to do where there is no file."""

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""An instance of the M file has about 6 million characters."""

_DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: \(\w+\))?(?: (\d{1,2}):(\d{2}))?")
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_CUT_OFF = ("Unterminated string", "Invalid \\")
_NEAR_THE_END = 8  # a literal such as "false", cut off


class HistoryFile:
    """The histories of a file, one after another; each pass reads the file again.

    Args:
        path: The file.

    Attributes:
        notes: What was put right in the last pass, by kind: ``"instances"`` read, ``"empty sessions"`` left out,
            ``"histories sorted by date"``.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.notes: Counter[str] = Counter()

    def __iter__(self) -> Iterator[History]:
        """The histories, in the order of the file.

        Raises:
            InvalidInputError: The file is missing, is no such file, or an instance breaks the form; the message names
                the instance and the field.
        """
        self.notes.clear()
        source = str(self.path)
        try:
            # A byte order mark is no part of JSON, but some editors leave one.
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                for number, data in enumerate(_instances(file, source), start=1):
                    yield self._history(data, f"{source}, instance {number}")
        except FileNotFoundError as error:
            raise InvalidInputError(f"there is no file {source}. {HOW_TO_OBTAIN}") from error
        except OSError as error:
            raise InvalidInputError(f"cannot read {source}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"{source} is not UTF-8 text, so it is no file of LongMemEval") from error

    def _history(self, data: dict[str, Any], where: str) -> History:
        fields = _Fields(data, where)
        id_ = fields.text("question_id")
        fields.where = f"{where} ({id_[:60]!r})"
        sessions = fields.sessions()
        kept = [session for session in sessions if session is not None]
        if not kept:
            raise fields.wrong("haystack_sessions", "every session is empty")
        ordered = sorted(kept, key=lambda session: session.time)  # stable: equal dates keep their order
        self.notes["instances"] += 1
        self.notes["empty sessions"] += len(sessions) - len(kept)
        self.notes["histories sorted by date"] += ordered != kept
        question = HeldOutQuestion(
            id=id_,
            type=fields.type(),
            text=fields.text("question"),
            reference=fields.answer(),
            asked=fields.date("question_date", fields.text("question_date")),
        )
        there = {session.id for session in ordered}
        evidence = [name for name in fields.texts("answer_session_ids") if name in there]
        return History(id=id_, question=question, sessions=tuple(ordered), evidence=tuple(evidence))


def _instances(file: TextIO, source: str) -> Iterator[dict[str, Any]]:
    """The objects of the array in a file; at most one of them and what was read with it is in memory."""
    text, place, number, over = file.read(_CHUNK), 0, 0, False

    def more() -> bool:
        """Reads on, as much again as is there, so that a long object is not tried too often."""
        nonlocal text, place, over
        got = file.read(max(_CHUNK, len(text) - place))
        text, place, over = text[place:] + got, 0, over or not got
        return bool(got)

    def next_sign() -> str:
        nonlocal place
        while True:
            match = _SPACE.match(text, place)
            place = match.end() if match else place
            if place < len(text) or not more():
                return text[place : place + 1]

    if next_sign() != "[":
        raise InvalidInputError(f"{source} is no file of LongMemEval: it must be a JSON array of instances")
    place += 1
    while (sign := next_sign()) != "]":
        number += 1
        where = f"{source}, instance {number}"
        if number > 1:
            if sign != ",":
                raise _no_json(where, "a comma or the end of the array is missing before it", over=not sign)
            place += 1
            sign = next_sign()
        if sign != "{":
            raise _no_json(where, "it must be a JSON object", over=not sign)
        while True:
            try:
                data, place = _DECODER.raw_decode(text, place)
                break
            except RecursionError as error:
                raise InvalidInputError(f"{where} is nested too deeply") from error
            except json.JSONDecodeError as error:
                cut = error.msg.startswith(_CUT_OFF) or error.pos >= len(text) - _NEAR_THE_END
                if not cut or not more():
                    over_in_it = error.msg.startswith(_CUT_OFF) or error.pos >= len(text)
                    raise _no_json(where, error.msg, over=over_in_it) from error
            if len(text) - place > _LONGEST:
                raise InvalidInputError(f"{where} has more than {_LONGEST} characters; this is no file of LongMemEval")
        yield data


def _no_json(where: str, problem: str, *, over: bool) -> InvalidInputError:
    ending = "the file ends in the middle of it; get it again" if over else problem
    return InvalidInputError(f"{where} is not valid JSON: {ending}")


class _Fields:
    """The fields of one instance, checked as they are taken."""

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self.data, self.where = data, where

    def wrong(self, field: str, problem: str) -> InvalidInputError:
        return InvalidInputError(f"{self.where}, field {field}: {problem}")

    def get(self, field: str) -> Any:
        if field not in self.data:
            raise self.wrong(field, "it is missing")
        return self.data[field]

    def text(self, field: str) -> str:
        value = self.get(field)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(field, f"it must be a text, not {value!r:.80}")
        return value

    def texts(self, field: str) -> list[str]:
        value = self.get(field)
        if not isinstance(value, list):
            raise self.wrong(field, f"it must be a list of texts, not {value!r:.80}")
        for number, item in enumerate(value, start=1):
            if not isinstance(item, str):
                raise self.wrong(f"{field}[{number}]", f"it must be a text, not {item!r:.80}")
        return value

    def type(self) -> str:
        value = self.text("question_type")
        if value not in QUESTION_TYPES:
            raise self.wrong("question_type", f"{value[:60]!r} is none of {', '.join(QUESTION_TYPES)}")
        return value

    def answer(self) -> str | int:
        value = self.get("answer")
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.wrong("answer", f"it must be a text or a whole number, not {value!r:.80}")
        return value

    def date(self, field: str, value: str) -> datetime:
        match = _DATE.fullmatch(value.strip())
        try:
            if match is not None:
                return datetime(*(int(part or 0) for part in match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
        except ValueError:
            pass  # a 30th of February
        raise self.wrong(field, f"it must be a date such as '2023/05/20 (Sat) 02:21', not {value[:60]!r}")

    def sessions(self) -> list[HistorySession | None]:
        """The sessions in the order of the file, None for an empty one."""
        ids, dates = self.texts("haystack_session_ids"), self.texts("haystack_dates")
        told = self.get("haystack_sessions")
        if not isinstance(told, list):
            raise self.wrong("haystack_sessions", f"it must be a list of sessions, not {told!r:.80}")
        if not len(ids) == len(dates) == len(told):
            raise self.wrong(
                "haystack_sessions",
                f"haystack_session_ids, haystack_dates and haystack_sessions must be of one length, not "
                f"{len(ids)}, {len(dates)} and {len(told)}",
            )
        found: list[HistorySession | None] = []
        for number, (id_, date, turns) in enumerate(zip(ids, dates, told, strict=True), start=1):
            time = self.date(f"haystack_dates[{number}]", date)
            said = self._turns(turns, f"haystack_sessions[{number}]")
            found.append(HistorySession(id=id_, time=time, turns=said) if said else None)
        return found

    def _turns(self, turns: Any, field: str) -> tuple[Turn, ...]:
        if not isinstance(turns, list):
            raise self.wrong(field, f"it must be a list of turns, not {turns!r:.80}")
        found = []
        for number, turn in enumerate(turns, start=1):
            place = f"{field}[{number}]"
            if not isinstance(turn, dict):
                raise self.wrong(place, f"it must be an object with role and content, not {turn!r:.80}")
            role, content, marked = turn.get("role"), turn.get("content"), turn.get("has_answer")
            if role not in ("user", "assistant"):
                raise self.wrong(f"{place}.role", f"it must be 'user' or 'assistant', not {role!r:.80}")
            if not isinstance(content, str):
                raise self.wrong(f"{place}.content", f"it must be a text, not {content!r:.80}")
            if not isinstance(marked, bool | None):
                raise self.wrong(f"{place}.has_answer", f"it must be true or false, not {marked!r:.80}")
            found.append(Turn(role=role, text=content))
        return tuple(found)
