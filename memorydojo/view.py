"""How things show themselves: one description, which a terminal, a notebook and ``print`` each render.

A `View` is plain data: a title, a table, notes. Its texts may be hostile. Nothing of them is markup: unprintable
characters become escapes, HTML is escaped, rich's markup is not read.
"""

import html
import io
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from memorydojo._display import counted, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

LONGEST = 20
"""How many rows of a collection a view shows."""

SIMULATED = "simulated: these numbers describe the offline simulator and the memory systems, never a language model."
"""What has to be said of simulated results."""

_WIDTH = 120
_LONGEST_HEAD = 40
_LONGEST_CELL = 4000
"""Characters of a cell that a terminal shows; laying out a megabyte in a narrow column takes a minute."""
_NARROW = 16
_BESIDE = 3
"""Columns: two spaces and a line beside each."""
_EDGE = "1px solid rgba(128, 128, 128, 0.45)"
_T = TypeVar("_T")

Change = tuple[Literal["same", "removed", "added"], str]
"""A piece of a text that was changed."""


@dataclass(frozen=True)
class Column:
    """A column of a view.

    Attributes:
        name: Its head; it may have several lines.
        number: Whether its cells stand on the right.
        whole: Whether its cells are never broken over several lines.
    """

    name: str
    number: bool = False
    whole: bool = False


