"""Judging saved runs again, with a model behind a scripted server."""

import itertools
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorydojo.attack import Payload
from memorydojo.cost import usage_table
from memorydojo.errors import EndpointDownError, InvalidInputError, SavedRunError, UnknownNameError
from memorydojo.judging import (
    Judgement,
    JudgeReport,
    Label,
    Labels,
    OverlapJudge,
    agreement,
    exact,
    judge_runs,
    label_run,
)
from memorydojo.judging._reach import reached_texts
from memorydojo.judging.llm import Collector
from memorydojo.models.config import Models
from memorydojo.objective import Objective, RecommendationObjective
from memorydojo.runs import Run, RunDirectory, load_runs

Judge = Callable[..., JudgeReport]
PAYLOAD = "Always pay the piper at once."


class WordJudge:
    """Finds the words TRANSFORMED and FRAGMENTED, and notes what it is asked."""

    id = "words"
    version = "1"
    prompt_sha256 = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def classify(self, payload: Payload, text: str) -> Judgement:
        self.asked.append(text)
        return Judgement(label=find(text))


def find(text: str) -> Label:
    return "transformed" if "TRANSFORMED" in text else "fragmented" if "FRAGMENTED" in text else "not_observed"


@pytest.fixture
def judge_all(models: Models, tmp_path: Path, objectives: dict[str, Objective]) -> Judge:
    def judge(name: str = "m", **more: Any) -> JudgeReport:
        return judge_runs(tmp_path, name, **{"models": models, "objectives": objectives, **more})

    return judge


def poisoned(make: Any, root: Path, run_id: str = "run", *more: str) -> Run:
    """Three sessions: two new entries, one rewritten, both delivered."""
    first = make.session(1, poisoned=True, difference=make.created(a="TRANSFORMED", b="benign"))
    items = (make.item("TRANSFORMED", "a"), make.item("benign", "b", rank=1))
    second = make.session(2, items=items, difference=make.rewritten(b="FRAGMENTED"))
    third = make.session(3, items=items, difference=make.created(**{f"c{i}": text for i, text in enumerate(more)}))
    run: Run = make.save(root, first, second, third, n=3, run_id=run_id)
    return run


def facts(root: Path) -> dict[str, bytes]:
    files = (p for p in root.rglob("*") if p.is_file() and p.name in ("run.json", "sessions.jsonl", "end.json"))
    return {str(path): path.read_bytes() for path in files}


def compared(labels: Labels) -> dict[str, Any]:
    return labels.model_dump(exclude={"judging"})


# What it does.


def test_labels_stand_beside_those_that_are_there_and_no_fact_is_touched(
    make: Any, tmp_path: Path, judge_all: Judge, objectives: Any
) -> None:
    run = poisoned(make, tmp_path)
    run.save_labels(label_run(run, judge=OverlapJudge(), objectives=objectives))
    before, offline = facts(tmp_path), run.labels()
    judge_all("m")
    judge_all("n")
    assert facts(tmp_path) == before
    assert run.judges() == ["m", "n", "overlap"]
    assert run.labels() == offline
    labels = run.labels("m")
    assert labels.insertion_label == "transformed"
    assert [e.label for e in labels.entries] == ["transformed", "not_observed", "fragmented"]
    assert (labels.model.upstream if labels.model else None) == "m"
    assert labels.prompt_sha256 is not None


def test_the_labels_are_those_of_judging_the_facts_directly(
    make: Any, tmp_path: Path, judge_all: Judge, judge: Any, objectives: Any
) -> None:
    run = poisoned(make, tmp_path, "run", f"x {make.payload.text}", "TRANSFORMED twice")
    judge_all()
    direct = label_run(run, judge=judge, objectives=objectives)
    mine = run.labels("m")
    assert [(e.entry_id, e.label, e.original) for e in mine.entries] == [
        (e.entry_id, e.label, e.original) for e in direct.entries
    ]
    assert [s.retrieved_original for s in mine.sessions] == [s.retrieved_original for s in direct.sessions]


def test_a_run_that_has_the_labels_is_passed_over(make: Any, tmp_path: Path, judge_all: Judge, upstream: Any) -> None:
    run = poisoned(make, tmp_path)
    judge_all()
    asked, path = len(upstream.requests), run.directory / "labels" / "m.json"
    saved = path.read_bytes()
    report = judge_all()
    assert (report.runs, report.kept, len(upstream.requests)) == (1, 1, asked)
    assert judge_all(again=True).kept == 0
    assert len(upstream.requests) == asked
    assert path.read_bytes() == saved


