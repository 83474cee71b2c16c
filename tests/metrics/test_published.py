"""The paper's printed percentages come out of tables that hold exactly the counts behind them."""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

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


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def test_optimized_table_1_for_a_mem(run_rows: RunRows) -> None:
    counts = {"inserted": 91, "retrieved": 662, "met": 312, "met_and_retrieved": 312, "reached": 66}
    row = summarize(_table(run_rows, _same_domain(1), **counts), replicates=50).iloc[0]
    assert (row["n_runs"], row["n_trajectories"], row["n_sessions"], row["n_later"]) == (93, 93, 802, 709)
    printed = {"ISR": "97.85", "RSR": "93.37", "BRT": "44.01", "BRT_given_R": "47.13", "BR": "70.97"}
    assert {name: _percent(row[name]) for name in printed} == printed


def test_table_9_for_a_mem(run_rows: RunRows) -> None:
    counts = {"inserted": 120, "retrieved": 900, "met": 214, "met_and_retrieved": 200, "reached": 58}
    row = summarize(_table(run_rows, _cross_domain(), **counts), replicates=50).iloc[0]
    assert (row["n_runs"], row["n_trajectories"], row["n_sessions"], row["n_later"]) == (124, 31, 2720, 2596)
    printed = {"ISR": "96.77", "BRT": "8.24", "BR": "46.77"}
    assert {name: _percent(row[name]) for name in printed} == printed


def test_unoptimized_rows_of_two_payloads(run_rows: RunRows) -> None:
    counts = {"inserted": 184, "retrieved": 700, "met": 298, "met_and_retrieved": 298, "reached": 90}
    row = summarize(_table(run_rows, _same_domain(2), **counts), replicates=50).iloc[0]
    assert (row["n_runs"], row["n_trajectories"], row["n_later"]) == (186, 93, 1418)
    assert (_percent(row["ISR"]), _percent(row["BRT"])) == ("98.92", "21.02")


@pytest.mark.parametrize("by", ["objective_domain", "payload_id"])
def test_groups_of_the_published_runs_add_up(run_rows: RunRows, by: str) -> None:
    counts = {"inserted": 184, "retrieved": 700, "met": 298, "met_and_retrieved": 298, "reached": 90}
    groups = summarize(_table(run_rows, _same_domain(2), **counts), by=by, intervals=False)
    assert (groups["BRT"] * groups["n_later"]).sum() == pytest.approx(298)
    assert (groups["ISR"] * groups["n_runs"]).sum() == pytest.approx(184)
