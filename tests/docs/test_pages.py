"""The code of the pages runs, page by page from top to bottom, as somebody would who reads them."""

import contextlib
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.objective import Objectives

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?:<!-- not executed: (.+) -->\n)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    path.relative_to(ROOT).as_posix(): blocks
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if (blocks := BLOCK.findall(path.read_text(encoding="utf-8")))
}
"""By page: the reason why a block is not executed, or nothing, and the block."""

FROM_THE_SHELL = re.compile(r'"(runs/(?:demo|single))"')
"""Directories of runs that pages make with commands, in the shell."""


def _saved_as_from_the_shell(code: str) -> None:
    for directory in {*FROM_THE_SHELL.findall(code)}:
        trajectory = md.trajectories.load("banking")[0]
        md.run(trajectory, "vector", directory=directory, attack=md.Attack(objective="banking", payload="seed-1"))


@pytest.fixture
def clean_slate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(md, "objectives", Objectives(*md.objectives.values()), raising=False)
    monkeypatch.syspath_prepend(ROOT / "examples" / "notebook-memory")
    with contextlib.redirect_stdout(None):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("clean_slate")
@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if not all(why for why, _ in blocks)])
def test_the_code_of_a_page_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [code for why, code in PAGES[page] if not why]
    _saved_as_from_the_shell("\n".join(blocks))
    module = types.ModuleType("page")  # a real one: a class of the page's own is found again by its module
    monkeypatch.setitem(sys.modules, "page", module)
    for code in blocks:
        exec(compile(code, page, "exec"), module.__dict__)
    assert [name for name in vars(module) if not name.startswith("__")], "no block defines anything: nothing was tried"


def test_only_what_needs_something_from_outside_is_not_executed() -> None:
    left = {page: [why for why, _ in blocks if why] for page, blocks in PAGES.items()}
    assert {page: len(reasons) for page, reasons in left.items() if reasons} == {
        "docs/judges.md": 1,  # a model
        "docs/letta.md": 1,  # a Letta server
        "docs/prefix-sharing.md": 1,  # a cluster
    }
