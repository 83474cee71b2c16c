import subprocess
import sys

import pytest

import memorydojo as md


@pytest.mark.parametrize("name", md.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(md, name) is not None


def test_the_lazy_names_are_exactly_the_public_ones() -> None:
    assert sorted({*md._HOME, *md._MODULES}) == sorted(md.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = md.nothing


def _loaded(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.slow
def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    script = """
import importlib, pkgutil, types
import memorydojo as md
for found in pkgutil.walk_packages(md.__path__, "memorydojo."):
    if found.name != "memorydojo.testing":  # needs pytest
        importlib.import_module(found.name)
for module in [md, *(getattr(md, name) for name in md._MODULES)]:
    for name in getattr(module, "__all__", ()):
        if isinstance(getattr(module, name), types.ModuleType):
            print(f"{module.__name__}.{name}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = {f"memorydojo.{name}" for name in md._MODULES}
    assert {*done.stdout.split()} == modules | {"memorydojo.optimizer.auxiliary"}


HEAVY = {
    "agentdojo",
    "openai",
    "anthropic",
    "cohere",
    "google",
    "torch",
    "mem0",
    "bm25s",
    "qdrant_client",
    "spacy",
    "onnxruntime",
}


def test_importing_memorydojo_imports_nothing_but_the_standard_library() -> None:
    assert not _loaded("import memorydojo") & {*HEAVY, "pandas", "numpy", "pydantic", "typer", "rich"}


def test_the_metrics_of_a_table_import_no_model_client_and_no_memory_system() -> None:
    assert not _loaded("import memorydojo; memorydojo.metrics; memorydojo.load_runs") & HEAVY


def test_the_command_metrics_on_saved_runs_imports_no_model_client_and_no_memory_system(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("runs")
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    attack = md.Attack(objective="banking", payload="seed-1")
    md.run(trajectory, "full_context", directory=directory, attack=attack)
    code = f"""
import sys
from memorydojo.cli.main import main
sys.argv = ["memorydojo", "metrics", {str(directory)!r}]
try:
    main()
except SystemExit as done:
    assert done.code in (0, None), done.code
"""
    assert not _loaded(code) & HEAVY


def test_the_public_vocabulary_lists_the_trajectories_without_agentdojo() -> None:
    assert not _loaded("import memorydojo as md; md.trajectories.load('same-domain')[0]") & HEAVY
