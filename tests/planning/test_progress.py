"""What progress says: counts, rates, costs and the remaining time."""

import sys
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
