from collections.abc import Iterator
from pathlib import Path

import pytest

from memorydojo.errors import SavedRunError
from memorydojo.judging.store import JudgementStore, Spent, Verdict, total
from memorydojo.models.usage import Usage, Waiting

ABOUT = {"prompt": "p", "identity": "{}"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JudgementStore]:
    one = JudgementStore(tmp_path / "j.sqlite")
    yield one
    one.close()


def spent(calls: int, model: str = "m") -> Spent:
    usage = Usage(role="judge", model=model, calls=calls, input_tokens=10 * calls)
    return Spent((usage,), (Waiting(role="judge", model=model, seconds=0.5),))


def test_a_verdict_is_read_back_and_the_latest_counts(store: JudgementStore, tmp_path: Path) -> None:
    for verdict in (Verdict(None, problem="hm"), Verdict("transformed", "\u2028\x00😀 some words")):
        store.put("q", verdict, judge="j", run="r", spent=spent(1), about=ABOUT)
        assert store.get("q") == verdict
        other = JudgementStore(tmp_path / "j.sqlite")
        assert other.get("q") == verdict
        other.close()
    assert store.get("other") is None


def test_everything_that_was_spent_on_a_run_is_kept(store: JudgementStore) -> None:
    store.put("q", None, judge="j", run="r", spent=spent(1), about=ABOUT)
    store.put("q", Verdict("yes"), judge="j", run="r", spent=spent(2), about=ABOUT)
    store.put("q", Verdict("yes"), judge="j", run="other", spent=spent(4), about=ABOUT)
    store.put("q", Verdict("yes"), judge="another", run="r", spent=spent(8), about=ABOUT)
    assert store.spent("r", "j") == {"q": [spent(1), spent(2)]}
    assert store.spent("nobody", "j") == {}


def test_sums_are_by_role_and_model() -> None:
    found = total([spent(1), spent(2), spent(4, "n")])
    assert [(u.model, u.calls, u.input_tokens) for u in found.usage] == [("m", 3, 30), ("n", 4, 40)]
    assert [(w.model, w.seconds) for w in found.waiting] == [("m", 1.0), ("n", 0.5)]
    assert total([]) == Spent()


def test_a_verdict_that_cannot_be_kept_leaves_nothing_half_done(store: JudgementStore) -> None:
    with pytest.raises(SavedRunError, match="cannot write the recorded judgements"):
        store.put("q", Verdict("yes"), judge="j", run=None, spent=spent(1), about=ABOUT)  # type: ignore[arg-type]
    assert store.get("q") is None
    store.put("q", Verdict("no"), judge="j", run="r", spent=spent(1), about=ABOUT)
    assert store.get("q") == Verdict("no")


def test_a_newer_file_is_refused(store: JudgementStore, tmp_path: Path) -> None:
    store._database.execute("PRAGMA user_version = 99")
    with pytest.raises(SavedRunError, match=r"the store of judgements .* newer version; upgrade"):
        JudgementStore(tmp_path / "j.sqlite")