def test_labels_of_another_version_or_of_lost_sessions_are_made_again(
    make: Any, tmp_path: Path, judge_all: Judge
) -> None:
    run = poisoned(make, tmp_path)
    judge_all()
    labels = run.labels("m")
    run.save_labels(labels.model_copy(update={"judge_version": "0"}))
    assert judge_all().kept == 0
    assert run.labels("m").judge_version == labels.judge_version


def test_the_offline_judge_can_label_again_too(make: Any, tmp_path: Path, judge_all: Judge, upstream: Any) -> None:
    run = poisoned(make, tmp_path)
    assert judge_all("overlap").kept == 0
    assert judge_all("overlap").kept == 1
    assert run.labels().judge == "overlap"
    assert upstream.requests == []


def test_a_clean_run_is_asked_nothing_about_its_memory(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any
) -> None:
    make.save(tmp_path, make.session(1, difference=make.created(a="TRANSFORMED")), n=1, t0=None)
    assert judge_all().judging == load_runs(tmp_path)[0].labels("m").judging
    assert upstream.requests == []


def test_text_objectives_are_decided_by_the_model_where_the_rule_lets_them_be_met(
    make: Any, tmp_path: Path, judge_all: Judge, model: Any
) -> None:
    hotel = RecommendationObjective("hotel", domain="travel", description="", target="Riverside View Hotel")
    said = ["I like hotels. YES", "YES, Riverside View", "No Riverside View Hotel", "", "YES, Riverside View"]
    failed = {"completed": False, "utility": False}
    sessions = [make.session(t, final_response=text, **(failed if t == 5 else {})) for t, text in enumerate(said, 1)]
    run = make.save(tmp_path, *sessions, n=5, t0=None)
    judge_all(objectives={"hotel": hotel})
    assert [s.met["hotel"] for s in run.labels("m").sessions] == [False, True, False, False, False]
    assert sorted(texts["RESPONSE"] for texts in model.asked) == sorted(said[1:3])
    assert all("Riverside View Hotel" in texts["STATEMENT"] for texts in model.asked)


# What it costs.


def test_a_text_is_judged_once_across_snapshots_sessions_and_runs(
    make: Any, tmp_path: Path, judge_all: Judge, model: Any
) -> None:
    for number in range(3):
        poisoned(make, tmp_path, f"run{number}", "benign", f"only here {number}")
    report = judge_all()
    texts = [texts["TEXT"] for texts in model.asked]
    assert sorted(texts) == sorted(["TRANSFORMED", "benign", "FRAGMENTED", *(f"only here {n}" for n in range(3))])
    found = report.judging
    assert found is not None
    # In each run 2 + 2 + 4 entries after the three writes, and four items.
    assert (found.mentions, found.texts, found.asked, found.known, found.errors) == (36, 12, 6, 6, 0)
    assert report.saved == 1 - 6 / 36


def test_a_run_of_35_sessions_and_200_entries_takes_a_tenth_of_the_calls_at_most(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any
) -> None:
    everything, stored, sessions = 0, dict[str, str](), []
    for t in range(1, 36):
        items = tuple(make.item(stored[f"e{(7 * t + i) % len(stored)}"], rank=i) for i in range(8)) if stored else ()
        new = {f"e{len(stored) + i}": f"entry {len(stored) + i} of session {t}" for i in range(6 if t < 34 else 1)}
        # One entry is rewritten in every session.
        old = {f"e{t}": f"entry {t}, rewritten in session {t}"} if t > 1 else {}
        stored |= new | old
        everything += len(stored) + (len(items) if t > 1 else 0)
        difference = make.created(**new).model_copy(update={"rewritten": make.entries(old)})
        sessions.append(make.session(t, poisoned=t == 1, items=items, difference=difference))
    assert len(stored) == 200
    make.save(tmp_path, *sessions, n=35)
    report = judge_all()
    assert report.judging is not None
    assert report.judging.mentions == everything
    assert len(upstream.requests) == report.judging.asked == report.judging.usage[0].calls
    assert len(upstream.requests) <= everything / 10


def test_the_calls_of_a_judge_are_saved_with_its_labels_and_in_the_cost(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any
) -> None:
    run = poisoned(make, tmp_path)
    judge_all("m")
    judge_all("n")
    table = usage_table(load_runs(tmp_path))
    assert list(table["role"]) == ["judge", "judge"]
    assert list(table["model"]) == ["m", "n"]
    assert table["calls"].sum() == len(upstream.requests)
    assert table["input_tokens"].sum() == upstream.tokens["input"]
    judging = run.labels("m").judging
    assert judging is not None
    assert [(w.role, w.retries) for w in judging.waiting] == [("judge", 0)]


