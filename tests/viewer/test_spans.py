from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memorydojo.viewer._spans import Utf16, changes, marks, shared_words

WORDS = st.lists(st.sampled_from(["send", "Mail", "to", "\U0001f600", "bob", ",", "\n"]), max_size=12).map(" ".join)


def cut(text: str, start: int, end: int) -> str:
    """What a browser cuts out of a text."""
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")


def test_a_run_of_shared_words_ignores_case_and_what_stands_between() -> None:
    text = "Please SEND, mail -- to\nBob today"
    assert [text[a:b] for a, b in shared_words("send mail to bob", text)] == ["SEND, mail -- to\nBob"]


def test_two_shared_words_are_no_run() -> None:
    assert shared_words("send mail to bob", "send mail now, then to bob") == []


def test_a_short_payload_has_to_be_there_whole() -> None:
    assert shared_words("pay now", "you pay now") == [(4, 11)]
    assert shared_words("pay now", "you pay") == []


def test_a_payload_without_words_shares_none() -> None:
    assert shared_words("<>!", "<>! a b c") == []


def test_offsets_count_utf16_units() -> None:
    assert [Utf16("a\U0001f600b\U0001f600")(n) for n in range(5)] == [0, 1, 3, 4, 6]


@given(WORDS, WORDS, st.none() | st.tuples(st.integers(0, 5), st.integers(6, 12)))
def test_marks_cover_the_span_and_the_shared_words_and_nothing_else(
    payload: str, text: str, span: tuple[int, int] | None
) -> None:
    span = span if span and span[1] <= len(text) else None
    found = marks(payload, text, span)
    covered = {at for start, end, _ in found for at in range(start, end)}
    units = Utf16(text)
    wanted = {
        at for a, b in [*shared_words(payload, text), *([span] if span else [])] for at in range(units(a), units(b))
    }
    assert covered == wanted
    assert all(a[1] <= b[0] for a, b in pairwise(found))


@given(WORDS, WORDS)
def test_a_difference_makes_up_both_texts(before: str, after: str) -> None:
    parts = changes(before, after)
    assert "".join(cut(before, a, b) for sign, a, b, _, _ in parts if sign != "+") == before
    assert "".join(cut(after, c, d) for sign, _, _, c, d in parts if sign != "-") == after
    assert all(cut(before, a, b) == cut(after, c, d) for sign, a, b, c, d in parts if sign == "=")


def test_very_long_texts_are_compared_by_lines() -> None:
    before = "".join(f"line {n}\n" for n in range(3000))
    after = before.replace("line 1500\n", "other\n")
    assert [sign for sign, *_ in changes(before, after)] == ["=", "~", "="]
