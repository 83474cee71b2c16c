"""The notebooks run on the simulator from nothing but the package, and are kept without what a run leaves in them."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 600
"""Longest duration of one cell; a machine that is shared by many takes its time."""

notebooks = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])


def read(path: Path) -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def code(path: Path) -> list[str]:
    """The code cells, without magics such as ``%%writefile`` and its like."""
    cells = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    return [source.partition("\n")[2] if source.startswith("%%") else source for source in cells]


def test_there_are_the_five() -> None:
    names = ["1-quickstart", "2-memory-systems", "3-optimizer", "4-metrics", "5-bring-your-own"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.slow
@notebooks
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    place = tmp_path / "work"
    place.mkdir()
    notebook = read(path)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": place}})
    client.execute()  # raises CellExecutionError on any error
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("simulated" in str(output.get("data", output.get("text", ""))) for output in shown)
    assert not [output for output in shown if output.output_type == "error"]


@notebooks
def test_outputs_are_stripped(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


@notebooks
def test_no_place_on_a_machine_is_named(path: Path) -> None:
    found = re.findall(r"(?<![\w.<:/])/(?:home|root|tmp|usr|var|Users|work|opt)\b|[A-Z]:\\\\", path.read_text("utf-8"))
    assert found == []


@notebooks
def test_only_public_names_are_imported(path: Path) -> None:
    for source in code(path):
        for node in ast.walk(ast.parse(source)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not any(part.startswith("_") for module in modules for part in module.split("."))


@notebooks
def test_it_says_that_it_is_simulated(path: Path) -> None:
    assert any("simulated" in cell.source.lower() for cell in read(path).cells if cell.cell_type == "markdown")


@notebooks
def test_its_links_lead_somewhere(path: Path) -> None:
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    links = [link for text in texts for link in re.findall(r"\]\(([^)#]+)\)", text)]
    pages = [page for text in texts for page in re.findall(r"`(docs/[\w-]+\.md)`", text)]
    assert all((FOLDER / link).exists() for link in links)
    assert all((FOLDER.parent / page).exists() for page in pages)
