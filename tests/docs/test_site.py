"""The documentation site: everything public is in it, and nothing is fetched from elsewhere."""

import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import memorydojo as md

ROOT = Path(__file__).resolve().parents[2]
TAG = re.compile(r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*>")
ADDRESS = re.compile(r"""(?:src|href|srcset|data)=["']?((?:https?:)?//[^"'\s>]+)""")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly, with the notebooks as they are kept, without outputs."""
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


def _documented(site: Path) -> set[str]:
    data = (site / "objects.inv").read_bytes()
    lines = zlib.decompress(data.split(b"\n", 4)[4]).decode().splitlines()
    return {line.split()[0] for line in lines}


def _public() -> Iterator[tuple[str, str]]:
    """Each public name, and where it is defined."""
    for name in md.__all__:
        value = getattr(md, name)
        home = "memorydojo.shipped" if name in ("objectives", "payloads") else getattr(value, "__module__", "")
        yield f"memorydojo.{name}", f"{home}.{name}"
        if isinstance(value, ModuleType):
            for public in getattr(value, "__all__", ()):
                yield f"{value.__name__}.{public}", f"{getattr(getattr(value, public), '__module__', '')}.{public}"


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    documented = _documented(site)
    assert [name for name, home in _public() if not {name, home} & documented] == []


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 40
    tags = [tag for page in pages for tag in TAG.findall(page.read_text(encoding="utf-8"))]
    assert [tag for tag in tags if ADDRESS.search(tag) and 'rel="canonical"' not in tag] == []
    assert [style for style in site.rglob("*.css") if re.search(r"url\([\"']?https?:", style.read_text())] == []


def test_every_page_has_a_place_in_the_navigation(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    pages += [page.relative_to(ROOT).with_suffix(".html") for page in (ROOT / "notebooks").glob("*.ipynb")]
    assert [page for page in pages if f'href="{page.as_posix()}"' not in index and page.name != "index.html"] == []


def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    page = (site / "metrics.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert "$`" not in page
    assert r"\frac" not in page


def test_links_to_files_of_the_repository_lead_to_copies_or_are_plain_text(site: Path) -> None:
    def links(page: str) -> list[str]:
        return re.findall(r'<a href="([^"#]+)', (site / page).read_text(encoding="utf-8").partition("<article")[2])

    for page, target in (
        ("adding-a-memory-system.html", "examples/notebook-memory/notebook_memory.py"),
        ("graphiti.html", "NOTICE"),
        ("index.html", "notebooks/1-quickstart.html"),
        ("CONTRIBUTING.html", "responsible-use.html"),
    ):
        assert target in links(page)
        assert (site / target).exists()


def test_models_show_the_fields_that_they_are_made_with(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (site / "reference" / "attacks.html").read_text(encoding="utf-8"))
    signature = " ".join(page.partition("Attack(")[2].partition(")")[0].split())
    assert signature.startswith("*, objective: str, payload: Payload | str, session: InsertionSession =")
    assert "Annotated" not in page


def test_the_commands_are_all_there(site: Path) -> None:
    page = (site / "command-line.html").read_text(encoding="utf-8")
    for command in ("memorydojo sweep", "memorydojo metrics", "memorydojo optimize transfer", "memorydojo letta up"):
        assert f"<code>{command}</code>" in page


def test_building_leaves_nothing_in_the_repository(site: Path) -> None:
    assert not (ROOT / "notebooks" / "runs").exists()
    assert not (ROOT / ".cache").exists()
