"""Help with examples, and shell completion, of every command."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from memorydojo.cli.main import app

ROOT = typer.main.get_command(app)


def _leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with its name."""
    children = dict(getattr(command, "commands", {}))
    if not children or (getattr(command, "invoke_without_command", False) and path):
        yield path, command
    for name, child in children.items():
        yield from _leaves(child, (*path, name))


LEAVES = [pytest.param(path, command, id=" ".join(path)) for path, command in _leaves(ROOT)]


@pytest.mark.parametrize(("path", "command"), LEAVES)
def test_the_help_has_examples_whose_options_exist(path: tuple[str, ...], command: Any) -> None:
    help_ = " ".join((command.help or "").split())
    examples = re.findall(r"Example: (memorydojo .*?)(?= Example:|$)", help_)
    assert examples, f"memorydojo {' '.join(path)} has no example"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for example in examples:
        words = shlex.split(example)
        assert tuple(words[1 : 1 + len(path)]) == path
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_had(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = CliRunner().invoke(app, ["--show-completion", shell], prog_name="memorydojo")
    assert result.exit_code == 0
    assert "_MEMORYDOJO_COMPLETE" in result.stdout
