"""One real instance of LongMemEval through the loader and Mem0; the data is not part of this package."""

import os
from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.history import HistoryPrefix
from memorydojo.trajectories import HistoryFile

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "MEMORYDOJO_LONGMEMEVAL"


#: The file that the variable names, or the one beside the checkout.
FILE = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data" / "longmemeval" / "two_instances.json")


@pytest.mark.slow
@pytest.mark.skipif(not FILE.exists(), reason=f"no file of LongMemEval beside the checkout; name one in {VARIABLE}")
def test_a_real_instance_goes_through_mem0(tmp_path: Path) -> None:
    told = min(HistoryFile(FILE), key=lambda history: len(history.sessions))
    assert 38 <= len(told.sessions) <= 62
    trajectory = md.trajectories.load("cross-domain")[0].model_copy(update={"history": HistoryPrefix.of(told)})
    run = md.run(trajectory, "mem0", directory=tmp_path)
    assert [h.completed for h in run.history] == [True] * len(told.sessions)
    assert all(s.completed for s in run.sessions)
    assert run.question is not None
    assert run.question.completed
    assert run.labels().answer is not None
    stored = run.snapshots()[-1]
    assert len(stored.entries) > len(told.sessions)
    for entry in stored.entries.values():
        assert told.question.text not in entry.model_dump_json()
        assert not any(name in entry.model_dump_json() for name in told.evidence)
