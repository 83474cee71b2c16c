from pathlib import Path
from typing import Any

import pytest

from memorydojo.errors import SavedRunError
from memorydojo.judging import OverlapJudge, label_run
from memorydojo.objective import JudgedSession, Objective
from memorydojo.record import Action, MemoryEntry, MemoryItem, SnapshotDifference
from memorydojo.runs import Run, RunDirectory, load_runs
from memorydojo.runs.model import Failure
from memorydojo.runs.table import SESSION_TABLE
from memorydojo.trajectory import Session, Trajectory


class Said(Objective):
    def met(self, session: JudgedSession) -> bool:
        return self.id in (session.final_response or "")


OBJECTIVES: dict[str, Objective] = {
    "workspace": Said("workspace", domain="workspace", description=""),
    "travel": Said("travel", domain="travel", description=""),
}


class OtherJudge(OverlapJudge):
    id = "other"
    version = "3"


def poisoned_run(root: Path, make: Any, *, ends: bool = True) -> Run:
    plan = make.plan(4)
    text = plan.insertion.payload.text
    poison = Action(function="f", arguments={}, observation="o", poisoned=True)
    entry = MemoryEntry(id="e", kind="k", text=text)
    item = MemoryItem(entry_ids=("e",), text=text, kind="k", rank=0)
    failure = Failure(stage="agent", type="E", message="m")
    with RunDirectory(root).begin(make.header(plan)) as writer:
        writer.append(make.session(1, actions=(poison,), difference=SnapshotDifference(created=(entry,))))
        writer.append(make.session(2, items=(item,), final_response="workspace"))
        writer.append(make.session(3, items=(item,), completed=False, utility=False, failure=failure))
        if ends:
            writer.end(make.end("stopped"))
    return load_runs(root)[writer.header.run_id]


