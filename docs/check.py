"""Checks the documentation: links lead somewhere, Python blocks compile, commands and options that are named exist.

Run from the root of the repository: ``python docs/check.py``. Exits with 1 and names each place that does not hold.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from memorydojo.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
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
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for language, code in FENCE.findall(text):
        if language == "python":
            try:
                compile(code, str(page), "exec")
            except SyntaxError as error:
                yield f"a Python block does not compile: {error}"
        if language in ("", "sh", "bash", "console"):
            for words in calls(code):
                yield from wrong_words(words)
            yield from (f"there is no make target {t}" for t in MAKE.findall(code) if t not in targets)


def calls(code: str) -> Iterator[list[str]]:
    """The words after each ``memorydojo`` that a shell block calls."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            if words[0].rpartition("/")[2] == "memorydojo":
                yield words[1:end]
            words = words[end + 1 :]


def wrong_words(words: list[str]) -> Iterator[str]:
    """Commands and options of one call that do not exist."""
    command: Any = typer.main.get_command(app)
    path, left = "memorydojo", list(words)
    while left:
        word = left.pop(0)
        names = getattr(command, "commands", {})
        if word.startswith("-"):
            option, _, value = word.partition("=")
            parameters = [p for p in command.params if option in (*p.opts, *p.secondary_opts)]
            if not parameters and option not in ("--help", "--install-completion", "--show-completion"):
                yield f"`{path}` has no option {option}"
            if parameters and not value and not parameters[0].is_flag:
                left = left[1:]
        elif word in names:
            command, path = names[word], f"{path} {word}"
        elif names:
            yield f"there is no command `{path} {word}`"
            return


def main() -> int:
    """Checks all pages and prints what does not hold."""
    found = [f"{page.relative_to(ROOT)}: {problem}" for page in pages() for problem in problems(page)]
    for line in found:
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"docs: {len(pages())} pages, {len(found)} problems\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
