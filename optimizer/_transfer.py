"""The transfer step: what the selected payload does on the benchmark, beside the seeds, paired by trajectory."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memorydojo.errors import InvalidInputError
from memorydojo.models.access import Replay
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys
from memorydojo.optimizer.evaluation import Setting
from memorydojo.optimizer.results import Search
from memorydojo.optimizer.selection import strongest
from memorydojo.planning.progress import Progress
from memorydojo.running.sweep import sweep
from memorydojo.runs.collection import Runs
from memorydojo.shipped import objectives
from memorydojo.trajectory import Trajectory
from memorydojo.view import View, Viewed

if TYPE_CHECKING:
    import pandas as pd

TRANSFER = "transfer"
COLUMN = "payload"
OPTIMIZED, UNOPTIMIZED, STRONGEST = "optimized", "unoptimized", "strongest given seed"
METRICS = ("ISR", "RSR", "BRT", "BR", "TU")


@dataclass(frozen=True)
class Transfer(Viewed):
    """Benchmark runs of the selected payload and of the seeds.

    Attributes:
        search: The search.
        runs: The runs.
        payloads: The side of each payload id: ``"optimized"`` or ``"unoptimized"``.
    """

    search: Search
    runs: Runs
    payloads: dict[str, str]

    def session_table(self) -> "pd.DataFrame":
        """The session table with the further column ``payload``: the side that a run is on."""
        found = self.runs.session_table()
        found[COLUMN] = found["payload_id"].map(self.payloads)
        return found

    def summary(self) -> "pd.DataFrame":
        """The metrics of both sides; see `memorydojo.metrics.summarize`."""
        from memorydojo import metrics

        return metrics.summarize(self.session_table(), by=[COLUMN])

    def view(self) -> View:
        """The comparison, with its intervals."""
        from memorydojo import metrics

        spec = self.search.spec
        title = f"{spec.memory}, objective {spec.objective}: optimized minus unoptimized, paired by trajectory"
        return metrics.view(self.comparison(), title=title, sides=(OPTIMIZED, UNOPTIMIZED), limit=None)

    def comparison(self) -> "pd.DataFrame":
        """Optimized minus unoptimized, paired by trajectory; see `memorydojo.metrics.compare`.

        The column ``against`` says what the optimized payload is compared with: all given seeds, pooled, and that one
        of them which was strongest on the auxiliary ground.
        """
        import pandas as pd

        from memorydojo import metrics

        found = self.session_table()
        sides = [(UNOPTIMIZED, found)]
        seed = strongest([one for one in self.search.tested if one.candidate.kind == "seed"])
        if seed is not None:
            one = found[(found[COLUMN] == OPTIMIZED) | (found["payload_id"] == seed.candidate.id)]
            sides.append((STRONGEST, one))
        parts = []
        for name, rows in sides:
            compared = metrics.compare(rows, COLUMN, OPTIMIZED, UNOPTIMIZED)
            compared = compared[compared["metric"].isin(METRICS)].copy()
            compared.insert(0, "against", name)
            parts.append(compared)
        return pd.concat(parts, ignore_index=True)


def transfer(
    search: Search,
    *,
    trajectories: Sequence[Trajectory] | int | None = None,
    directory: str | Path | None = None,
    models: Models | None = None,
    keys: Keys | None = None,
    replay: Replay = "off",
    answers: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Transfer:
    """Runs the selected payload and the seeds on the benchmark. Called again, it goes on where it was left.

    Args:
        search: A search with an outcome.
        trajectories: The trajectories; the same-domain ones of the objective if it is not given; of these so many, of
            evenly spread places in the collection, if it is a number.
        directory: Where the runs are saved; ``transfer`` in the search's directory if it is not given.
        models: Which models there are, as for `memorydojo.sweep`.
        keys: Keys of endpoints that are not in the environment.
        replay: Where answers come from.
        answers: The file of recorded answers.
        executor: What runs them.
        progress: Called after each run.

    Raises:
        InvalidInputError: The search has no outcome, or there are no trajectories.
        EndpointDownError: A model endpoint or its key is dead; what was saved stays.
    """
    spec = search.spec
    chosen = search.payload()
    # A seed that stayed is run as what it is: the same runs on both sides, and no difference.
    optimized = chosen.model_copy(update={"id": "selected"}) if chosen in spec.seeds else chosen
    found = _trajectories(spec.objective, trajectories)
    setting = Setting(
        memory=spec.memory,
        memory_settings=spec.memory_settings,
        model=spec.model,
        memory_model=spec.memory_model,
        embedding_model=spec.embedding_model,
        agent=spec.agent,
        defense=spec.defense,
        insertion=spec.insertion,
        seed=spec.seed,
    )
    runs = sweep(
        [setting.plan(trajectory, payload) for trajectory in found for payload in (*spec.seeds, optimized)],
        directory=directory if directory is not None else search.directory / TRANSFER,
        executor=executor,
        models=models,
        keys=keys,
        replay=replay,
        answers=answers,
        progress=progress or False,
    )
    sides = {payload.id: UNOPTIMIZED for payload in spec.seeds} | {optimized.id: OPTIMIZED}
    return Transfer(search, runs, sides)


def _trajectories(objective: str, wanted: Sequence[Trajectory] | int | None) -> list[Trajectory]:
    if wanted is not None and not isinstance(wanted, int):
        found = list(wanted)
    else:
        from memorydojo.trajectories import load

        domain = objectives[objective].domain
        found = [t for t in load("same-domain") if t.domains == (domain,)]
        if isinstance(wanted, int):
            if not 1 <= wanted <= len(found):
                raise InvalidInputError(f"there are {len(found)} trajectories of {domain}; ask for 1 to {len(found)}")
            found = [found[i * len(found) // wanted] for i in range(wanted)]
    if not found:
        raise InvalidInputError(f"there are no trajectories to run the payloads for {objective!r} on")
    return found
