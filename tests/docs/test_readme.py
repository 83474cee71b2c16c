import re
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.objective import Objectives

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/data-card.md", "docs/exports.md", "docs/figures.md")
BLOCKS = [
    pytest.param(code, id=f"{page}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS)
def test_the_code_of_a_page_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(md, "objectives", Objectives(*md.objectives.values()), raising=False)
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, "page", "exec"), names)
    assert names.keys() - {"__name__", "__builtins__"}, "the block defines nothing, so nothing of it was tried"
