"""Session tables to draw, made of what happened in each run."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.metrics.conftest import RunRows, run_rows

__all__ = ["run_rows"]

DOMAINS = ("workspace", "travel", "banking", "slack")


@pytest.fixture(scope="session")
def table(run_rows: RunRows) -> pd.DataFrame:
    """Three memories and two models on six trajectories, under two kinds of payload and clean; simulated."""
    random = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for memory in ("mem0", "a-mem", "vector"):
        for model in ("one", "two"):
            for number, length in enumerate((5, 12, 14, 24, 30, 35)):
                domain = DOMAINS[number % 4]
                for source in ("seed", "optimized", None):
                    sessions = range(2, length + 1)
                    found = {t for t in sessions if random.random() < 0.6} if source else set()
                    met = {t for t in found if random.random() < (0.7 if source == "optimized" else 0.3)}
                    rows += run_rows(
                        f"{memory}-{model}-{number}-{source}",
                        [DOMAINS[(number + t) % 4] for t in range(length)],
                        t0=1 if source else None,
                        inserted=bool(source),
                        original=found,
                        met=met,
                        useful={t for t in range(1, length + 1) if random.random() < 0.8},
                        objective_domain=domain if source else None,
                        memory=memory,
                        model=model,
                        trajectory_id=f"t{number}",
                        payload_source=source,
                        payload_inserted=source is not None,
                        memory_correct=bool(random.random() < 0.7),
                        simulated=True,
                    )
    return pd.DataFrame(rows)


@pytest.fixture(scope="session")
def one_model(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of one model."""
    return table[table["model"] == "one"].reset_index(drop=True)
