"""Dry runs: what is counted, and what estimates come from."""

from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.planning import SweepPlan, dry_run
from memorydojo.planning.estimate import measured_offline
from memorydojo.planning.growth import Asked, Line


def plan(**change: object) -> SweepPlan:
    fields = {
        "trajectories": ["banking-003-01"],
        "memories": ["full_context"],
        "objectives": ["own-domain"],
        "payloads": ["seed-1", "seed-2"],
        "insertion": "middle",
        "clean": True,
    }
    return SweepPlan.model_validate({**fields, **change})


def test_a_line_goes_through_points_and_never_below_zero() -> None:
    line = Line.through([(1, 10.0), (2, 12.0), (3, 14.0)])
    assert (line.first, line.growth, line.at(5)) == (10.0, 2.0, 18.0)
    assert Line.through([(1, 10.0), (2, 12.0), (3, 14.0)], level=True).at(9) == 12.0
    assert Line(first=1, growth=-1).at(5) == 0
    assert Line.through([]).at(3) == 0


def test_tokens_sent_grow_and_calls_do_not() -> None:
    asked = Asked.through((t, {"calls": t, "input_tokens": 100 * t, "output_tokens": t}) for t in (1, 2, 3))
    assert (asked.calls.growth, asked.output_tokens.growth, asked.input_tokens.growth) == (0, 0, 100)


def test_sessions_before_a_middle_insertion_are_shared_where_that_is_exact() -> None:
    # Three runs of three sessions; the first session of all three is the same.
    assert dry_run(plan()).shared.task == 2
    assert dry_run(plan(), share=False).shared.task == 0
    real = dry_run(plan(models="gpt"))
    assert (real.shared.task, real.shareable.task, real.models) == (0, 2, ("gpt",))


def test_shared_sessions_are_estimated_once() -> None:
    def calls(share: bool) -> int:
        report = dry_run(plan(memories="mem0", models="gpt"), share=share)
        return sum(e.calls for e in report.estimates if e.role == "memory")

    assert calls(False) - calls(True) == pytest.approx(
        2 * measured_offline().memories["mem0"].memory.calls.first, abs=1
    )


def test_every_memory_system_that_was_measured_was_asked_something() -> None:
    measured = measured_offline()
    assert {"vector", "mem0", "a-mem", "graphiti", "memora"} <= measured.memories.keys()
    for memory, asked in measured.memories.items():
        assert asked.agent.calls.first > 1, memory
        assert asked.sessions == 70, memory
    assert measured.memories["mem0"].memory.calls.first >= 1
    assert "simulated" in measured.about.lower()


def test_a_memory_system_that_nobody_measured_is_named_and_in_no_sum() -> None:
    report = dry_run(plan(memories=["letta", "vector"]))
    assert report.not_estimated == ("letta",)
    assert {e.memory for e in report.estimates} == {"vector"}


def test_what_lies_beyond_the_measured_sessions_is_said_to_be_extrapolated() -> None:
    report = dry_run(plan(trajectories="workspace-035-01", memories="vector"))
    assert {e.basis for e in report.estimates} == {
        "measured offline with the simulator, 70 sessions, extrapolated beyond session 20"
    }


def test_saved_runs_are_the_basis_where_there_are_some(tmp_path: Path) -> None:
    md.sweep(plan(objectives=[], payloads=[], memories="vector"), directory=tmp_path)
    report = dry_run(plan(memories="vector"), directory=tmp_path)
    assert (report.runs, report.done) == (3, 1)
    assert {e.basis for e in report.estimates} == {f"1 saved run in {tmp_path}, 3 sessions"}
    embedding = next(e for e in report.estimates if e.role == "embedding")
    used = [u for s in md.load_runs(tmp_path)[0].sessions for u in s.usage if u.role == "memory"]
    # Two runs are left. They go on from the first session of a run that starts anew, as it left no checkpoint.
    assert embedding.calls == pytest.approx(sum(u.calls for u in used) / 3 * 5, abs=1)


def test_runs_that_are_done_are_not_estimated(tmp_path: Path) -> None:
    small = plan(objectives=[], payloads=[])
    md.sweep(small, directory=tmp_path)
    report = dry_run(small, directory=tmp_path)
    assert (report.done, report.estimates) == (1, ())
