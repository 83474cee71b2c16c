"""Checks the documentation: links lead somewhere, Python blocks compile, and commands that are named exist.

Run from the root of the repository: ``python docs/check.py``. Exits with 1 and names each place that does not hold.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer.main

from memorydojo.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\.venv/bin/)?memorydojo ([a-z]\w*)", re.MULTILINE)
MAKE = re.compile(r"^\s*(?:\$ )?make ([a-z][\w-]*)", re.MULTILINE)


def pages() -> list[Path]:
    """Every Markdown page of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").rglob("*.md")])


def problems(page: Path) -> Iterator[str]:
    """What does not hold on one page."""
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        if not (page.parent / target.partition("#")[0]).exists():
            yield f"the link {target} leads nowhere"
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for language, code in FENCE.findall(text):
        if language == "python":
            try:
                compile(code, str(page), "exec")
            except SyntaxError as error:
                yield f"a Python block does not compile: {error}"
        if language in ("", "sh", "bash", "console"):
            yield from (f"there is no command `memorydojo {c}`" for c in COMMAND.findall(code) if c not in commands)
            yield from (f"there is no make target {t}" for t in MAKE.findall(code) if t not in targets)


def main() -> int:
    """Checks all pages and prints what does not hold."""
    found = [f"{page.relative_to(ROOT)}: {problem}" for page in pages() for problem in problems(page)]
    for line in found:
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"docs: {len(pages())} pages, {len(found)} problems\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
