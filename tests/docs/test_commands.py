"""The commands of the pages run, page by page, in a directory like that of somebody who reads them."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memorydojo as md
from docs.check import FENCE, ROOT, calls, pages
from memorydojo.cli.main import app

NEEDS = {
    r"^letta |--memory letta": "a Letta server: make test-letta",
    r"gpt-mini|models\.toml": "a model: tests/cli/test_models.py, test_judge.py",
    r"longmemeval|\+ID": "the file of LongMemEval: tests/cli/test_histories.py",
    r"^optimize ": "minutes: tests/optimizer/test_cli.py",
    r"^demo$": "a minute: make demo",
    r"--memory notebook": "an installed package: tests/adapters/test_example_package.py",
}
"""What is not run here, and where it is."""

PLAN = """
name = "example"
collections = "banking"
trajectories = "banking-005-01"
memories = "vector"
objectives = "own-domain"
payloads = "seed-1"
clean = true
"""


def _shell_calls(page: Path) -> list[list[str]]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [words for language, code in found if language in ("sh", "bash", "console") for words in calls(code)]


ALL = {page.relative_to(ROOT).as_posix(): _shell_calls(page) for page in pages()}
COMMANDS = {
    page: kept
    for page, found in ALL.items()
    if (kept := [words for words in found if not any(re.search(why, " ".join(words)) for why in NEEDS)])
}


@pytest.fixture(scope="module")
def readers_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a demo, a single run and a plan."""
    place = tmp_path_factory.mktemp("reader")
    plans = [
        md.plan_run(
            md.trajectories.load(domain)[1],
            "vector",
            attack=md.Attack(objective=domain, payload=payload) if payload else None,
        )
        for domain in ("banking", "slack")
        for payload in ("", "seed-1", "seed-2")
    ]
    md.sweep(plans, directory=place / "runs" / "demo")
    md.sweep(plans[1:2], directory=place / "runs" / "single")
    (place / "plan.toml").write_text(PLAN)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_run(
    page: str, readers_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(readers_place, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for words in COMMANDS[page]:
        done = CliRunner().invoke(app, words)
        # A check of --fail-on may hold or not.
        good = (0, 1) if "--fail-on" in words else (0,)
        assert done.exit_code in good, f"memorydojo {' '.join(words)}: {done.exception or done.output}"


def test_nothing_is_left_out_for_a_reason_that_no_command_has() -> None:
    said = [" ".join(words) for found in ALL.values() for words in found]
    assert [pattern for pattern in NEEDS if not any(re.search(pattern, line) for line in said)] == []
