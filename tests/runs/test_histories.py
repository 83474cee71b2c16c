"""Histories beside the runs, and what is saved of a history and of the held-out question."""

import json
from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import SavedRunError
from memorydojo.history import HistoryPrefix
from memorydojo.record import MemoryEntry, Snapshot, SnapshotDifference
from memorydojo.runs import Run, RunDirectory, RunPlan, load_runs, run_id
from memorydojo.runs.histories import history_file, keep_history, saved_history
from memorydojo.runs.model import HistoryResult, QuestionResult
from tests.history_tools import START, history


def entry(id: str, text: str = "x") -> MemoryEntry:
    return MemoryEntry(id=id, kind="k", text=text)


def told(number: int, **fields: Any) -> HistoryResult:
    change = SnapshotDifference(created=(entry(f"e{number}"),))
    return HistoryResult(
        **{"number": number, "id": f"s{number}", "time": START, "completed": True, "difference": change, **fields}
    )


def asked(answer: str | None = "An answer.") -> QuestionResult:
    question = history().question
    return QuestionResult(question=question, query=question.text, prompt="p", answer=answer, completed=True)


@pytest.fixture
def plan(make: Any) -> RunPlan:
    plain = make.plan(2)
    trajectory = plain.trajectory.model_copy(update={"history": HistoryPrefix.of(history())})
    return plain.model_copy(update={"trajectory": trajectory})  # type: ignore[no-any-return]


def save(root: Path, make: Any, plan: RunPlan) -> Run:
    store = RunDirectory(root)
    store.history_of(plan)
    with store.begin(make.header(plan)) as writer:
        for number in (1, 2, 3):
            writer.append_history(told(number))
        writer.append(make.session(1))
        writer.append(make.session(2))
        writer.save_question(asked())
        writer.end(make.end())
    return load_runs(root)[0]


def test_a_history_is_kept_once_by_its_content(tmp_path: Path, plan: RunPlan) -> None:
    store = RunDirectory(tmp_path)
    prefix = plan.trajectory.history
    assert prefix is not None
    assert store.history_of(plan) == history()
    before = history_file(tmp_path, prefix).stat()
    store.history_of(plan)
    assert history_file(tmp_path, prefix).stat().st_mtime_ns == before.st_mtime_ns
    assert [p.name for p in (tmp_path / "histories").iterdir()] == [f"{prefix.sha256}.json"]


def test_a_plan_from_another_process_finds_the_history_in_the_directory(tmp_path: Path, plan: RunPlan) -> None:
    RunDirectory(tmp_path).history_of(plan)
    assert RunDirectory(tmp_path).history_of(RunPlan.model_validate(plan.model_dump())) == history()


def test_the_id_of_a_run_depends_on_the_content_of_its_history(plan: RunPlan) -> None:
    other = plan.trajectory.model_copy(update={"history": HistoryPrefix.of(history(4))})
    assert run_id(plan) != run_id(plan.model_copy(update={"trajectory": other}))
    assert run_id(plan) == run_id(RunPlan.model_validate(plan.model_dump()))


