import tomllib
from itertools import chain
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SEPARATE = ("adapters", "optimizer", "trajectories")


def _folders() -> set[str]:
    roots = {"memorydojo": ROOT / "memorydojo", **{f"memorydojo.{n}": ROOT / n for n in SEPARATE}}
    found = set()
    for name, root in roots.items():
        for init in root.rglob("__init__.py"):
            parts = init.parent.relative_to(root).parts
            if not (name == "memorydojo" and parts and parts[0] in SEPARATE):
                found.add(".".join([name, *parts]))
    return found


def test_every_package_is_in_the_wheel() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == _folders()


def test_every_dependency_is_pinned_in_the_constraints() -> None:
    project = PROJECT["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {
        d.split("[")[0].split("=")[0].split(">")[0].split("<")[0].strip().lower().replace("_", "-") for d in wanted
    }
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].split(";")[0].strip().lower() for line in lines if "==" in line}
    assert names <= pinned


def test_the_constraints_name_no_address_and_no_torch() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert not any(line.startswith("torch==") for line in text.splitlines())


def test_the_command_that_adds_amem_agrees_with_its_extra() -> None:
    from memorydojo.adapters._amem_setup import INSTALL

    extra = PROJECT["project"]["optional-dependencies"]["a-mem"]
    assert all(requirement in INSTALL for requirement in extra)
    (override,) = PROJECT["tool"]["uv"]["dependency-metadata"]
    assert f"{override['name']}=={override['version']}" in extra


def test_the_parts_of_the_pages_ship() -> None:
    assert PROJECT["tool"]["setuptools"]["package-data"]["memorydojo.viewer"] == ["static/*"]
    names = {"page.html", "style.css", "common.js", "trace.html", "trace.js", "sweep.html", "sweep.js"}
    assert {path.name for path in (ROOT / "memorydojo" / "viewer" / "static").iterdir()} == names


def test_the_type_marker_ships() -> None:
    assert (ROOT / "memorydojo" / "py.typed").exists()


def test_the_citation_and_the_changelog_name_this_version() -> None:
    version = PROJECT["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["preferred-citation"]["title"] in " ".join((ROOT / "README.md").read_text().split())
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_pre_commit_hooks_are_local_and_call_what_make_calls() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    recipes = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    for hook in repository["hooks"]:
        assert hook["entry"].replace(" --force-exclude", "") in recipes
