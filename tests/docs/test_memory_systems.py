"""The page on memory systems repeats what they say of themselves in saved runs, and nothing else."""

import re
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.adapter import adapters

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "memory-systems.md").read_text(encoding="utf-8")
SECTIONS = {
    title.lower(): text for title, text in re.findall(r"^## (\S+)$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


def test_every_shipped_memory_system_has_a_place_on_the_page() -> None:
    listed = re.findall(r"^\| \[`([\w-]+)`\]", PAGE, re.MULTILINE)
    assert {*listed} == {name for name, place in adapters().items() if place.startswith("memorydojo.")}
    assert {*SECTIONS} == {*listed} - {"letta"}  # it has a page of its own


@pytest.mark.slow
@pytest.mark.parametrize("memory", [*SECTIONS])
def test_a_section_says_what_the_memory_system_says_of_itself(memory: str, tmp_path: Path) -> None:
    sessions = md.trajectories.load("banking")[0].sessions[:2]
    trajectory = md.Trajectory(id="two", collection="test", sessions=sessions)
    said = md.run(trajectory, memory, directory=tmp_path).header.memory
    text = SECTIONS[memory]
    for head, sentence in (
        ("Writes", said.writes),
        ("Stores", said.stores),
        ("Retrieves", said.retrieves),
        ("Presents", said.presents),
    ):
        assert f"- **{head}.** {sentence}\n" in text
    assert re.findall(r"^- (?!\*\*)(.*)$", text, re.MULTILINE) == [*said.limits]
    for name, default in re.findall(r"^\| `(\w+)` \| (\S+) \|", text, re.MULTILINE):
        assert str(said.settings[name]).lower() == default.replace("null", "none")
