"""What the documentation site has beyond mkdocs: pages from elsewhere in the repository, commands, formulas.

The pages read well on their own, in an editor or a code host; so links between them are those of the repository, and
what is no page of the site (a folder, a licence file) loses its link here.
"""

import dataclasses
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import griffe
import typer.main
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = tuple(f"notebooks/{path.name}" for path in sorted(ROOT.glob("notebooks/*.ipynb")))
ELSEWHERE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "examples/notebook-memory/notebook_memory.py")
COMMANDS = "command-line.md"
MODEL = "memorydojo._base.Frozen"
_work: list[Path] = []
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Draws formulas (``$`...`$`` in a line, a ``math`` block) as MathML, which needs neither a script nor a font."""
    settings = config["mdx_configs"]
    settings["pymdownx.inlinehilite"] = {"custom_inline": [{"name": "math", "class": "math", "format": _inline}]}
    settings["pymdownx.superfences"] = {"custom_fences": [{"name": "math", "class": "math", "format": _block}]}
    return config


def _inline(source: str, *_: Any, **__: Any) -> str:
    return str(convert(source))


def _block(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="math">{convert(source, display="block")}</div>'


@event_priority(100)  # before the plugin that takes the notebooks from the files
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that stand elsewhere in the repository, and the one on the command line."""
    # Notebooks are executed where they lie; a copy keeps the runs that they save out of the repository.
    _work.clear()
    _work.append(Path(tempfile.mkdtemp(prefix="memorydojo-docs-")))
    (_work[0] / "notebooks").mkdir()
    for name in NOTEBOOKS:
        shutil.copyfile(ROOT / name, _work[0] / name)
    for root, names in ((ROOT, ELSEWHERE), (_work[0], NOTEBOOKS)):
        for name in names:
            files.append(File(name, str(root), config["site_dir"], config["use_directory_urls"]))
    files.append(File.generated(config, COMMANDS, content=command_line()))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Removes what the notebooks left."""
    for folder in _work:
        shutil.rmtree(folder)


def on_build_error(error: Exception) -> None:
    """The same after a build that failed."""
    for folder in _work:
        shutil.rmtree(folder, ignore_errors=True)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links of the repository into links of the site, and ``$`` formulas into those of the extension."""
    root = ROOT if page.file.src_uri in ELSEWHERE else ROOT / "docs"
    markdown = re.sub(r"\$`([^`\n]+)`\$", r"`#!math \1`", markdown)
    return LINK.sub(_site_link(root, page.file.src_uri, files), markdown)


def _site_link(root: Path, uri: str, files: Files) -> Callable[[re.Match[str]], str]:
    folder = (root / uri).parent

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        if not target or ":" in target:
            return link.group(0)
        path = (folder / target).resolve()
        for base in (ROOT / "docs", ROOT):
            if path.is_relative_to(base) and files.get_file_from_path(path.relative_to(base).as_posix()):
                up = "../" * uri.count("/")
                return f"[{text}]({up}{path.relative_to(base).as_posix()}{anchor})"
        return text if path.exists() else link.group(0)

    return replaced


def command_line() -> str:
    """The page of all commands, from their own help."""
    from memorydojo.cli.main import app

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="memorydojo")
    return get_docs_for_click(obj=command, ctx=context, name="memorydojo", title="Command line")


class ModelSignatures(griffe.Extension):
    """Shows the fields of a model as the parameters that it is made with, as Python's own help does."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Goes through all classes, once all of them are known."""
        self._visit(pkg)

    def _visit(self, place: griffe.Module | griffe.Class) -> None:
        for member in list(place.members.values()):
            if isinstance(member, griffe.Class) and any(base.path == MODEL for base in member.mro()):
                init = griffe.Function("__init__", parameters=griffe.Parameters(*_parameters(member)), parent=member)
                member.set_member("__init__", init)
            if isinstance(member, griffe.Class | griffe.Module):
                self._visit(member)


def _parameters(model: griffe.Class) -> Iterator[griffe.Parameter]:
    kind = griffe.ParameterKind.keyword_only
    yield griffe.Parameter("self", kind=griffe.ParameterKind.positional_only)
    fields: dict[str, griffe.Attribute] = {}
    for base in (*reversed(model.mro()), model):
        fields |= {n: m for n, m in base.members.items() if isinstance(m, griffe.Attribute) and _is_field(m)}
    for name, field in fields.items():
        yield griffe.Parameter(name, annotation=_bare(field.annotation), kind=kind, default=_default(field.value))


def _bare(annotation: Any) -> Any:
    """The type without what pydantic is told of it by ``Annotated``."""
    if isinstance(annotation, griffe.ExprSubscript):
        if str(annotation.left) == "Annotated" and isinstance(annotation.slice, griffe.ExprTuple):
            return _bare(annotation.slice.elements[0])
        return dataclasses.replace(annotation, slice=_bare(annotation.slice))
    if isinstance(annotation, griffe.ExprTuple):
        return dataclasses.replace(annotation, elements=[_bare(element) for element in annotation.elements])
    return annotation


def _is_field(attribute: griffe.Attribute) -> bool:
    annotated = attribute.annotation is not None and not str(attribute.annotation).startswith("ClassVar")
    return annotated and not attribute.name.startswith("_") and "property" not in attribute.labels


def _default(value: Any) -> Any:
    if not isinstance(value, griffe.ExprCall) or str(value.function) != "Field":
        return value
    given = {a.name: a.value for a in value.arguments if isinstance(a, griffe.ExprKeyword)}
    made = f"{given['default_factory']}()" if "default_factory" in given else None
    return given.get("default", made)
