"""How long the trace of a run of 60 sessions and 500 entries takes to open in a headless Chromium.

Measured until the page is drawn, by its own clock; the quickest of several openings counts, since other work on the
machine is not the page's. The baseline is a page with the same data that parses it and draws nothing. It needs a
Chromium (``make browser``), or MEMORYDOJO_CHROMIUM names one.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import memorydojo as md
from memorydojo.adapter import MemoryDescription
from memorydojo.judging import OverlapJudge, label_run
from memorydojo.record import Action, MemoryEntry, MemoryItem, Snapshot
from memorydojo.runs import RunDirectory, RunEnd, RunHeader, SessionResult, run_id
from memorydojo.viewer import write_trace

SESSIONS, ENTRIES, DELIVERED = 60, 500, 12
OPENINGS = 5
START = datetime(2026, 1, 1, tzinfo=UTC)
PASSAGE = "What the agent saw and said, at some length. " * 20
DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"


def _session(t: int, task: md.Session, before: Snapshot, payload: str) -> tuple[SessionResult, Snapshot]:
    """A session that writes some entries, rewrites some, and is delivered twelve; every ninth holds the payload."""
    entries = dict(before.entries)
    for n in range(ENTRIES * (t - 1) // SESSIONS, ENTRIES * t // SESSIONS):
        text = f"Entry {n} of session {t}. {PASSAGE}{payload if n % 9 == 0 else ''}"
        entries[f"e{n}"] = MemoryEntry(id=f"e{n}", kind="fact", text=text)
    for id in list(before.entries)[t % 7 :: 29]:
        entries[id] = entries[id].model_copy(update={"text": f"{entries[id].text} Seen again in {t}."})
    delivered = list(before.entries.values())[-DELIVERED:]
    entered = Action(function="read", arguments={}, observation=f"seen. {payload}", poisoned=True)
    after = Snapshot(entries=entries)
    result = SessionResult(
        session=t,
        domain=task.domain,
        task_id=task.task_id,
        time=START + timedelta(days=t),
        query="query",
        prompt="prompt",
        items=tuple(MemoryItem(entry_ids=(e.id,), text=e.text, kind="fact", rank=r) for r, e in enumerate(delivered)),
        actions=(entered,) if t == 1 else (),
        completed=True,
        utility=True,
        difference=before.difference(after),
    )
    return result, after


def _trace(root: Path) -> Path:
    """The trace of such a run, saved and labelled as every run is."""
    trajectory = next(t for t in md.trajectories.load("cross-domain") if len(t) == SESSIONS)
    plan = md.plan_run(trajectory, "full_context", attack=md.Attack(objective="workspace", payload="seed-1"))
    assert plan.insertion is not None
    header = RunHeader(
        run_id=run_id(plan),
        plan=plan,
        memory=MemoryDescription(name="benchmark", writes="", stores="", retrieves="", presents=""),
        models={},
        simulated=True,
        versions={},
        started=START,
    )
    state = Snapshot()
    with RunDirectory(root / "runs").begin(header) as writer:
        for t, task in enumerate(trajectory.sessions, 1):
            result, state = _session(t, task, state, plan.insertion.payload.text)
            writer.append(result)
        writer.end(RunEnd(status="completed", payload_inserted=True, finished=START))
    run = md.load_runs(root / "runs")[header.run_id]
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=md.objectives))
    return write_trace(run, root / "trace.html")


def _parsed_only(trace: Path, target: Path) -> Path:
    """The same data on a page that parses it and draws nothing."""
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', trace.read_text(), re.DOTALL)
    assert data is not None
    script = "<script>window.data = JSON.parse(document.querySelector('script').textContent)</script>"
    target.write_text(f'<!doctype html><script type="application/json">{data.group(1)}</script>{script}')
    return target


def _seconds(browser: Browser, page: Path) -> float:
    taken = []
    for _ in range(OPENINGS):
        tab = browser.new_page(viewport={"width": 1500, "height": 950})
        tab.goto(page.as_uri())
        taken.append(float(tab.evaluate(DRAWN)) / 1000)
        tab.close()
    return min(taken)


def main() -> int:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = os.environ.get("MEMORYDOJO_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        sys.stderr.write("no Chromium was found; install one with: make browser\n")
        return 1
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        trace = _trace(Path(scratch))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        ours = _seconds(browser, trace)
        baseline = _seconds(browser, _parsed_only(trace, Path(scratch) / "data.html"))
        browser.close()
        size = trace.stat().st_size
    sys.stdout.write(f"{SESSIONS} sessions, {ENTRIES} entries, {size / 1e6:.1f} MB; drawn after {ours:.2f} s\n")
    result = {
        "name": "viewer",
        "unit": "s",
        "ours": round(ours, 3),
        "baseline": round(baseline, 3),
        "ratio": round(baseline / ours, 3),
        "baseline_is": "a page that parses the same data and draws nothing",
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