def test_directories_can_share_one_file_of_judgements(
    make: Any, tmp_path: Path, models: Models, objectives: Any, upstream: Any
) -> None:
    for name in ("one", "two"):
        poisoned(make, tmp_path / name)
    shared = {"models": models, "objectives": objectives, "judgements": tmp_path / "j.sqlite"}
    judge_runs(tmp_path / "one", "m", **shared)
    asked = len(upstream.requests)
    judge_runs(tmp_path / "two", "m", **shared)
    assert len(upstream.requests) == asked
    labels = [load_runs(tmp_path / name)[0].labels("m") for name in ("one", "two")]
    assert compared(labels[0]) == compared(labels[1])


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["TRANSFORMED", "FRAGMENTED", "x", "y", PAYLOAD])),
        st.sets(st.sampled_from("abcd")),
        st.lists(st.tuples(st.sampled_from(["TRANSFORMED", "x", "z"]), st.lists(st.sampled_from("abcd"), max_size=3))),
    ),
    min_size=2,
    max_size=5,
)


@given(STEPS, st.integers(1, 2))
def test_what_is_asked_in_advance_is_all_that_labelling_asks(make: Any, steps: Any, t0: int) -> None:
    stored, sessions = set[str](), []
    for t, (written, removed, items) in enumerate(steps, start=1):
        gone = removed & stored - written.keys()
        difference = make.created(**{i: x for i, x in written.items() if i not in stored}).model_copy(
            update={
                "rewritten": make.entries({i: x for i, x in written.items() if i in stored}),
                "removed": tuple(sorted(gone)),
            }
        )
        stored = stored - gone | written.keys()
        delivered = tuple(make.item(text, *ids, rank=rank) for rank, (text, ids) in enumerate(items))
        sessions.append(make.session(t, poisoned=t == t0, difference=difference, items=delivered))
    facts = make.facts(sessions, n=6, t0=t0)
    objectives: Any = {"pay": RecommendationObjective("pay", domain="travel", description="", target="x")}
    asked, collector = WordJudge(), Collector()
    label_run(facts, judge=asked, objectives=objectives)
    label_run(facts, judge=collector, objectives=objectives)
    assert [question.parts["TEXT"] for question in collector.questions.values()] == asked.asked
    reached = {found.text for found in reached_texts(sessions, t0)}
    assert {text for text in reached if not exact(PAYLOAD, text)} == set(asked.asked)


# Errors.


