"""The shipped experiments are exactly the runs that the paper's tables count."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.history import HeldOutQuestion, History, HistorySession, Turn
from memorydojo.planning import Expansion, dry_run, expand, experiment, experiment_names

MEMORIES = ("a-mem", "graphiti", "letta", "mem0", "memora")

#: Printed percentages of the paper, and the count over the runs of one memory system that each of them is.
SAME_DOMAIN_RUNS, CROSS_DOMAIN_RUNS = 93, 124


def _per_row(expansion: Expansion) -> Counter[tuple[str, str, str]]:
    """Runs by row of a table: model, memory system, and source of the payload."""
    return Counter(
        (plan.model, plan.memory, plan.insertion.payload.source if plan.insertion else "clean")
        for plan in expansion.plans.values()
    )


def _is_whole(percentage: float, of: int) -> bool:
    """Whether a percentage that is printed with two digits is a whole count over so many runs."""
    return any(round(100 * count / of, 2) == percentage for count in range(of + 1))


def test_table_1_has_two_unoptimized_payloads_and_one_optimized_for_each_trajectory() -> None:
    rows = _per_row(expand(experiment("table-1")))
    # ISR, ASR and BR of A-MEM, unoptimized, then optimized.
    assert all(_is_whole(p, 2 * SAME_DOMAIN_RUNS) for p in (98.92, 25.27, 45.70))
    assert all(_is_whole(p, SAME_DOMAIN_RUNS) for p in (97.85, 19.35, 70.97))
    assert rows == {
        ("gpt-5.6-luna", memory, source): runs
        for memory in MEMORIES
        for source, runs in (("seed", 2 * SAME_DOMAIN_RUNS), ("optimized", SAME_DOMAIN_RUNS))
    }


def test_table_6_has_four_models_with_one_optimized_payload() -> None:
    models = ("gpt-5.6-luna", "gpt-5.4-mini", "deepseek-v4-flash-0731", "glm-5.3-flash")
    # ISR, ASR and BR of A-MEM and of Memora with the other three models.
    assert all(_is_whole(p, SAME_DOMAIN_RUNS) for p in (96.77, 51.61, 53.76, 98.92, 72.04, 84.95, 16.13, 43.01))
    assert _per_row(expand(experiment("table-6"))) == {
        (model, memory, "optimized"): SAME_DOMAIN_RUNS for model in models for memory in MEMORIES
    }


def test_table_7_inserts_at_the_midpoint() -> None:
    expansion = expand(experiment("table-7"))
    assert all(_is_whole(p, SAME_DOMAIN_RUNS) for p in (92.47, 21.51, 51.61, 87.10, 22.58, 47.31))
    assert _per_row(expansion) == {("gpt-5.6-luna", memory, "optimized"): SAME_DOMAIN_RUNS for memory in MEMORIES}
    for plan in expansion.plans.values():
        assert plan.insertion is not None
        assert plan.insertion.session == (len(plan.trajectory) + 1) // 2


def test_tables_8_and_9_run_each_trajectory_under_each_objective() -> None:
    expansion = expand(experiment("tables-8-9"))
    assert all(_is_whole(p, CROSS_DOMAIN_RUNS) for p in (96.77, 7.26, 46.77, 49.19, 4.84, 32.26, 60.48))
    assert _per_row(expansion) == {("gpt-5.6-luna", memory, "optimized"): CROSS_DOMAIN_RUNS for memory in MEMORIES}
    objectives = Counter(p.insertion.payload.objective for p in expansion.plans.values() if p.insertion)
    assert objectives == dict.fromkeys(("workspace", "travel", "banking", "slack"), 31 * len(MEMORIES))


def test_table_2_runs_each_history_under_each_objective_and_clean() -> None:
    expansion = expand(experiment("table-2"))
    # ISR, ASR and BR of A-MEM, Letta and Memora.
    assert all(_is_whole(p, CROSS_DOMAIN_RUNS) for p in (97.58, 8.06, 31.45, 95.97, 10.48, 96.77, 20.16, 45.16))
    assert _per_row(expansion) == {
        ("gpt-5.6-luna", memory, source): runs
        for memory in MEMORIES
        for source, runs in (("optimized", CROSS_DOMAIN_RUNS), ("clean", 31))
    }


def test_table_2_without_its_histories_says_so_and_how_to_get_them(tmp_path: Path) -> None:
    report = dry_run(experiment("table-2", folder=tmp_path))
    assert report.history_sessions == 0
    missing = report.missing[0]
    assert (missing.kind, missing.path) == ("trajectory", tmp_path / "history-prefixed.json")
    assert missing.command.startswith("memorydojo histories prepare ")


def test_table_2_counts_the_same_with_prepared_histories_and_then_their_sessions(tmp_path: Path) -> None:
    def history(number: int) -> History:
        time = datetime(2023, 5, 1, tzinfo=UTC)
        turns = (Turn(role="user", text=f"I have {number} bicycles."),)
        question = HeldOutQuestion(id=f"q{number}", type="multi-session", text="How many?", reference=number)
        sessions = tuple(HistorySession(id=f"s{n}", time=time, turns=turns) for n in range(2))
        return History(id=f"q{number}", question=question, sessions=sessions)

    md.trajectories.pair([history(n) for n in range(31)]).save(tmp_path / "history-prefixed.json")
    with_histories = experiment("table-2", folder=tmp_path)
    report = dry_run(with_histories, share=True)
    assert _per_row(expand(with_histories)) == _per_row(expand(experiment("table-2", folder=tmp_path / "none")))
    assert [missing.kind for missing in report.missing] == ["payload"] * 20
    # Each of 5 runs of a trajectory and memory begins with the history, which is written once for them all.
    assert report.history_sessions == 5 * 31 * 5 * 2
    assert report.shared.history == 5 * 31 * 4 * 2


def test_table_2_runs_on_the_histories_that_ship() -> None:
    shipped = md.trajectories.load("history-prefixed")
    report = dry_run(experiment("table-2").on_trajectories("history-prefixed"))
    assert report.runs == len(shipped) * 5 * len(MEMORIES)
    histories = [t.history.n_sessions for t in shipped if t.history is not None]
    assert report.history_sessions == sum(histories) * 5 * len(MEMORIES)


@pytest.mark.parametrize(
    ("name", "later"), [("table-1", {"seed": 1418, "optimized": 709}), ("tables-8-9", {"optimized": 2596})]
)
def test_later_sessions_are_the_denominators_of_the_paper(name: str, later: dict[str, int]) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for plan in expand(experiment(name)).plans.values():
        assert plan.insertion is not None
        found[plan.memory, plan.insertion.payload.source] += len(plan.trajectory) - plan.insertion.session
    assert found == {(memory, source): count for memory in MEMORIES for source, count in later.items()}


def test_dry_run_counts_the_runs_whose_payloads_are_missing_and_names_the_files(tmp_path: Path) -> None:
    report = dry_run(experiment("tables-8-9", folder=tmp_path))
    assert (report.runs, report.task_sessions) == (5 * CROSS_DOMAIN_RUNS, 5 * 4 * 680)
    assert len(report.missing) == len(MEMORIES) * 4
    missing = report.missing[0]
    assert missing.path == tmp_path / "optimized" / "a-mem" / "workspace.json"
    assert missing.command.startswith("memorydojo optimize --memory a-mem --objective workspace --output ")


def test_every_experiment_that_ships_has_a_test_of_its_counts() -> None:
    assert experiment_names() == ["table-1", "table-2", "table-6", "table-7", "tables-8-9"]
