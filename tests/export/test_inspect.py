"""An Inspect log opens with Inspect's own reader and says what the runs say."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from inspect_ai.event import (
    ErrorEvent,
    InfoEvent,
    ModelEvent,
    ScoreEvent,
    SpanBeginEvent,
    SpanEndEvent,
    StoreEvent,
    ToolEvent,
)
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log

import memorydojo as md
from memorydojo._display import plain
from memorydojo.cost import usage_table
from memorydojo.errors import InvalidInputError, MissingPackageError
from memorydojo.export import write_inspect
from memorydojo.export._inspect_log import SCORERS
from memorydojo.runs import Run, Runs


@pytest.fixture(scope="module")
def path(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inspect(runs, tmp_path_factory.mktemp("log") / "runs.eval")


@pytest.fixture(scope="module")
def log(path: Path) -> EvalLog:
    return read_eval_log(path, resolve_attachments=True)


def samples(log: EvalLog) -> dict[str, EvalSample]:
    return {str(sample.id): sample for sample in log.samples or []}


def poisoned(runs: Runs) -> Run:
    return next(run for run in runs if run.plan.insertion and len(run.plan.trajectory) == 3)


def test_every_run_is_a_sample(log: EvalLog, runs: Runs) -> None:
    assert [*samples(log)] == [run.id for run in runs]
    assert log.status == "success"
    assert log.results is not None
    assert (log.results.total_samples, log.results.completed_samples) == (4, 4)


def test_simulated_runs_say_so(log: EvalLog) -> None:
    assert log.eval.tags == ["memorydojo", "simulated"]
    assert (log.eval.metadata or {})["memorydojo"]["simulated"] is True
    for sample in samples(log).values():
        assert sample.metadata["simulated"] is True
        assert str(sample.input).startswith("[simulated]")


def test_metrics_are_ours(log: EvalLog, runs: Runs) -> None:
    summary = md.metrics.summarize(runs.session_table(), by=["memory", "model", "condition"])
    assert log.results is not None
    found = {
        (score.name, metric.name): (metric.value, (metric.metadata or {})["low"], (metric.metadata or {})["high"])
        for score in log.results.scores
        for metric in score.metrics.values()
    }
    expected = {
        (name, f"{row['memory']} / {row['model']} / {row['condition']}"): tuple(
            None if pd.isna(row[column]) else row[column] for column in (name, f"{name}_low", f"{name}_high")
        )
        for row in summary.to_dict("records")
        for name in SCORERS.values()
        if not pd.isna(row[name])
    }
    assert found == expected
    assert {name for name, _ in found} == {"ISR", "ASR", "BR", "RSR", "BRT", "BRT_given_R", "TU"}


def test_scores_of_samples_add_up_to_the_metrics(log: EvalLog, runs: Runs) -> None:
    table = runs.session_table()
    for condition, attacked in (("poisoned", True), ("clean", False)):
        (row,) = md.metrics.summarize(table[table["condition"] == condition], intervals=False).to_dict("records")
        of_condition = [s for s in samples(log).values() if s.metadata["condition"] == condition]
        assert len(of_condition) == 2
        for scorer, metric in SCORERS.items():
            scores = [sample.scores[scorer] for sample in of_condition if sample.scores and scorer in sample.scores]
            if not scores:
                assert pd.isna(row[metric])
                continue
            assert attacked or metric == "TU"
            above = sum(score.as_int() for score in scores)
            below = sum((score.metadata or {})["of"] for score in scores)
            assert row[metric] == (above / below if below else pytest.approx(float("nan"), nan_ok=True))


def test_every_session_is_a_span(log: EvalLog, runs: Runs) -> None:
    for run in runs:
        events = samples(log)[run.id].events
        begun = [e for e in events if isinstance(e, SpanBeginEvent)]
        sessions = [e for e in begun if e.type == "session"]
        assert [(e.metadata or {})["session"] for e in sessions] == [result.session for result in run.sessions]
        assert {e.id for e in begun} == {e.id for e in events if isinstance(e, SpanEndEvent)}
        inner = [e.name for e in begun if e.parent_id == sessions[0].id]
        assert inner == ["memory read", "interaction", "memory write"]
        times = [e.timestamp for e in events]
        assert times == sorted(times)


def test_reads_and_writes_of_memory_are_events(log: EvalLog, runs: Runs) -> None:
    run = poisoned(runs)
    events = samples(log)[run.id].events
    reads = [e.data for e in events if isinstance(e, InfoEvent) and e.source == "memory read"]
    writes = [e.data for e in events if isinstance(e, InfoEvent) and e.source == "memory write"]
    labels = run.labels()
    for read, write, result, said in zip(reads, writes, run.sessions, labels.sessions, strict=True):
        assert isinstance(read, dict)
        assert isinstance(write, dict)
        assert read["query"] == result.query
        items = read["items"]
        assert isinstance(items, list)
        assert [i["text"] for i in items if isinstance(i, dict)] == [item.text for item in result.items]
        if said.items:
            assert [i["label"] for i in items if isinstance(i, dict)] == [item.label for item in said.items]
        created = write["created"]
        assert isinstance(created, list)
        assert [e["text"] for e in created if isinstance(e, dict)] == [e.text for e in result.difference.created]
    assert any(said.items for said in labels.sessions)


def test_changes_of_the_store_make_the_final_memory(log: EvalLog, runs: Runs) -> None:
    run = poisoned(runs)
    sample = samples(log)[run.id]
    changes = [change for e in sample.events if isinstance(e, StoreEvent) for change in e.changes]
    memory: dict[str, object] = {}
    for change in changes:
        name = change.path.removeprefix("/memory/")
        if change.op == "remove":
            del memory[name]
        else:
            memory[name] = change.value
    assert sample.store["memory"] == memory
    assert [*memory] == [*run.snapshots()[-1].entries]


def test_what_a_session_came_to_is_an_event_of_its_span(log: EvalLog, runs: Runs) -> None:
    for run in runs:
        events = samples(log)[run.id].events
        about = {e.id: e.metadata or {} for e in events if isinstance(e, SpanBeginEvent) and e.type == "session"}
        outcomes = {e.span_id: e.data for e in events if isinstance(e, InfoEvent) and e.source == "outcome"}
        assert [*outcomes] == [*about]
        for span, said in zip(about, run.labels().sessions, strict=True):
            outcome = outcomes[span]
            assert isinstance(outcome, dict)
            assert outcome.items() <= about[span].items()
            assert outcome["retrieved_original"] == said.retrieved_original


def test_every_score_has_a_span_of_its_name(log: EvalLog) -> None:
    for sample in samples(log).values():
        spans = {e.id: e.name for e in sample.events if isinstance(e, SpanBeginEvent)}
        scores = {e.scorer: spans[e.span_id or ""] for e in sample.events if isinstance(e, ScoreEvent)}
        assert scores == {name: name for name in sample.scores or {}}


def test_viewers_are_told_not_to_trust_the_texts(log: EvalLog) -> None:
    assert log.eval.viewer is not None
    assert log.eval.viewer.trust_content is False


def test_messages_and_calls_are_those_of_the_sessions(log: EvalLog, runs: Runs) -> None:
    run = poisoned(runs)
    sample = samples(log)[run.id]
    said = [message for result in run.sessions for message in result.messages]
    assert [message.role for message in sample.messages] == [message.role for message in said]
    asked = [message.text for message in sample.messages if message.role == "user"]
    assert asked == [result.prompt for result in run.sessions]
    tools = [e for e in sample.events if isinstance(e, ToolEvent)]
    assert [e.function for e in tools] == [m.tool for m in said if m.role == "tool"]
    assert [e.function for e in tools if (e.metadata or {})["payload_entered"]] == [
        a.function for result in run.sessions for a in result.actions if a.poisoned
    ]
    answers = [e.output.completion for e in sample.events if isinstance(e, ModelEvent)]
    assert answers == [m.text for m in said if m.role == "assistant"]


@pytest.mark.slow
def test_histories_and_held_out_questions_are_spans_of_their_own(tmp_path: Path) -> None:
    trajectory = md.trajectories.load("history-prefixed")[0]
    run = md.run(trajectory, "full_context", directory=tmp_path / "runs")
    log = read_eval_log(write_inspect([run], tmp_path / "h.eval"), resolve_attachments=True)
    (sample,) = samples(log).values()
    spans = [e for e in sample.events if isinstance(e, SpanBeginEvent)]
    top = [e.type for e in spans if e.parent_id is None]
    assert top == ["history", *["session"] * len(trajectory), "question", "scorers"]
    assert len([e for e in spans if e.parent_id == spans[0].id]) == len(run.history)
    assert [*sample.store["memory"]] == [*run.snapshots()[-1].entries]
    assert run.question is not None
    assert run.labels().answer is not None
    assert sample.messages[-2].text == run.question.prompt
    assert sample.messages[-1].text == run.question.answer
    assert sample.scores is not None
    assert sample.scores["question correct"].as_int() == int(run.labels().answer.correct)  # type: ignore[union-attr]


@pytest.mark.slow
def test_tokens_are_those_of_the_runs(tmp_path: Path) -> None:
    trajectory = md.trajectories.load("banking")[0]
    run = md.run(trajectory, "vector", directory=tmp_path / "runs")
    log = read_eval_log(write_inspect([run], tmp_path / "h.eval"))
    table = usage_table([run])
    total = {model: (usage.input_tokens, usage.output_tokens) for model, usage in log.stats.model_usage.items()}
    expected = {}
    for model, rows in table.groupby("model"):
        fresh = int(rows["input_tokens"].sum() - rows["cached_tokens"].sum())
        expected[str(model)] = (fresh, int(rows["output_tokens"].sum()))
    assert total == expected
    assert total
    (sample,) = samples(log).values()
    assert sample.model_usage == log.stats.model_usage


def test_hostile_texts_and_failed_sessions_survive(hostile: Path, tmp_path: Path) -> None:
    runs = md.load_runs(hostile)
    log = read_eval_log(write_inspect(runs, tmp_path / "h.eval"), resolve_attachments=True)
    (sample,) = samples(log).values()
    text = runs[0].sessions[0].final_response
    assert text is not None
    assert sample.messages[1].text == text.replace("\ud83d", "\ufffd")
    assert sample.error is not None
    assert log.results is not None
    assert log.results.completed_samples == 0
    assert not list(tmp_path.glob("x"))


def test_a_failure_is_said_where_viewers_look_for_a_traceback(hostile: Path, tmp_path: Path) -> None:
    (sample,) = samples(read_eval_log(write_inspect(md.load_runs(hostile), tmp_path / "h.eval"))).values()
    (event,) = (e for e in sample.events if isinstance(e, ErrorEvent))
    assert sample.error is not None
    assert sample.error.message.startswith("session 3, agent: ")
    assert event.error.message.startswith("agent: ")
    for error in (sample.error, event.error):
        assert error.traceback == error.message
        assert "\x1b" in error.message
        assert error.traceback_ansi == plain(error.message)  # a terminal would obey it


def test_an_export_is_replaced_and_no_other_log_is(path: Path, runs: Runs, log: EvalLog) -> None:
    write_inspect(runs, path)
    assert [p.name for p in path.parent.iterdir()] == ["runs.eval"]
    other = path.with_name("other.eval")
    write_eval_log(log.model_copy(update={"eval": log.eval.model_copy(update={"metadata": None})}), other)
    before = other.read_bytes()
    with pytest.raises(InvalidInputError, match="something else"):
        write_inspect(runs, other)
    assert other.read_bytes() == before
    other.unlink()


def test_what_cannot_be_written_is_refused(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match=r"\.eval"):
        write_inspect(runs, tmp_path / "runs.zip")
    with pytest.raises(InvalidInputError, match="no runs"):
        write_inspect([], tmp_path / "runs.eval")
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(MissingPackageError, match=r"memorydojo\[inspect\]"):
        write_inspect(runs, tmp_path / "runs.eval")