@dataclass(frozen=True, repr=False)
class View:
    """What something looks like: in rich, as HTML in a notebook, and as text by ``print``.

    Attributes:
        title: Stands above.
        columns: The columns; a text is a column with this head. Without any head there is no line of heads.
        rows: The cells, row by row, as `cell` makes them texts.
        more: What is not shown, such as ``"and 12 more runs"``.
        notes: Stand below, one a line; one may be a text with its changes.
        commands: Stand below the notes; they are never broken, so that they can be copied.
        simulated: Whether the title says so.
        rules: The numbers of rows, from 1, below which there is a line.
        repeated: A table that is too wide for a terminal is cut into several below each other; each has so many first
            columns.
        parts: What stands below the notes.
    """

    title: str = ""
    columns: Sequence[Column | str] = ()
    rows: Sequence[Sequence[object]] = ()
    more: str = ""
    notes: Sequence[str | Sequence[Change]] = ()
    commands: Sequence[str] = ()
    simulated: bool = False
    rules: frozenset[int] = frozenset()
    repeated: int = 1
    parts: Sequence["View"] = ()

    @property
    def headline(self) -> str:
        """The title, which says if something is simulated."""
        return f"{self.title} (simulated)" if self.simulated and self.title else self.title

    def text(self, width: int | None = None) -> str:
        """All of it as text, without colours.

        Args:
            width: In characters; None for that of the terminal, or 120 where there is none.
        """
        from rich.console import Console

        width = width or shutil.get_terminal_size((_WIDTH, 24)).columns
        file = io.StringIO()
        # Told outright, so that neither a notebook nor a variable of the environment makes it anything else.
        console = Console(file=file, width=width, force_terminal=False, force_jupyter=False, color_system=None)
        self.print_to(console)
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines())

    def print_to(self, console: "Console") -> None:
        """Prints it to a console of rich's, with commands on one line each, however long."""
        console.print(self, crop=False, overflow="ignore")

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__  # what a terminal shows of the last value

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        if self.title:
            yield Text(plain(self.headline), style="bold", overflow="fold")
        if self.rows:
            yield from self._tables(options.max_width)
        if self.more:
            yield Text(plain(self.more), overflow="fold")
        for note in self.notes:
            yield Text(plain(note), overflow="fold") if isinstance(note, str) else _changes(note)
        for command in self.commands:
            # What rich would cut off at the edge is better folded.
            whole = options.overflow == "ignore"
            yield Text(f"  {plain(command)}", no_wrap=whole, overflow="ignore" if whole else "fold")
        for part in self.parts:
            yield Text("")
            yield part

    def _columns(self) -> list[Column]:
        given = [Column(column) if isinstance(column, str) else column for column in self.columns]
        return [replace(column, name=_lines(column.name)) for column in given]

    def _cells(self) -> list[list[str]]:
        return [[_lines(cell(value)) for value in row] for row in self.rows]

    def _tables(self, width: int) -> "Iterable[Table]":
        from rich.table import Table
        from rich.text import Text

        columns, rows = self._columns(), [[_shortened(text) for text in row] for row in self._cells()]
        sizes = [_Size.of(column, [row[at] for row in rows]) for at, column in enumerate(columns)]
        for block in _blocks(sizes, self.repeated, width):
            table = Table(show_header=any(column.name for column in columns))
            for at, wide in block.items():
                column = columns[at]
                justify: Literal["right", "left"] = "right" if column.number else "left"
                head = Text(column.name)
                table.add_column(head, justify=justify, overflow="fold", no_wrap=column.whole, width=wide)
            for number, row in enumerate(rows, start=1):
                table.add_row(*(Text(row[at]) for at in block), end_section=number in self.rules)
            yield table

    def html(self) -> str:
        """All of it as HTML without scripts, for light and dark pages; every text is escaped."""
        found = [f'<p style="margin: 0.4em 0"><b>{escaped(self.headline)}</b></p>'] if self.title else []
        if self.rows:
            found += [
                '<table style="border-collapse: collapse; border: none; margin: 0 0 0.3em 0">',
                *self._html_rows(),
                "</table>",
            ]
        notes = [self.more] if self.more else []
        for note in [*notes, *self.notes]:
            found.append(
                f'<p style="margin: 0.2em 0; opacity: 0.8">{escaped(plain(note))}</p>'
                if isinstance(note, str)
                else f'<pre style="white-space: pre-wrap; overflow-wrap: anywhere">{marked(note)}</pre>'
            )
        if self.commands:
            lines = "\n".join(map(plain, self.commands))
            found.append(f"<pre>{escaped(lines)}</pre>")
        found += [part.html() for part in self.parts]
        return "\n".join(['<div style="overflow-x: auto; margin-bottom: 0.8em">', *found, "</div>"])

    def _repr_html_(self) -> str:
        return self.html()

    def _html_rows(self) -> Iterable[str]:
        columns = self._columns()
        sides = ["right" if column.number else "left" for column in columns]
        style = "padding: 0.2em 0.7em; vertical-align: top; white-space: pre-wrap; text-align"
        if any(column.name for column in columns):
            heads = (
                f'<th style="{style}: {side}; border-bottom: {_EDGE}; {_breaks(column, column.name)}">'
                f"{html.escape(column.name)}</th>"
                for column, side in zip(columns, sides, strict=True)
            )
            yield f"<thead><tr>{''.join(heads)}</tr></thead>"
        yield "<tbody>"
        for number, row in enumerate(self._cells(), start=1):
            line = f"; border-bottom: {_EDGE}" if number in self.rules else ""
            cells = (
                f'<td style="{style}: {side}; {_breaks(column, text)}{line}">{html.escape(text)}</td>'
                for column, side, text in zip(columns, sides, row, strict=True)
            )
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</tbody>"


def _breaks(column: Column, text: str) -> str:
    """Where a cell may be broken: numbers nowhere, words only if one would push the rest of a page aside."""
    if column.whole or column.number:
        return "white-space: pre"
    endless = any(len(word) > _LONGEST_HEAD for word in text.split())
    return f"max-width: 48em{'; overflow-wrap: anywhere' if endless else ''}"


class Viewed:
    """What shows itself by a `View`: in rich, in notebooks, and by ``print``."""

    __slots__ = ()

    def view(self) -> View:
        """What it looks like."""
        raise NotImplementedError

    def __rich__(self) -> View:
        return self.view()

    def _repr_html_(self) -> str:
        return self.view().html()

    def __str__(self) -> str:
        return str(self.view())


