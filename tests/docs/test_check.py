"""What `make docs` finds on a page."""

from pathlib import Path

import pytest

from docs.check import problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[here](nowhere.md)", "the link nowhere.md leads nowhere"),
        ("```python\nif:\n```", "a Python block does not compile"),
        ("```sh\nmemorydojo mertics runs\n```", "there is no command `memorydojo mertics`"),
        ("```sh\nmemorydojo histories shwo x\n```", "there is no command `memorydojo histories shwo`"),
        ("```sh\nmemorydojo metrics runs --buy memory\n```", "`memorydojo metrics` has no option --buy"),
        ("```sh\ncd x && .venv/bin/memorydojo run t --memroy=mem0\n```", "`memorydojo run` has no option --memroy"),
        ("```sh\nmemorydojo run \\\n  t --memroy mem0\n```", "`memorydojo run` has no option --memroy"),
        ("```sh\nmake coffee\n```", "there is no make target coffee"),
    ],
)
def test_what_does_not_hold_is_named(text: str, problem: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text + "\n")
    (found,) = problems(page)
    assert problem in found


@pytest.mark.parametrize(
    "text",
    [
        "[there](https://example.org) [below](#below) [beside](page.md#part)",
        "```python\nx = 1\n```",
        "```sh\nmemorydojo run t --memory mem0 --payload-file=p.txt  # comment --nothing\n```",
        "```sh\nmemorydojo optimize show searches/x -o x.html && memorydojo sweep --no-share plan.toml\n```",
        "```sh\nmemorydojo --install-completion\nmake setup\n```",
    ],
)
def test_what_holds_is_passed_over(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text + "\n")
    assert list(problems(page)) == []
