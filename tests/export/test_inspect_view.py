"""An exported log in Inspect's own viewer: the real server, and a real Chromium that reads what it shows."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import memorydojo as md
from memorydojo.adapters._server import Child, free_port, tail, wait_until
from memorydojo.export import write_inspect
from memorydojo.export._inspect_log import SCORERS
from memorydojo.runs import Run, Runs

pytestmark = pytest.mark.slow

#: For machines that have much else to do: seconds until the server answers, milliseconds until the page shows a thing.
START = 120
LONG = 60_000
#: The scores of runs without a held-out question.
SHOWN = {name: metric for name, metric in SCORERS.items() if metric != "MU"}
HOSTILE = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script> **bold** '
    "[link](javascript:window.pwned=1) ![image](http://192.0.2.1/x.png)"
)


@dataclass(frozen=True)
class Served:
    """Two logs that the viewer serves: of usual runs, and of runs that say hostile texts."""

    url: str
    runs: Runs
    hostile: Runs


class Viewer:
    """The viewer in a browser, and all that its page asks for and complains about."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page, self.served = page, served
        self.asked: list[str] = []
        self.errors: list[str] = []
        page.route("**/*", self._route)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _route(self, route: Route) -> None:
        self.asked.append(route.request.url)
        if route.request.url.startswith(self.served.url):
            route.continue_()
        else:
            route.abort()

    def open_log(self, name: str, runs: Runs) -> Locator:
        """Opens a log; the rows of its samples."""
        self.page.goto(f"{self.served.url}#/logs/{name}")
        grid = self.page.get_by_role("grid", name="Samples")
        rows = grid.get_by_role("row").filter(has=self.page.get_by_role("gridcell"))
        expect(rows).to_have_count(len(runs), timeout=LONG)
        expect(grid.get_by_role("columnheader", name="TU: useful")).to_be_visible(timeout=LONG)
        return rows

    def open_sample(self, name: str, runs: Runs, run: Run) -> None:
        self.open_log(name, runs).filter(has_text=run.id).click()
        expect(self.outline.get_by_text("scores", exact=True)).to_be_visible(timeout=LONG)

    def open_tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).first.click()

    @property
    def outline(self) -> Locator:
        """The names of the spans of a sample."""
        return self.page.locator("#transcript-tree")

    def panel(self, title: str, *texts: str) -> Locator:
        """The events in view with this title and these texts."""
        found = self.page.locator("[id^='event-panel-']").filter(has_text=title)
        for text in texts:
            found = found.filter(has_text=text)
        return found.first

    def came_alive(self) -> list[str]:
        """Elements of the page that only a text of a run can have made."""
        found: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll(
                "img[src='x'], img[src*='192.0.2.1'], [onerror], a[href^='javascript'], a[href*='192.0.2.1'], script"
            )].filter(n => n.nodeName !== "SCRIPT" || n.textContent.includes("pwned")).map(n => n.outerHTML)"""
        )
        return found


@contextmanager
def inspect_view(logs: Path, home: Path) -> Iterator[str]:
    """The address of a viewer of a directory of logs, with a home of its own; gone also if the tests are killed."""
    port, said = free_port(), home / "said.txt"
    command = [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", str(logs)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    known = {name: value for name, value in os.environ.items() if not name.startswith(("INSPECT", "XDG_"))}
    places = {f"XDG_{name}": str(home / name) for name in ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME")}
    server = Child(command, log=said, cwd=home, env={**known, **places, "HOME": str(home)})
    try:
        if not wait_until(lambda: answers(port), children=[server], seconds=START, every=0.1):
            pytest.fail(f"the viewer did not start: {tail(said)}")
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.stop()


def answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


@pytest.fixture(scope="module")
def served(save: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("view")
    trajectories = {
        name: md.Trajectory(
            id=name,
            collection="test",
            sessions=tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in tasks),
        )
        for name, tasks in (("a", (1, 7, 4)), ("b", (1, 6)), ("c", (1, 4)))
    }
    for trajectory in trajectories.values():
        for attack in (md.Attack(objective="banking", payload="seed-1"), None):
            md.run(trajectory, "vector", directory=directory / "runs", attack=attack)
    payload = md.Payload(id="hostile", objective="banking", text=HOSTILE)
    attack = md.Attack(objective="banking", payload=payload)
    md.run(trajectories["b"], "vector", directory=directory / "hostile", attack=attack)
    save.hostile(directory / "hostile", HOSTILE)
    runs, hostile = md.load_runs(directory / "runs"), md.load_runs(directory / "hostile")
    logs, home = directory / "logs", directory / "home"
    logs.mkdir()
    home.mkdir()
    write_inspect(runs, logs / "x.eval")
    write_inspect(hostile, logs / "hostile.eval")
    with inspect_view(logs, home) as url:
        yield Served(url, runs, hostile)


# The logs come first: no other event loop can run in this thread while there is a browser, and writing a log needs one.
@pytest.fixture
def viewer(served: Served, chromium: Browser) -> Iterator[Viewer]:
    context = chromium.new_context(viewport={"width": 1600, "height": 1000})
    context.set_default_timeout(LONG)
    viewer = Viewer(context.new_page(), served)
    yield viewer
    context.close()
    assert viewer.errors == []
    assert [url for url in viewer.asked if not url.startswith(served.url)] == []


@pytest.fixture
def run(served: Served) -> Run:
    """The poisoned run of three sessions."""
    return next(run for run in served.runs if run.plan.insertion and len(run.plan.trajectory) == 3)


def cells(row: Locator) -> dict[str, str]:
    """The texts of a row by the names of the columns."""
    texts: dict[str, str] = row.get_by_role("gridcell").evaluate_all(
        "all => Object.fromEntries(all.map(cell => [cell.dataset.colId, cell.textContent.trim()]))"
    )
    return texts


def poisoned(served: Served) -> dict[str, Any]:
    """Our metrics of the poisoned runs."""
    table = served.runs.session_table()
    (summary,) = md.metrics.summarize(table[table["condition"] == "poisoned"], intervals=False).to_dict("records")
    return {str(name): value for name, value in summary.items()}


def test_every_run_is_listed_as_a_sample(viewer: Viewer, served: Served) -> None:
    rows = viewer.open_log("x.eval", served.runs)
    assert sorted(cells(row)["sampleId"] for row in rows.all()) == sorted(run.id for run in served.runs)
    assert "error" not in viewer.page.locator("body").inner_text().lower()


def test_every_sample_says_that_it_was_simulated(viewer: Viewer, served: Served) -> None:
    for row in viewer.open_log("x.eval", served.runs).all():
        assert cells(row)["input"].startswith("[simulated]")


def test_the_log_says_what_simulated_means(viewer: Viewer, served: Served) -> None:
    viewer.open_log("x.eval", served.runs)
    viewer.open_tab("Info")
    expect(viewer.page.get_by_text("never any LLM")).to_be_visible(timeout=LONG)


def test_the_metrics_shown_are_ours(viewer: Viewer, served: Served) -> None:
    viewer.open_log("x.eval", served.runs)
    viewer.page.get_by_text("All scoring").click()
    dialog = viewer.page.get_by_role("dialog")
    expect(dialog.get_by_text("TU", exact=True)).to_be_visible(timeout=LONG)
    found = {}
    for table in dialog.get_by_role("table").all():
        _, *groups = (name.strip() for name in table.get_by_role("columnheader").all_inner_texts())
        for row in table.get_by_role("row").all()[1:]:
            metric, *values = (text.strip() for text in row.get_by_role("cell").all_inner_texts())
            found.update({(metric, group): float(value) for group, value in zip(groups, values, strict=True)})
    summary = md.metrics.summarize(served.runs.session_table(), by=["memory", "model", "condition"])
    expected = {
        (metric, f"{row['memory']} / {row['model']} / {row['condition']}"): row[metric]
        for row in summary.to_dict("records")
        for metric in SCORERS.values()
        if not pd.isna(row[metric])
    }
    # The viewer rounds to three places.
    assert found == pytest.approx(expected, abs=0.00051)
    assert any(0 < value < 1 for value in found.values())


def test_the_first_metric_in_sight_is_brt(viewer: Viewer, served: Served) -> None:
    viewer.open_log("x.eval", served.runs)
    shown = viewer.page.get_by_role("table").first.get_by_role("row").nth(1).get_by_role("cell")
    expect(shown.first).to_have_text("BRT", timeout=LONG)
    assert float(shown.last.inner_text()) == pytest.approx(poisoned(served)["BRT"], abs=0.00051)


def test_scores_stand_in_columns_that_name_their_metric(viewer: Viewer, served: Served) -> None:
    viewer.open_log("x.eval", served.runs)
    headers = viewer.page.get_by_role("grid", name="Samples").get_by_role("columnheader").all_text_contents()
    assert headers[-len(SHOWN) :] == [f"{metric}: {name}" for name, metric in SHOWN.items()]


def test_the_scores_of_samples_add_up_to_the_metrics(viewer: Viewer, served: Served) -> None:
    rows = [cells(row) for row in viewer.open_log("x.eval", served.runs).all()]
    counts = {name: sum(int(row[f"score__{name}__{name}"] or 0) for row in rows) for name in ("retrieved", "met")}
    summary = poisoned(served)
    assert counts["retrieved"] == summary["n_retrieved"] > 0
    assert counts["met"] == summary["BRT"] * summary["n_later"] > 0


def test_a_sample_shows_a_span_for_every_session_and_score(viewer: Viewer, served: Served, run: Run) -> None:
    viewer.open_sample("x.eval", served.runs, run)
    names = viewer.outline.get_by_role("button").all_text_contents()
    expected = []
    for result in run.sessions:
        title = f"session {result.session}: {result.domain} {result.task_id}"
        expected += [title, "memory read", "interaction", "memory write"]
    expected += ["scores", *SHOWN]
    assert [name for name in names if name and not name.endswith((" turn", " turns"))] == expected


def test_a_sample_shows_the_write_of_the_payload(viewer: Viewer, served: Served, run: Run) -> None:
    assert run.plan.insertion is not None
    viewer.open_sample("x.eval", served.runs, run)
    viewer.outline.get_by_text("memory write", exact=True).first.click()
    expect(viewer.panel("Info: memory write", run.plan.insertion.payload.text)).to_be_visible(timeout=LONG)


def test_a_sample_shows_the_read_that_delivers_the_payload(viewer: Viewer, served: Served, run: Run) -> None:
    assert run.plan.insertion is not None
    assert run.labels().sessions[1].retrieved_original
    viewer.open_sample("x.eval", served.runs, run)
    viewer.outline.get_by_text("memory read", exact=True).nth(1).click()
    expect(viewer.panel("Info: memory read", run.plan.insertion.payload.text)).to_be_visible(timeout=LONG)


def test_a_sample_shows_what_its_sessions_came_to(viewer: Viewer, served: Served, run: Run) -> None:
    viewer.open_sample("x.eval", served.runs, run)
    viewer.outline.get_by_text("memory write", exact=True).first.click()
    expect(viewer.panel("Info: outcome", '"payload_entered": true')).to_be_visible(timeout=LONG)


def test_messages_are_shown_as_the_agent_read_them(viewer: Viewer, served: Served, run: Run) -> None:
    viewer.open_sample("x.eval", served.runs, run)
    viewer.open_tab("Messages")
    prompt = run.sessions[1].prompt
    assert "\n  date:" in prompt
    shown = viewer.page.locator("#messages-contents pre").filter(has_text=prompt.splitlines()[1]).first
    expect(shown).to_be_visible(timeout=LONG)
    assert shown.evaluate("node => node.textContent").strip() == prompt.strip()


@pytest.mark.parametrize("tab", ["Transcript", "Messages", "Info"])
@pytest.mark.parametrize("memory", ["vector", HOSTILE], ids=["payload", "everything"])
def test_hostile_texts_stay_text(memory: str, tab: str, viewer: Viewer, served: Served) -> None:
    run = next(run for run in served.hostile if run.plan.memory == memory)
    viewer.open_sample("hostile.eval", served.hostile, run)
    viewer.open_tab(tab)
    text = viewer.page.locator(f"#{tab.lower()}-contents").get_by_text(HOSTILE).first
    expect(text).to_be_visible(timeout=LONG)
    assert viewer.came_alive() == []
    assert viewer.page.evaluate("window.pwned") is None


def test_hostile_names_stay_text_in_the_list(viewer: Viewer, served: Served) -> None:
    viewer.open_log("hostile.eval", served.hostile)
    expect(viewer.page.get_by_role("grid", name="Samples").get_by_text(HOSTILE).first).to_be_visible(timeout=LONG)
    assert viewer.came_alive() == []
    assert viewer.page.evaluate("window.pwned") is None


def test_the_failure_of_a_session_is_shown(viewer: Viewer, served: Served) -> None:
    run = next(run for run in served.hostile if run.plan.memory == HOSTILE)
    viewer.open_sample("hostile.eval", served.hostile, run)
    expect(viewer.outline.get_by_text("error", exact=True)).to_be_visible(timeout=LONG)
    viewer.open_tab("Error")
    expect(viewer.page.get_by_text("session 3, agent: ").first).to_be_visible(timeout=LONG)
