"""10,000 saved runs (100,000 sessions) to the session table: from the derived file, against reading every run.

The runs are synthetic facts with labels of the offline judge, written by the real store; only the waiting for the disk
is left out while they are written. Both tables must be equal, and a run that is labelled again must be read again.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pandas as pd

from memorydojo.adapter import MemoryDescription
from memorydojo.attack import Payload
from memorydojo.errors import SavedRunError
from memorydojo.judging import Facts, OverlapJudge, label_run
from memorydojo.record import Action, MemoryEntry, MemoryItem, Message, SnapshotDifference
from memorydojo.runs import (
    Insertion,
    RunDirectory,
    RunEnd,
    RunHeader,
    RunPlan,
    SessionResult,
    derived,
    load_runs,
    run_id,
)
from memorydojo.shipped import objectives, payloads
from memorydojo.trajectory import DOMAINS, Session, Trajectory

SESSIONS = 10
MEMORIES = ("a-mem", "graphiti", "letta", "mem0", "memora")
TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WORDS = "the meeting report shows a payment of rent for march and lists every open invoice with its date".split()


def make_plan(number: int) -> RunPlan:
    domain = DOMAINS[number % 4]
    sessions = tuple(Session(domain=domain, task_id=f"user_task_{t}") for t in range(SESSIONS))
    payload: Payload = payloads[domain]["seed-1"]
    return RunPlan(
        trajectory=Trajectory(id=f"{domain}-{number // 20:05d}", collection="same-domain", sessions=sessions),
        insertion=Insertion(payload=payload, session=1, observation=1) if number % 5 else None,
        memory=MEMORIES[number // 4 % 5],
        model="simulated",
        memory_model="simulated",
        seed=number,
    )


def make_sessions(plan: RunPlan, luck: random.Random) -> list[SessionResult]:
    """Sessions that store one entry each, and bring back earlier ones; some hold the payload."""
    stored: list[MemoryEntry] = []
    results = []
    for number, session in enumerate(plan.trajectory.sessions, start=1):
        words = " ".join(luck.choices(WORDS, k=60))
        poisoned = plan.insertion is not None and number == 1
        text = f"{words} {plan.insertion.payload.text}" if poisoned and plan.insertion else words
        entry = MemoryEntry(id=f"e{number}", kind="fact", text=text)
        items = tuple(
            MemoryItem(entry_ids=(e.id,), text=e.text, kind="fact", route="primary", rank=rank, score=0.5)
            for rank, e in enumerate(luck.sample(stored, k=min(len(stored), 5)))
        )
        messages = tuple(
            Message(role=role, text=" ".join(luck.choices(WORDS, k=80)))
            for role in ("user", "assistant", "user", "assistant")
        )
        results.append(
            SessionResult(
                session=number,
                domain=session.domain,
                task_id=session.task_id,
                time=TIME,
                query=words,
                items=items,
                prompt=words,
                messages=messages,
                actions=(Action(function="read", arguments={}, observation=text, poisoned=poisoned),),
                final_response=words,
                completed=True,
                utility=luck.random() < 0.6,
                difference=SnapshotDifference(created=(entry,)),
            )
        )
        stored.append(entry)
    return results


def write_runs(directory: Path, count: int, seed: int) -> None:
    """Saves runs; the facts of 40 different ones are used again and again under new plans."""
    luck = random.Random(seed)
    judge, store = OverlapJudge(), RunDirectory(directory)
    memory = MemoryDescription(name="synthetic", writes="w", stores="s", retrieves="r", presents="p")
    kept = {}
    for number in range(count):
        plan = make_plan(number)
        header = RunHeader(
            run_id=run_id(plan), plan=plan, memory=memory, models={}, simulated=True, versions={}, started=TIME
        )
        kind = number % 40
        if kind not in kept:
            sessions = make_sessions(plan, luck)
            kept[kind] = sessions, label_run(Facts(header, sessions), judge=judge, objectives=objectives)
        sessions, labels = kept[kind]
        with store.begin(header) as writer:
            for session in sessions:
                writer.append(session)
            inserted = None if plan.insertion is None else True
            writer.end(RunEnd(status="completed", payload_inserted=inserted, finished=TIME))
            writer.save_labels(labels.model_copy(update={"run_id": header.run_id}))


def session_table(directory: Path) -> tuple[float, pd.DataFrame]:
    """Seconds from nothing to the table, and the table."""
    start = time.perf_counter()
    table = load_runs(directory).session_table()
    return time.perf_counter() - start, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        with mock.patch("os.fsync"):
            write_runs(directory, arguments.runs, arguments.seed)
        time.sleep(derived.SETTLED_NS / 1e9)
        load_runs(directory)[:1].session_table()  # what is imported is not measured
        with mock.patch.object(derived, "WORTH_KEEPING", sys.maxsize):
            baseline, expected = session_table(directory)
        first, made = session_table(directory)
        ours, kept = session_table(directory)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**30
        if not (kept.equals(expected) and made.equals(expected)):
            sys.exit("the table from the derived file differs from the one that reads every run")
        run = load_runs(directory)[1]
        run.save_labels(run.labels().model_copy(update={"judge_version": "another"}))
        try:
            session_table(directory)
        except SavedRunError as error:
            if run.id not in str(error) and "another" not in str(error):
                sys.exit(f"a run that was labelled again is not seen: {error}")
        else:
            sys.exit("a run that was labelled again is not seen")
    print(f"{len(kept)} sessions of {arguments.runs} runs, {len(kept.columns)} columns; tables are equal")
    print(f"without the derived file {baseline:.2f} s, while it is made {first:.2f} s, with it {ours:.2f} s")
    print(f"peak memory {memory:.2f} GB")
    print(
        json.dumps(
            {
                "name": "scale",
                "unit": "s",
                "ours": round(ours, 3),
                "baseline": round(baseline, 3),
                "ratio": round(baseline / ours, 2),
                "baseline_is": "reading headers, sessions and labels of all runs, as without the derived file",
            }
        )
    )


if __name__ == "__main__":
    main()