def test_one_row_for_each_planned_session_also_for_those_that_never_happened(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    table = load_runs(tmp_path).session_table()
    assert list(table["session"]) == [1, 2, 3, 4]
    assert list(table["inserted"]) == [True] * 4
    assert list(table["retrieved"]) == [False, True, False, False]
    assert list(table["retrieved_original"]) == [False, True, False, False]
    assert list(table["objective_met"]) == [False, True, False, False]
    assert list(table["completed"]) == [True, True, False, False]
    assert list(table["utility"]) == [True, True, False, False]
    assert list(table["failed_stage"].fillna("")) == ["", "", "agent", "not begun"]
    assert list(table["n_items"]) == [0, 1, 1, 0]
    assert list(table["met_travel"]) == [False] * 4
    first = table.iloc[0]
    assert first["insertion_label"] == "exact"
    assert first["judge"] == "overlap 2"
    assert first["condition"] == "poisoned"
    assert bool(first["payload_inserted"])
    assert bool(first["simulated"])


def test_table_has_the_declared_columns_with_their_dtypes(make: Any, tmp_path: Path) -> None:
    poisoned_run(tmp_path, make)
    table = load_runs(tmp_path).session_table(objectives=OBJECTIVES)
    assert {c.name for c in SESSION_TABLE} - {"memory_correct"} <= set(table.columns)
    assert str(table["insertion_session"].dtype) == "Int64"
    assert str(table["n_items"].dtype) == "int64"
    assert str(table["retrieved"].dtype) == "bool"


def test_table_of_no_runs_has_its_columns(tmp_path: Path) -> None:
    RunDirectory(tmp_path)
    table = load_runs(tmp_path).session_table()
    assert len(table) == 0
    assert "retrieved" in table.columns


def test_clean_run_has_predicates_and_no_attack(make: Any, tmp_path: Path) -> None:
    with RunDirectory(tmp_path).begin(make.header(make.plan(2, t0=None))) as writer:
        writer.append(make.session(1, final_response="travel"))
    table = load_runs(tmp_path).session_table(objectives=OBJECTIVES)
    assert list(table["condition"]) == ["clean", "clean"]
    assert table["insertion_session"].isna().all()
    assert list(table["met_travel"]) == [True, False]
    assert not table["objective_met"].any()


def test_flags_of_planned_sessions_are_shown(make: Any, tmp_path: Path) -> None:
    flagged = Session(domain="workspace", task_id="a", flags=frozenset({"stale-success", "drift"}))
    trajectory = Trajectory(id="t", collection="c", sessions=(flagged, Session(domain="workspace", task_id="b")))
    RunDirectory(tmp_path).begin(make.header(make.plan(t0=None, trajectory=trajectory))).close()
    assert list(load_runs(tmp_path).session_table(objectives=OBJECTIVES)["flags"]) == ["drift,stale-success", ""]


def test_run_without_labels_is_labelled_on_the_fly_and_nothing_is_written(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make, ends=False)
    table = load_runs(tmp_path).session_table(objectives=OBJECTIVES)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    assert load_runs(tmp_path).session_table().equals(table)


def test_shipped_objectives_are_the_default_of_labelling_on_the_fly(make: Any, tmp_path: Path) -> None:
    poisoned_run(tmp_path, make)
    assert {"met_workspace", "met_slack"} <= set(load_runs(tmp_path).session_table().columns)


def test_objective_that_a_run_was_not_evaluated_for_is_null(make: Any, tmp_path: Path) -> None:
    first = poisoned_run(tmp_path, make)
    first.save_labels(label_run(first, judge=OverlapJudge(), objectives=OBJECTIVES))
    RunDirectory(tmp_path).begin(make.header(make.plan(2, t0=None))).close()
    table = load_runs(tmp_path).session_table(objectives={"workspace": OBJECTIVES["workspace"]})
    assert table.groupby("condition")["met_travel"].count().to_dict() == {"clean": 0, "poisoned": 4}


def test_labels_of_several_judges_sit_side_by_side(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    for judge in (OverlapJudge(), OtherJudge()):
        run.save_labels(label_run(run, judge=judge, objectives=OBJECTIVES))
    assert run.judges() == ["other", "overlap"]
    assert run.labels("other").judge_version == "3"
    assert set(load_runs(tmp_path).session_table("other")["judge"]) == {"other 3"}


def test_missing_labels_of_another_judge_name_it_and_the_remedy(make: Any, tmp_path: Path) -> None:
    poisoned_run(tmp_path, make)
    with pytest.raises(SavedRunError, match=r"'other' \(it has: none\).*label_run"):
        load_runs(tmp_path).session_table("other")


def test_labels_of_other_sessions_are_refused(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    labels = label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES)
    for wrong in ({"sessions": labels.sessions[:1]}, {"run_id": "x"}, {"payload_sha256": None}):
        with pytest.raises(SavedRunError, match="belong to another run or to other sessions"):
            run.save_labels(labels.model_copy(update=wrong))


def test_labels_of_two_versions_of_a_judge_are_not_mixed(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    labels = label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES)
    run.save_labels(labels.model_copy(update={"judge_version": "0"}))
    RunDirectory(tmp_path).begin(make.header(make.plan(2, t0=None))).close()
    with pytest.raises(SavedRunError, match="several versions"):
        load_runs(tmp_path).session_table(objectives=OBJECTIVES)


def test_offline_labels_of_lost_sessions_are_made_again_on_the_fly(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make, ends=False)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    sessions = run.directory / "sessions.jsonl"
    sessions.write_bytes(sessions.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="the last line is incomplete"):
        table = load_runs(tmp_path).session_table(objectives=OBJECTIVES)
    assert list(table["completed"]) == [True, True, False, False]
    assert list(table["failed_stage"].fillna("")) == ["", "", "not begun", "not begun"]


def test_damaged_offline_labels_of_a_complete_run_are_an_error(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    (run.directory / "labels" / "overlap.json").write_text("{}")
    with pytest.raises(SavedRunError, match=r"overlap\.json"):
        load_runs(tmp_path).session_table(objectives=OBJECTIVES)


def test_labels_of_an_interrupted_attempt_are_set_aside_with_it(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make, ends=False)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    RunDirectory(tmp_path).begin(run.header).close()
    assert load_runs(tmp_path)[0].judges() == []
    assert (run.directory / "labels.interrupted-1" / "overlap.json").exists()


def test_data_that_is_no_json_is_refused(make: Any, tmp_path: Path) -> None:
    action = Action(function="f", arguments={"x": object()}, observation="")
    with RunDirectory(tmp_path).begin(make.header()) as writer, pytest.raises(SavedRunError, match="must be JSON data"):
        writer.append(make.session(1, actions=(action,)))


def test_the_table_says_how_the_payload_was_delivered_and_where_it_was_lost(make: Any, tmp_path: Path) -> None:
    run = poisoned_run(tmp_path, make)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=OBJECTIVES))
    table = load_runs(tmp_path).session_table()
    assert table["failed_check"].isna().tolist() == [True, False, False, False]
    assert table["failed_check"].tolist()[1:] == ["none", "ran", "ran"]
    assert table["retrieved_routes"].tolist() == ["", "primary", "", ""]
    assert table["retrieved_kinds"].tolist() == ["", "k", "", ""]
