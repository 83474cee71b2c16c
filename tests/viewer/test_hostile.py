"""Fifty texts that try to run something: wherever a run can hold them, nothing of them comes to life."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page

from memorydojo.viewer import frame, sweep_page, trace_page, write_trace
from memorydojo.viewer._page import page as make_page

pytestmark = pytest.mark.slow

HOSTILE: list[str] = json.loads((Path(__file__).parent / "hostile.json").read_text(encoding="ascii"))
NAMES = [f"{at:02d}" for at in range(len(HOSTILE))]
#: A refresh in bare markup leads the browser away whatever the policy; it runs nothing and says nothing here.
BARE = [(name, text) for name, text in zip(NAMES, HOSTILE, strict=True) if "http-equiv" not in text]


class Watched:
    """A page with all that it does: what it asks for, says, opens and runs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.done: list[str] = []
        page.on("request", lambda request: self._note("request", request.url))
        page.on("requestfailed", lambda request: self._note("failed", f"{request.url} {request.failure}"))
        page.on("console", lambda message: self._note("console", message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("dialog", self._dismiss)
        page.on("popup", lambda popup: self._note("popup", popup.url))
        page.on("framenavigated", lambda frame: self._note("frame", frame.url))

    def _note(self, kind: str, what: str) -> None:
        self.done.append(f"{kind}: {what}")

    def _dismiss(self, dialog: Dialog) -> None:
        self._note("dialog", dialog.message)
        dialog.dismiss()

    def pwned(self) -> bool:
        return bool(self.page.evaluate("window.pwned === 1"))


@pytest.fixture
def watched(chromium: Browser) -> Iterator[Watched]:
    context = chromium.new_context(viewport={"width": 1500, "height": 950})
    context.set_default_timeout(5000)
    yield Watched(context.new_page())
    context.close()


def test_there_are_fifty_of_them() -> None:
    assert len(set(HOSTILE)) == 50


@pytest.mark.parametrize("text", HOSTILE, ids=NAMES)
def test_a_hostile_text_stays_text_wherever_a_run_can_hold_it(
    text: str, save: Any, watched: Watched, shown: Callable[..., str], tmp_path: Path
) -> None:
    path = write_trace(save.hostile(tmp_path / "runs", text), tmp_path / "trace.html")
    page = watched.page
    page.goto(path.as_uri())
    title = page.title()
    elements = _elements(page)
    for session in (1, 2, 3):
        page.click(f'[data-session="{session}"]')
        for summary in page.locator("#detail summary").all():
            summary.click()
        assert page.locator("#query").evaluate("n => n.textContent") == shown(text)
        elements |= _elements(page)
    for row in page.locator(".row .name").all():
        row.click()
        for summary in page.locator("#detail summary").all():
            summary.click()
        elements |= _elements(page)
        for block in page.locator("#detail .text").all():
            block.hover()
    page.click("#show-payload")
    elements |= _elements(page)
    assert not elements & {"IFRAME", "IMG", "OBJECT", "EMBED", "FORM", "BASE", "LINK", "VIDEO", "AUDIO", "MATH", "A"}
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate(
        "[...document.querySelectorAll('*')].every(n => n.getAttributeNames().every(a => !a.startsWith('on')))"
    )
    assert page.title() == title
    assert page.locator("#simulated").is_visible()
    assert not watched.pwned()
    assert watched.done == [f"request: {path.as_uri()}", f"frame: {path.as_uri()}"]


def _elements(page: Page) -> set[str]:
    names: list[str] = page.evaluate("[...document.querySelectorAll('*')].map(n => n.nodeName.toUpperCase())")
    return set(names)


def test_hostile_texts_stay_text_in_the_table_of_runs(
    save: Any, watched: Watched, shown: Callable[..., str], tmp_path: Path
) -> None:
    runs = [save.hostile(tmp_path / "runs", text) for text in HOSTILE]
    path = tmp_path / "index.html"
    path.write_text(sweep_page(runs, title=HOSTILE[0]), encoding="ascii")
    watched.page.goto(path.as_uri())
    cells = watched.page.locator("#runs tbody tr td:nth-child(2)").evaluate_all("all => all.map(n => n.textContent)")
    assert cells == [shown(text, one_line=True) for text in HOSTILE]
    hrefs = watched.page.locator("#runs a").evaluate_all("all => all.map(n => n.href)")
    assert all(href.startswith(tmp_path.as_uri()) for href in hrefs)
    assert not watched.pwned()
    assert watched.done == [f"request: {path.as_uri()}", f"frame: {path.as_uri()}"]


def test_the_texts_are_dangerous_where_nothing_guards_a_page(watched: Watched, tmp_path: Path) -> None:
    """So that the tests here can fail: bare in a page, many of the same texts do run."""
    ran = 0
    for name, text in BARE:
        path = tmp_path / f"{name}.html"
        path.write_bytes(b"<!DOCTYPE html><body><div>" + text.encode("utf-8", "replace"))
        watched.page.goto(path.as_uri(), wait_until="load")
        watched.page.wait_for_timeout(20)
        ran += watched.pwned()
    assert ran >= 20


@pytest.mark.parametrize("text", [text for _, text in BARE], ids=[name for name, _ in BARE])
def test_even_markup_that_got_into_the_page_would_not_run(text: str, watched: Watched, tmp_path: Path) -> None:
    """The content security policy on its own: the text stands raw in the body."""
    html = make_page("sweep", "t", {"title": "t", "stages": [], "runs": [], "judge": "j"})
    raw = text.encode("utf-8", "replace").decode("utf-8")
    path = tmp_path / "broken.html"
    path.write_text(html.replace("<body>", f"<body><div>{raw}</div>", 1), encoding="utf-8")
    watched.page.goto(path.as_uri())
    watched.page.evaluate("document.querySelector('#clickme, #send')?.click()")
    watched.page.wait_for_timeout(20)
    assert not watched.pwned()
    assert not [what for what in watched.done if what.startswith(("dialog", "popup", "frame: http"))]
    asked = [what.removeprefix("request: ") for what in watched.done if what.startswith("request: http")]
    assert [f"failed: {url} csp" for url in asked] == [what for what in watched.done if what.startswith("failed: http")]


@pytest.mark.parametrize("text", [HOSTILE[1], HOSTILE[9], HOSTILE[44]], ids=["script", "image", "bidi"])
def test_in_a_notebook_the_page_is_shut_in_its_frame(
    text: str, save: Any, watched: Watched, shown: Callable[..., str], tmp_path: Path
) -> None:
    run = save.hostile(tmp_path / "runs", text)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><title>notebook</title>{run._repr_html_()}", encoding="ascii")
    watched.page.goto(path.as_uri())
    inner = watched.page.frames[1]
    assert inner.locator("#query").evaluate("n => n.textContent") == shown(text)
    assert inner.evaluate("origin") == "null"
    assert not watched.pwned()
    assert not inner.evaluate("window.pwned === 1")


def test_a_frame_cannot_reach_the_notebook_around_it(watched: Watched, tmp_path: Path) -> None:
    path = tmp_path / "notebook.html"
    path.write_text(
        "<!DOCTYPE html>" + frame("<script>try { parent.pwned = 1 } catch (e) { document.title = 'shut' }</script>"),
        encoding="ascii",
    )
    watched.page.goto(path.as_uri())
    inside = watched.page.frames[1]
    for _ in range(100):  # the page counts as loaded before the script in the frame has run
        if inside.title() == "shut":
            break
        watched.page.wait_for_timeout(100)
    assert inside.title() == "shut"
    assert not watched.pwned()


def test_the_whole_page_is_ascii(save: Any, tmp_path: Path) -> None:
    assert all(trace_page(save.hostile(tmp_path / str(at), text)).isascii() for at, text in enumerate(HOSTILE[44:48]))