def test_what_happened_comes_back(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    run = save(tmp_path, make, plan)
    assert run.history == [told(1), told(2), told(3)]
    assert run.question == asked()
    assert run.recorded_history() == history()
    assert len(run.sessions) == 2


def test_the_saved_plan_is_small(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    run = save(tmp_path, make, plan)
    assert "harbour" not in (run.directory / "run.json").read_text()


def test_snapshots_begin_with_what_the_history_left(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    run = save(tmp_path, make, plan)
    left = Snapshot(entries={f"e{n}": entry(f"e{n}") for n in (1, 2, 3)})
    assert run.memory_after_history() == left
    assert run.snapshots() == [left, left]


def test_facts_can_be_read_without_the_history_and_the_error_says_what_is_missing(
    make: Any, tmp_path: Path, plan: RunPlan
) -> None:
    run = save(tmp_path, make, plan)
    assert plan.trajectory.history is not None
    history_file(tmp_path, plan.trajectory.history).unlink()
    found = load_runs(tmp_path)[0]
    assert (len(found.history), len(found.sessions), found.question) == (3, 2, asked())
    assert len(load_runs(tmp_path).session_table()) == 2
    with pytest.raises(SavedRunError, match=r"the history 'h-1' is missing: there is no .*Restore histories/"):
        found.recorded_history()
    assert run.id == found.id


def test_a_history_that_was_changed_is_an_error(tmp_path: Path) -> None:
    prefix = HistoryPrefix.of(history())
    keep_history(tmp_path, prefix)
    path = history_file(tmp_path, prefix)
    path.write_text(path.read_text().replace("harbour", "garden"))
    with pytest.raises(SavedRunError, match="does not hold the history that it is named after"):
        saved_history(tmp_path, prefix)


def test_a_damaged_history_is_an_error(tmp_path: Path) -> None:
    prefix = HistoryPrefix.of(history())
    keep_history(tmp_path, prefix)
    history_file(tmp_path, prefix).write_text('{"id": "h-1"}')
    with pytest.raises(SavedRunError, match="is damaged: question"):
        saved_history(tmp_path, prefix)


def test_a_history_that_came_with_nobody_is_an_error(tmp_path: Path) -> None:
    bare = HistoryPrefix.model_validate(HistoryPrefix.of(history()).model_dump())
    with pytest.raises(SavedRunError, match="is missing"):
        keep_history(tmp_path, bare)


def test_history_sessions_are_saved_in_order(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    with RunDirectory(tmp_path).begin(make.header(plan)) as writer:
        writer.append_history(told(1))
        with pytest.raises(SavedRunError, match="found history session 3 where number 2 of 3 was due"):
            writer.append_history(told(3))


def test_a_run_without_history_takes_none(make: Any, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).begin(make.header()) as writer:
        with pytest.raises(SavedRunError, match="number 1 of 0 was due"):
            writer.append_history(told(1))
        with pytest.raises(SavedRunError, match="is not the held-out question of this run"):
            writer.save_question(asked())


def test_a_run_cannot_end_as_completed_before_history_and_question(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    with RunDirectory(tmp_path).begin(make.header(plan)) as writer:
        writer.append(make.session(1))
        writer.append(make.session(2))
        with pytest.raises(SavedRunError, match="after 0 of 3 history sessions"):
            writer.end(make.end())
        for number in (1, 2, 3):
            writer.append_history(told(number))
        with pytest.raises(SavedRunError, match="before its held-out question was asked"):
            writer.end(make.end())


def test_an_interrupted_run_keeps_its_history_beside(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    with RunDirectory(tmp_path).begin(make.header(plan)) as writer:
        writer.append_history(told(1))
    run = save(tmp_path, make, plan)
    assert len(run.history) == 3
    assert len((run.directory / "history.interrupted-1.jsonl").read_text().splitlines()) == 1


def test_a_lost_question_is_an_error(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    run = save(tmp_path, make, plan)
    (run.directory / "question.json").unlink()
    with pytest.raises(SavedRunError, match=r"question\.json is missing"):
        _ = load_runs(tmp_path)[0].question


def test_lost_history_sessions_are_an_error(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    path = save(tmp_path, make, plan).directory / "history.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(SavedRunError, match="holds 2 sessions, but"):
        _ = load_runs(tmp_path)[0].history


def test_the_table_says_whether_the_answer_was_right(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    save(tmp_path, make, plan)
    table = load_runs(tmp_path).session_table()
    assert table["memory_correct"].tolist() == [False, False]
    assert table["history_sessions"].tolist() == [3, 3]
    assert table["history_failed"].tolist() == [0, 0]
    assert table["question_type"].tolist() == ["single-session-user"] * 2


def test_a_question_that_was_never_asked_counts_as_wrong(make: Any, tmp_path: Path, plan: RunPlan) -> None:
    with RunDirectory(tmp_path).begin(make.header(plan)) as writer:
        failed = told(1, completed=False, failure={"stage": "write", "type": "E", "message": "no"})
        writer.append_history(failed)
        writer.end(make.end("stopped"))
    table = load_runs(tmp_path).session_table()
    assert table["memory_correct"].tolist() == [False, False]
    assert table["history_failed"].tolist() == [3, 3]


def test_a_run_without_history_has_no_verdict(make: Any, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).begin(make.header()) as writer:
        for number in (1, 2, 3):
            writer.append(make.session(number))
        writer.end(make.end())
    table = load_runs(tmp_path).session_table()
    assert table["memory_correct"].isna().all()
    assert json.loads(table.to_json(orient="records"))[0]["history_sessions"] == 0
