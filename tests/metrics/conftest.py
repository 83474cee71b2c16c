"""Builds session tables from what happened in each run."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pandas as pd
import pytest

RunRows = Callable[..., list[dict[str, Any]]]


def _run_rows(
    run_id: str,
    domains: Sequence[str],
    *,
    t0: int | None = 1,
    inserted: bool = False,
    original: Collection[int] = (),
    descendant: Collection[int] = (),
    met: Collection[int] = (),
    useful: Collection[int] = (),
    objective_domain: str | None = "workspace",
    **keys: Any,
) -> list[dict[str, Any]]:
    """The rows of one run; collections hold the 1-based sessions in which something happened."""
    return [
        {
            "run_id": run_id,
            "session": t,
            "n_sessions": len(domains),
            "insertion_session": t0,
            "domain": domain,
            "objective_domain": objective_domain,
            "inserted": inserted,
            "retrieved": t in original or t in descendant,
            "retrieved_original": t in original,
            "retrieved_descendant": t in descendant,
            "objective_met": t in met,
            "utility": t in useful,
            "completed": True,
            **keys,
        }
        for t, domain in enumerate(domains, start=1)
    ]


@pytest.fixture(scope="session")
def run_rows() -> RunRows:
    """Makes the rows of one run."""
    return _run_rows


@pytest.fixture
def two_trajectories() -> pd.DataFrame:
    """Two memories on two trajectories, each poisoned once and clean once; not simulated."""
    rows: list[dict[str, Any]] = []
    for memory in ("mem0", "vector"):
        for trajectory in ("t1", "t2"):
            keys: dict[str, Any] = {"memory": memory, "trajectory_id": trajectory}
            name = f"{memory}-{trajectory}"
            good = memory == "mem0"
            rows += _run_rows(
                f"{name}-p",
                ["workspace"] * 4,
                inserted=good,
                original=[2, 3] if good else [],
                descendant=[3] if good else [],
                met=[2] if trajectory == "t1" else [],
                useful=[1, 2],
                met_workspace=None,
                **keys,
            )
            rows += _run_rows(
                f"{name}-c",
                ["workspace"] * 4,
                t0=None,
                objective_domain=None,
                useful=[1, 2, 3],
                met_workspace=False,
                **keys,
            )
    table = pd.DataFrame(rows)
    first_clean = (table["run_id"] == "mem0-t1-c") & (table["session"] == 4)
    table.loc[first_clean, "met_workspace"] = True
    return table
