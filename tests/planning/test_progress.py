"""What progress says: counts, rates, costs and the remaining time."""

import re
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import memorydojo as md
from memorydojo.cost import Price
from memorydojo.planning.progress import Counter, progress_of
from memorydojo.runs import RunPlan, run_id


@pytest.fixture
def plans() -> list[RunPlan]:
    trajectory = md.trajectories.load("same-domain")["banking-003-01"]
    return [md.plan_run(trajectory, "vector", seed=seed) for seed in (0, 1)]


def test_rates_and_the_remaining_time_count_task_sessions(tmp_path: Path, plans: list[RunPlan]) -> None:
    now = [100.0]
    md.sweep(plans[:1], directory=tmp_path)
    lengths = {run_id(plan): len(plan.trajectory) for plan in plans}
    counter = Counter(tmp_path, {**lengths, "later": 30}, clock=lambda: now[0])
    assert (counter.done, counter.fraction, counter.remaining) == (1, 3 / 36, None)
    md.sweep(plans, directory=tmp_path)
    now[0] += 6
    counter(2, 3, run_id(plans[1]))
    assert (counter.rate, counter.remaining, counter.fraction) == (30.0, 60.0, 6 / 36)
    assert counter.line().startswith("2/3 runs  30.0 sessions/min")
    assert counter.line().endswith("remaining 0:01:00")


def test_costs_are_those_of_the_saved_runs_and_unknown_without_a_price(tmp_path: Path, plans: list[RunPlan]) -> None:
    md.sweep(plans[:1], directory=tmp_path)
    lengths = {run_id(plans[0]): 3}
    embedding = plans[0].embedding_model
    known = Counter(tmp_path, lengths, {embedding: Price(input=1_000_000)})
    known(1, 1, run_id(plans[0]))
    assert known.cost == known.tokens > 0
    unknown = Counter(tmp_path, lengths, {})
    unknown(1, 1, run_id(plans[0]))
    assert "cost unknown" in unknown.line()


def test_without_a_terminal_or_notebook_there_is_no_progress(
    tmp_path: Path, plans: list[RunPlan], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_of(plans, tmp_path) as progress:
        assert progress is None
    md.sweep(plans[:1], directory=tmp_path)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_one_line_that_changes(
    tmp_path: Path, plans: list[RunPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Display(ModuleType):
        @staticmethod
        def Pretty(text: str) -> str:  # noqa: N802 - IPython's name
            return text

        @staticmethod
        def display(text: str, *, display_id: bool) -> Any:
            assert display_id
            said.append(text)
            return SimpleNamespace(update=said.append)

    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", Display("IPython.display"))
    md.sweep(plans[:1], directory=tmp_path)
    assert said[0].startswith("0/1 run ")
    assert said[-1].startswith("100 %  1/1 run ")


def test_a_function_is_called_after_each_run(tmp_path: Path, plans: list[RunPlan]) -> None:
    seen: list[tuple[int, int, str]] = []
    md.sweep(plans, directory=tmp_path, progress=lambda *said: seen.append(said))
    assert [(done, of) for done, of, _ in seen] == [(1, 2), (2, 2)]
    assert {id for _, _, id in seen} == {run_id(plan) for plan in plans}  # in the order in which they end


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("prices", [None, {}])
def test_a_terminal_shows_bar_percentage_runs_and_the_remaining_time_on_one_line(
    width: int, prices: dict[str, Price] | None, tmp_path: Path, plans: list[RunPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    with progress_of(plans, tmp_path, prices=prices) as progress:
        md.sweep(plans, directory=tmp_path, progress=progress or False)
    seen = [line for line in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen.getvalue()).splitlines() if "100%" in line]
    last = seen[-1].rsplit("\r", 1)[-1]
    assert len(last) <= width
    assert re.match(r"━{8,24} +100% 2/2 runs  .*remaining 0:00:00$", last)


def test_what_does_not_fit_is_left_out_of_the_line_from_the_least_important_on(tmp_path: Path) -> None:
    counter = Counter(tmp_path, {"a": 3}, {})
    whole = counter.line()
    assert "0 calls, 0 tokens" in whole
    assert counter.line(len(whole)) == whole
    assert counter.line(len(whole) - 1) == "0/1 run  0.0 sessions/min  cost 0.00  remaining: unknown yet"
    assert counter.line(50) == "0/1 run  cost 0.00  remaining: unknown yet"
    assert counter.line(40) == "0/1 run  remaining: unknown yet"
    assert counter.line(20) == "0/1 run"
