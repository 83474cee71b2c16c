"""How things show themselves in a terminal, in a notebook and by print."""

import io
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import Console

import memorydojo as md
from memorydojo.view import Column, View, cut, fields

HOSTILE = "[red]x[/red] \x1b[31m :smile: \u202e <script>alert(1)</script> </td>"


def table(n: int = 2, **more: Any) -> View:
    return View("Title", ("name", Column("number", number=True)), [(f"row {i}", i) for i in range(n)], **more)


def printed(thing: object, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_text_holds_title_heads_cells_and_notes() -> None:
    shown = str(table(notes=["A note."]))
    assert [word in shown for word in ("Title", "name", "row 1", "A note.")] == [True] * 4


def test_what_is_simulated_says_so_in_every_form() -> None:
    view = table(simulated=True)
    assert "Title (simulated)" in str(view)
    assert "Title (simulated)" in view.html()
    assert "Title (simulated)" in printed(view)


def test_hostile_text_is_text_everywhere() -> None:
    view = View(HOSTILE, (HOSTILE, "b"), [(HOSTILE, HOSTILE)], more=HOSTILE, notes=[HOSTILE, [("added", HOSTILE)]])
    for text in (str(view), printed(view, 400)):
        assert "[red]x[/red]" in text
        assert "\\x1b[31m :smile: \\u202e" in text
        assert "\x1b[31m " not in text
    page = view.html()
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "script" not in Tags(page).seen
    assert Tags(page).open == []


def test_a_notebook_gets_no_script_and_no_fixed_colour() -> None:
    page = table(rules=frozenset({1})).html()
    assert Tags(page).seen == {"div", "p", "b", "table", "thead", "tr", "th", "tbody", "td"}
    assert not any(word in page for word in ("color:", "background", "#"))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_wide_table_is_cut_into_several_that_fit(width: int) -> None:
    heads = [Column(f"a rather long head {n}", number=True) for n in range(9)]
    view = View("Wide", ("name", *heads), [("row", *("100.00 [99.00, 100.00]" for _ in heads))])
    lines = view.text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("100.00 [99.00, 100.00]" in line for line in lines) >= 1
    assert view.text(width).count("100.00 [99.00, 100.00]") == len(heads)


def test_a_long_cell_is_folded_and_short_ones_beside_it_are_not() -> None:
    view = View("", ("id", "text"), [("cross-domain-1", "word " * 60)])
    lines = view.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    assert any("cross-domain-1" in line for line in lines)


def test_an_endless_word_does_not_widen_a_terminal() -> None:
    assert max(map(len, View("", ("a",), [("x" * 500,)]).text(50).splitlines())) <= 50


def test_a_megabyte_is_laid_out_in_a_moment_and_says_its_length() -> None:
    text = View("T", ("cell",), [("x" * 1_000_000,)]).text(20)
    assert len(text) < 20_000
    assert "(1,000,000" in text


def test_a_command_is_never_broken() -> None:
    command = "memorydojo optimize --memory a-mem --objective workspace --output optimized/a-mem/workspace.json"
    assert f"  {command}" in View(commands=[command]).text(40).splitlines()


def test_text_has_no_colours_even_if_the_environment_asks_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in str(table(simulated=True))


def test_a_notebook_breaks_neither_numbers_nor_words_of_usual_length() -> None:
    page = View("T", ("word", Column("number", number=True)), [("RecommendationObjective", "1.00 [0.50, 2.00]")]).html()
    assert "anywhere" not in page
    assert page.count("white-space: pre; ") + page.count('white-space: pre"') == 2
    assert "anywhere" in View("T", ("word",), [("x" * 300,)]).html()


def test_the_last_value_of_a_terminal_is_shown_as_by_print() -> None:
    assert repr(table()) == str(table())


def test_a_long_collection_is_cut_with_a_line_that_counts_the_rest() -> None:
    assert cut(list(range(23)), "trajectory", "trajectories")[1] == "and 3 more trajectories"
    shown = str(md.trajectories.load("same-domain"))
    assert "and 73 more trajectories" in shown
    assert len(shown.splitlines()) < 40


def test_fields_without_a_value_are_left_out() -> None:
    assert "none" not in str(fields("One", [("a", 1), ("none", None)]))


TRAJECTORIES = md.trajectories.load("banking")
ATTACK = md.Attack(objective="banking", payload="seed-1")
SHOWN: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "trajectory": (lambda: TRAJECTORIES["banking-005-01"], ["banking-005-01", "5 sessions", "user_task_"]),
    "collection": (lambda: TRAJECTORIES, ["22 trajectories", "banking-003-01"]),
    "history": (lambda: md.trajectories.load("history-prefixed")[0], ["Before them: the history", "question: "]),
    "payload": (lambda: md.payloads["banking"]["seed-1"], ["seed-1", "US133000000121212121212"]),
    "payloads": (lambda: md.payloads, ["workspace", "seed-2"]),
    "attack": (lambda: ATTACK, ["banking", "seed-1", "session: the first"]),
    "objective": (lambda: md.objectives["travel"], ["Riverside View Hotel", "met when"]),
    "objectives": (lambda: md.objectives, ["slack", "CallObjective"]),
    "plan": (lambda: md.planning.experiment("table-1"), ["Sweep table-1", "own-domain", "mem0"]),
    "expansion": (lambda: md.planning.expand(small()), ["3 runs, 9 task sessions", "(simulated)"]),
    "dry run": (lambda: md.planning.dry_run(small()), ["3 runs, 0 of them done", "small (simulated)"]),
}


def small() -> md.SweepPlan:
    return md.SweepPlan(
        name="small",
        collections="banking",
        trajectories="banking-003-01",
        memories="full_context",
        objectives="banking",
        payloads=["seed-1", "seed-2"],
        clean=True,
    )


@pytest.mark.parametrize("name", SHOWN)
def test_it_shows_well_in_every_form(name: str) -> None:
    make, words = SHOWN[name]
    thing = make()
    for text in (str(thing), printed(thing, 120), thing._repr_html_()):
        for word in words:
            assert word in text
    lines = [line for line in thing.view().text(80).splitlines() if not line.startswith("  memorydojo ")]
    assert max(map(len, lines)) <= 80
    assert Tags(thing._repr_html_()).open == []


@pytest.mark.parametrize("name", SHOWN)
def test_its_repr_is_short(name: str) -> None:
    assert len(repr(SHOWN[name][0]())) < 2500
    assert "\n" not in repr(SHOWN[name][0]())


def test_a_flagged_session_says_what_the_flag_means() -> None:
    flagged = next(t for t in md.trajectories.load("same-domain") if any(s.flags for s in t.sessions))
    assert "drift: " in str(flagged) or "stale-success: " in str(flagged)


def test_a_hostile_payload_is_text_in_a_notebook() -> None:
    page = md.Payload(id="x", objective="banking", text=HOSTILE)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_showing_a_trajectory_loads_no_agentdojo_and_prints_nothing_unasked() -> None:
    code = (
        "import memorydojo as md, sys\n"
        "t = md.trajectories.load('banking')\n"
        "t, t[0], md.objectives, md.payloads\n"
        "text = str(t[0]) + t[0]._repr_html_() + str(md.payloads)\n"
        "assert text and not {'agentdojo', 'pandas', 'matplotlib'} & {*sys.modules}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
