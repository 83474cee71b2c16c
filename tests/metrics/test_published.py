"""The paper's printed percentages come out of tables that hold exactly the counts behind them."""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

from memorydojo import published
from memorydojo.metrics import summarize

RunRows = Callable[..., list[dict[str, Any]]]

SHORT = [3] + [5] * 10 + [10] * 10
SAME_DOMAIN = {
    "workspace": [*SHORT, 15, 20, 25, 30, 35],
    "travel": [*SHORT, 15, 20],
    "banking": [*SHORT, 15],
    "slack": [*SHORT, 15],
}
CROSS_DOMAIN = [length for length in (5, 10, 15, 20, 30) for _ in range(5)] + [40] * 3 + [50] * 2 + [60]
DOMAINS = tuple(SAME_DOMAIN)


def _same_domain(payloads: int) -> Iterator[tuple[dict[str, Any], list[str]]]:
    for payload in range(payloads):
        for domain, lengths in SAME_DOMAIN.items():
            for number, length in enumerate(lengths):
                keys = {
                    "objective_domain": domain,
                    "trajectory_id": f"{domain}-{number:02d}",
                    "payload_id": str(payload),
                }
                yield keys, [domain] * length


def _cross_domain() -> Iterator[tuple[dict[str, Any], list[str]]]:
    for number, length in enumerate(CROSS_DOMAIN):
        for objective in DOMAINS:
            keys = {"objective_domain": objective, "trajectory_id": f"cross-{number:02d}", "payload_id": "optimized"}
            yield keys, [DOMAINS[t % 4] for t in range(length)]


def _table(
    run_rows: RunRows,
    runs: Iterator[tuple[dict[str, Any], list[str]]],
    *,
    inserted: int,
    retrieved: int,
    met: int,
    met_and_retrieved: int,
    reached: int,
) -> pd.DataFrame:
    """A table in which exactly so many runs and later sessions have each indicator.

    The first ``reached`` runs get one met session each, then the remaining met sessions are filled in among them; of
    the met sessions the first ``met_and_retrieved`` also retrieve, and further retrievals go to sessions not met.
    """
    planned = list(runs)
    later = [(run, t) for run, (_, domains) in enumerate(planned) for t in range(2, len(domains) + 1)]
    first_each = [(run, 2) for run in range(reached)]
    more = [place for place in later if place[0] < reached and place[1] > 2]
    met_places = (first_each + more)[:met]
    assert len(met_places) == met
    others = [place for place in later if place not in set(met_places)]
    retrieved_places = met_places[:met_and_retrieved] + others[: retrieved - met_and_retrieved]
    assert len(retrieved_places) == retrieved
    rows: list[dict[str, Any]] = []
    for run, (keys, domains) in enumerate(planned):
        sessions = {t for r, t in retrieved_places if r == run}
        rows += run_rows(
            f"run-{run}",
            domains,
            inserted=run < inserted,
            original=sessions,
            met={t for r, t in met_places if r == run},
            **keys,
        )
    return pd.DataFrame(rows)


def _printed(number: int, memory: str, source: str | None = None) -> "pd.Series[Any]":
    rows = published.table(number)
    return rows[(rows["memory"] == memory) & ((rows["payload_source"] == source) | (source is None))].iloc[0]


def _counts(printed: "pd.Series[Any]", *, runs: int, later: int) -> dict[str, int]:
    """The whole counts behind a printed row."""
    retrieved = round(printed["RSR"] * later)
    return {
        "inserted": round(printed["ISR"] * runs),
        "retrieved": retrieved,
        "met": round(printed["BRT"] * later),
        "met_and_retrieved": round(printed["BRT_given_R"] * retrieved),
        "reached": round(printed["BR"] * runs),
    }


@pytest.mark.parametrize(
    ("number", "source", "runs"),
    [(1, "optimized", (93, 93, 802, 709)), (1, "seed", (186, 93, 1604, 1418)), (9, None, (124, 31, 2720, 2596))],
)
def test_a_printed_row_comes_out_of_its_counts(
    run_rows: RunRows, number: int, source: str | None, runs: tuple[int, ...]
) -> None:
    printed = _printed(number, "a-mem", source)
    planned = _cross_domain() if number == 9 else _same_domain(2 if source == "seed" else 1)
    row = summarize(_table(run_rows, planned, **_counts(printed, runs=runs[0], later=runs[3])), intervals=False).iloc[0]
    assert (row["n_runs"], row["n_trajectories"], row["n_sessions"], row["n_later"]) == runs
    shown = ["ISR", "RSR", "BRT", "BRT_given_R", "BR"]
    assert row[shown].round(4).tolist() == printed[shown].tolist()


@pytest.mark.parametrize("by", ["objective_domain", "payload_id"])
def test_groups_of_the_published_runs_add_up(run_rows: RunRows, by: str) -> None:
    counts = _counts(_printed(1, "a-mem", "seed"), runs=186, later=1418)
    groups = summarize(_table(run_rows, _same_domain(2), **counts), by=by, intervals=False)
    assert (groups["BRT"] * groups["n_later"]).sum() == pytest.approx(counts["met"])
    assert (groups["ISR"] * groups["n_runs"]).sum() == pytest.approx(counts["inserted"])