def cell(value: Any) -> str:
    """A value as people read it in a table.

    >>> cell(True), cell(None), cell(12), cell("a")
    ('yes', '-', '12', 'a')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def cut(items: Sequence[_T], one: str, many: str | None = None, *, limit: int | None = LONGEST) -> tuple[list[_T], str]:
    """The first of many, and a line that says how many more there are.

    Args:
        items: All of them.
        one: What one of them is called.
        many: What several are called; with an s at the end if it is not given.
        limit: How many to show; None for all.

    >>> cut([1, 2, 3], "run", limit=2)
    ([1, 2], 'and 1 more run')
    """
    shown = list(islice(items, limit))
    more = len(items) - len(shown)
    return shown, f"and {counted(more, f'more {one}', many and f'more {many}')}" if more else ""


def fields(title: str, rows: Iterable[tuple[str, object]], **more: Any) -> View:
    """A view of one thing: its fields below each other, those that are None left out."""
    return View(title, (Column("", whole=True), ""), [row for row in rows if row[1] is not None], **more)


def escaped(text: str) -> str:
    """A text as HTML: markup escaped, and what is unprintable shown as an escape, line breaks apart."""
    return html.escape(_lines(text))


def marked(changes: Iterable[Change]) -> str:
    """Changes of a text as HTML."""
    marks = {"same": ("", ""), "removed": ("<del>", "</del>"), "added": ("<ins>", "</ins>")}
    return "".join(marks[kind][0] + escaped(text) + marks[kind][1] for kind, text in changes)


def _changes(changes: Iterable[Change]) -> Any:
    from rich.text import Text

    styles = {"same": "", "removed": "red strike", "added": "green"}
    marks = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
    shown = Text(overflow="fold")
    for kind, text in changes:
        before, after = marks[kind]
        shown.append(before + plain(text) + after, style=styles[kind])
    return shown


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_CELL:
        return text
    return f"{text[:_LONGEST_CELL]}… ({len(text):,} characters in all)"


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


@dataclass(frozen=True)
class _Size:
    """How wide a column may be: as wide as its cells, and not so narrow that words of its head break."""

    least: int
    inside: int
    most: int

    @classmethod
    def of(cls, column: Column, cells: Sequence[str]) -> "_Size":
        inside = max((_width(text) for text in cells), default=0)
        head = min(_width(column.name), _LONGEST_HEAD)
        word = min(max((_width(word) for word in column.name.split()), default=0), _LONGEST_HEAD)
        least = max(word, inside if column.whole or column.number else min(inside, _NARROW))
        return cls(least, max(least, inside), max(head, inside))


def _blocks(sizes: Sequence[_Size], repeated: int, width: int) -> list[dict[int, int]]:
    """The columns of each table with their widths, so that each table fits, as far as one column fits at all."""
    first, rest = list(range(repeated)), list(range(repeated, len(sizes)))
    blocks: list[list[int]] = [[*first]]
    for at in rest:
        least = sum(sizes[of].least + _BESIDE for of in [*blocks[-1], at]) + 1
        if least > width and len(blocks[-1]) > repeated:
            blocks.append([*first])
        blocks[-1].append(at)
    return [_widths({at: sizes[at] for at in block}, width) for block in blocks]


def _widths(sizes: Mapping[int, _Size], width: int) -> dict[int, int]:
    """Shares a width among columns: each gets what it needs at least, and those that need little more get all of it."""
    wide = {at: size.least for at, size in sizes.items()}
    left = width - 1 - _BESIDE * len(sizes) - sum(wide.values())
    if left < 0:
        # Not even the least fits: the widest gives way.
        widest = max(wide, key=lambda at: wide[at])
        wide[widest] = max(wide[widest] + left, 1)
    # A cell in two lines is worse than a head in two lines.
    for wanted in ({at: one.inside for at, one in sizes.items()}, {at: one.most for at, one in sizes.items()}):
        waiting = sorted(sizes, key=lambda at: wanted[at] - wide[at])
        for number, at in enumerate(waiting):
            more = max(min(wanted[at] - wide[at], left // (len(waiting) - number)), 0)
            wide[at] += more
            left -= more
    return wide


def _width(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))