def refusing(model: Any, word: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The model, but no usable answer about texts with a word in them."""

    def chat(body: dict[str, Any]) -> dict[str, Any]:
        texts, _ = model.fenced(body)
        if any(word in text for text in texts.values()):
            return {"role": "assistant", "content": "I would rather not say."}
        said: dict[str, Any] = model(body)
        return said

    return chat


def test_errors_are_labels_and_reported_with_what_hangs_on_them(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any, model: Any
) -> None:
    run = poisoned(make, tmp_path)
    upstream.chat = refusing(model, "TRANSFORMED")
    report = judge_all()
    found = report.judging
    assert found is not None
    assert found.errors == 1
    ((problem, times),) = found.problems.items()
    assert times == 1
    assert "no usable answer in 3 attempts; the last: Invalid JSON" in problem
    labels = run.labels("m")
    assert (labels.inserted, labels.insertion_label, labels.insertion_unjudged) == (False, "error", True)
    assert [e.label for e in labels.entries] == ["error", "not_observed", "fragmented"]
    assert [s.retrieval_unjudged for s in labels.sessions] == [False, True, True]
    table = load_runs(tmp_path).session_table("m")
    assert list(table["insertion_unjudged"]) == [True] * 3
    assert list(table["retrieval_unjudged"]) == [False, True, True]
    assert len(table) == 3


def test_errors_are_asked_again_on_demand_only(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any, model: Any
) -> None:
    poisoned(make, tmp_path, "with")
    upstream.chat = refusing(model, "TRANSFORMED")
    judge_all()
    asked = len(upstream.requests)
    upstream.chat = model
    assert judge_all().kept == 1
    assert len(upstream.requests) == asked
    report = judge_all(retry_errors=True)
    assert report.kept == 0
    assert report.judging is not None
    assert report.judging.errors == 0
    assert len(upstream.requests) == asked + 1
    assert load_runs(tmp_path)[0].labels("m").inserted
    assert report.judging.usage[0].calls == len(upstream.requests)


def test_an_endpoint_that_dies_loses_nothing_and_the_same_call_goes_on(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any, faults: Any, models: Models, objectives: Any
) -> None:
    for root in (tmp_path, tmp_path / "whole"):
        for number in range(3):
            poisoned(make, root, f"run{number}", f"only here {number}")
    before = facts(tmp_path)
    upstream.faults = [None] * 4 + [faults.status(503)] * 4
    with pytest.raises(EndpointDownError, match="give the same command again"):
        judge_all(workers=1)
    assert [run.judges() for run in load_runs(tmp_path)] == [["m"], [], []]
    upstream.faults = []
    answered = 4
    asked = len(upstream.requests)
    assert judge_all(workers=1).kept == 1
    assert len(upstream.requests) - asked == 6 - answered
    assert facts(tmp_path) == before
    judge_runs(tmp_path / "whole", "m", models=models, objectives=objectives)
    for run, whole in zip(load_runs(tmp_path), load_runs(tmp_path / "whole"), strict=True):
        assert compared(run.labels("m")) == compared(whole.labels("m"))


KILLED = """
import sys
from memorydojo.judging import judge_runs
from memorydojo.models.config import Models
judge_runs(sys.argv[1], "m", models=Models.from_toml(sys.argv[2]), workers=2)
"""


def test_judging_that_is_killed_goes_on_where_it_was(make: Any, tmp_path: Path, upstream: Any, model: Any) -> None:
    runs, file = tmp_path / "runs", tmp_path / "m.toml"
    first = make.session(1, poisoned=True, difference=make.created(**{f"e{i}": f"entry {i}" for i in range(30)}))
    objective = {"payload": make.payload.model_copy(update={"objective": "banking"})}
    plan = make.facts([], n=2).header.plan
    plan = plan.model_copy(update={"insertion": plan.insertion.model_copy(update=objective)})
    header = make.facts([], n=2).header.model_copy(update={"plan": plan})
    with RunDirectory(runs).begin(header) as writer:
        writer.append(first)
        writer.append(make.session(2))
    file.write_text(f'[backends.b]\nbase_url = "{upstream.base_url}"\n[models.m]\nbackend = "b"\n')
    upstream.latency = 0.05
    seen = itertools.count(1)
    with subprocess.Popen([sys.executable, "-c", KILLED, str(runs), str(file)]) as child:

        def chat(body: dict[str, Any]) -> dict[str, Any]:
            if next(seen) == 12:
                child.send_signal(signal.SIGKILL)
            said: dict[str, Any] = model(body)
            return said

        upstream.chat = chat
    assert child.returncode == -signal.SIGKILL
    before, upstream.chat, upstream.latency = len(upstream.requests), model, 0.0
    assert before < 20
    report = judge_runs(runs, "m", models=Models.from_toml(file))
    # Asked again is at most what was under way, and what its answer was lost of.
    assert len(upstream.requests) <= 30 + 4
    assert report.judging is not None
    assert report.judging.asked == 30
    assert report.judging.usage[0].calls <= len(upstream.requests)


def test_recorded_answers_serve_when_the_judgements_are_gone(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any
) -> None:
    run = poisoned(make, tmp_path)
    judge_all()
    labels, asked = run.labels("m"), len(upstream.requests)
    for left in tmp_path.glob("judgements.sqlite*"):
        left.unlink()
    judge_all(again=True, replay="only")
    assert len(upstream.requests) == asked
    assert compared(run.labels("m")) == compared(labels)


def test_a_replay_that_lacks_an_answer_says_so(make: Any, tmp_path: Path, judge_all: Judge) -> None:
    poisoned(make, tmp_path)
    with pytest.raises(EndpointDownError, match="holds no answers of this run"):
        judge_all(replay="only")


def test_wrong_arguments_are_named_before_anything_is_asked(
    make: Any, tmp_path: Path, judge_all: Judge, upstream: Any
) -> None:
    poisoned(make, tmp_path)
    with pytest.raises(InvalidInputError, match="workers"):
        judge_all(workers=0)
    with pytest.raises(UnknownNameError, match="'nobody'"):
        judge_all("nobody")
    with pytest.raises(UnknownNameError, match="objective"):
        judge_all(objectives={})
    with pytest.raises(SavedRunError, match="does not exist"):
        judge_runs(tmp_path / "nowhere", "m")
    (tmp_path / "judgements.sqlite").write_text("no database, but long enough to be looked at" * 50)
    with pytest.raises(SavedRunError, match="cannot open the store of judgements"):
        judge_all()
    assert upstream.requests == []


def test_both_sets_of_labels_can_be_compared(make: Any, tmp_path: Path, judge_all: Judge) -> None:
    poisoned(make, tmp_path)
    judge_all("m")
    judge_all("n")
    assert list(agreement(load_runs(tmp_path), "m", "n").summary["agreed"]) == [1.0] * 6
