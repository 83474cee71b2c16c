import re
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.objective import Objectives

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_the_code_of_the_readme_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(md, "objectives", Objectives(*md.objectives.values()), raising=False)
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    assert names.keys() - {"__name__", "__builtins__"}, "the block defines nothing, so nothing of it was tried"
