from hypothesis import given
from hypothesis import strategies as st

from memorydojo._display import plain, valid

ANY = st.text(st.characters(exclude_categories=[]))


@given(ANY)
def test_plain_text_is_printable_whatever_comes_in(text: str) -> None:
    assert plain(text).isprintable() or plain(text) == ""


def test_plain_escapes_terminal_bidi_and_zero_width_characters() -> None:
    assert plain("\x1b]0;x\x07 \u202e \u200b \u2028") == "\\x1b]0;x\\x07 \\u202e \\u200b \\u2028"


@given(ANY)
def test_valid_text_can_be_encoded(text: str) -> None:
    assert valid(text).encode().decode() == valid(text)


@given(st.text())
def test_valid_keeps_valid_text(text: str) -> None:
    assert valid(text) == text
