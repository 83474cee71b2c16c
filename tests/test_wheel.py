"""The built wheel, in an environment that knows nothing of the checkout, with no network."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist")

pytestmark = pytest.mark.slow

USE = """
import json
from pathlib import Path

import memorydojo as md
from memorydojo.planning import experiment_names, experiment
from memorydojo.trajectories import collections, histories

missing = [name for name in md.__all__ if getattr(md, name, None) is None]
print(json.dumps({
    "home": str(Path(md.__file__).parent),
    "missing": missing,
    "collections": {name: len(md.trajectories.load(name)) for name in collections.names()},
    "experiments": {name: experiment(name).name for name in experiment_names()},
    "published": [len(md.published.table(number)) for number in (1, 2, 6, 7, 8, 9)],
    "histories": len(histories.shipped()),
}))
"""


def _done(*command: object, cwd: Path) -> str:
    """The output of a command, which has to end well."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "PIP_"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and the wheel that was made of it."""
    place = tmp_path_factory.mktemp("built")
    # A copy: nothing stale gets into it, and nothing is written into the checkout.
    source = shutil.copytree(ROOT, place / "source", ignore=LEFT_OUT, symlinks=True)
    _done(sys.executable, "-m", "build", "--no-isolation", "--outdir", place / "dist", source, cwd=place)
    return place / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel. Other packages are lent by this one, last on the path.

    A directory in a ``.pth`` file is searched; ``.pth`` files in it, such as that of an editable install, are not.
    """
    place = tmp_path_factory.mktemp("fresh")
    venv.create(place, symlinks=True)
    programs = place / "bin"
    install = ("install", "--quiet", "--no-deps", "--no-index", wheel)
    _done(sys.executable, "-m", "pip", "--python", programs / "python", *install, cwd=place)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


def test_the_wheel_holds_all_code_and_data_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
        parts = {name.rpartition("/")[2] for name in file.namelist() if ".dist-info/" in name}
    expected = set()
    for folder, inside in (("memorydojo", ""), *((n, f"{n}/") for n in ("adapters", "optimizer", "trajectories"))):
        for path in (ROOT / folder).rglob("*"):
            within = path.relative_to(ROOT / folder)
            linked = folder == "memorydojo" and within.parts[0] in ("adapters", "optimizer", "trajectories")
            if path.is_file() and not linked and "__pycache__" not in path.parts:
                expected.add(f"memorydojo/{inside}{within.as_posix()}")
    assert names == expected
    assert {"LICENSE", "NOTICE", "METADATA", "entry_points.txt"} <= parts


def test_the_source_archive_holds_what_a_reader_wants(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "CITATION.cff", "constraints.txt"} <= names


def test_every_public_name_and_all_data_come_with_the_wheel(environment: Path, tmp_path: Path) -> None:
    import memorydojo as md
    from memorydojo.trajectories import collections, histories

    (tmp_path / "use.py").write_text(USE)
    found = json.loads(_done(environment / "python", "use.py", cwd=tmp_path).splitlines()[-1])
    assert Path(found["home"]).is_relative_to(environment.parent)
    assert found["missing"] == []
    assert found["collections"] == {name: len(md.trajectories.load(name)) for name in collections.names()}
    assert len(found["experiments"]) == len([*(ROOT / "memorydojo" / "planning" / "experiments").glob("*.toml")])
    assert all(found["published"])
    assert found["histories"] == len(histories.shipped())


@pytest.mark.parametrize("command", ["demo", "metrics", "optimize", "letta"])
def test_a_command_gives_its_help(environment: Path, tmp_path: Path, command: str) -> None:
    assert "Usage:" in _done(environment / "memorydojo", command, "--help", cwd=tmp_path)


def test_a_run_its_metrics_and_its_trace_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    program = environment / "memorydojo"
    run = ("banking-003-01", "--memory", "full_context", "--objective", "banking", "--directory", "runs")
    _done(program, "run", *run, cwd=tmp_path)
    (row,) = json.loads(_done(program, "metrics", "runs", "--format", "json", cwd=tmp_path))
    assert (row["n_runs"], row["simulated"], row["ISR"]) == (1, True, 1.0)
    _done(program, "trace", "runs", "-o", "trace.html", cwd=tmp_path)
    assert "banking-003-01" in (tmp_path / "trace.html").read_text(encoding="utf-8")
