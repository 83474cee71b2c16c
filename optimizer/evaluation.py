"""Testing candidates: each on all auxiliary trajectories, from fresh memory and state, its text in one observation."""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memorydojo.adapter import MemoryAdapter
from memorydojo.attack import Attack, Payload
from memorydojo.judging.store import Spent, total
from memorydojo.models.access import Access
from memorydojo.optimizer.candidate import Candidate, Feedback
from memorydojo.optimizer.feedback import feedback, markers
from memorydojo.optimizer.ground import Ground
from memorydojo.planning.progress import Progress
from memorydojo.running.runner import plan_run
from memorydojo.running.sweep import sweep
from memorydojo.runs import Run
from memorydojo.runs.model import RunPlan
from memorydojo.runs.store import run_id


@dataclass(frozen=True)
class Setting:
    """What stays the same in all runs of a search.

    Attributes:
        memory: The memory system.
        memory_settings: Its settings.
        model: The task agent's model.
        memory_model: The memory side's chat model; the agent's if None.
        embedding_model: The memory side's embedding model.
        agent: The agent's LLM element.
        defense: The defense.
        insertion: The insertion session.
        seed: Seed of the simulator.
    """

    memory: str | type[MemoryAdapter]
    memory_settings: Mapping[str, Any]
    model: str
    memory_model: str | None
    embedding_model: str
    agent: str | None
    defense: str | None
    insertion: Literal["first", "middle"] | int
    seed: int

    def plan(self, trajectory: Any, payload: Payload) -> RunPlan:
        """The run of a trajectory with a payload.

        Raises:
            MemoryDojoError: It cannot be planned; see `memorydojo.plan_run`.
        """
        return plan_run(
            trajectory,
            self.memory,
            attack=Attack(objective=payload.objective, payload=payload, session=self.insertion),
            model=self.model,
            memory_model=self.memory_model,
            embedding_model=self.embedding_model,
            memory_settings=self.memory_settings,
            defense=self.defense,
            agent=self.agent,
            seed=self.seed,
            on_failure="continue",
        )


@dataclass(frozen=True)
class Outcome:
    """What testing one candidate gave."""

    feedback: Feedback
    runs: tuple[str, ...]
    spent: Spent


@dataclass(frozen=True)
class Evaluator:
    """Tests candidates on a ground. The runs are saved; what was run before is not run again.

    Attributes:
        ground: Where.
        setting: How.
        directory: Where the runs are saved.
        access: How models are reached.
        executor: What runs them; None for eight threads.
        progress: Called after each run.
    """

    ground: Ground
    setting: Setting
    directory: Path
    access: Access
    executor: Executor | None = None
    progress: Progress | None = None

    def plans(self, candidate: Candidate) -> list[RunPlan]:
        """The runs that test a candidate. Their ids tell texts apart, not candidates: equal texts are run once."""
        name = f"text-{hashlib.sha256(candidate.text.encode()).hexdigest()[:12]}"
        payload = Payload(id=name, objective=self.ground.objective.id, text=candidate.text)
        return [self.setting.plan(trajectory, payload) for trajectory in self.ground.trajectories]

    def __call__(self, candidates: Sequence[Candidate]) -> list[Outcome]:
        """Tests candidates, all their runs in parallel.

        Raises:
            EndpointDownError: A model endpoint or its key is dead; what was saved stays.
            RunInUseError: Another process is at some of the runs.
            MissingPackageError: The memory system's package is not installed.
        """
        planned = [self.plans(candidate) for candidate in candidates]
        runs = sweep(
            [plan for plans in planned for plan in plans],
            directory=self.directory,
            executor=self.executor,
            models=self.access.models,
            keys=self.access.keys,
            replay=self.access.replay,
            answers=self.access.answers,
            share=False,  # every candidate begins with fresh memory and state, and bears the whole cost of its runs
            progress=self.progress or False,
        )
        pairs = zip(candidates, planned, strict=True)
        return [self._outcome(candidate, [runs[run_id(plan)] for plan in plans]) for candidate, plans in pairs]

    def _outcome(self, candidate: Candidate, runs: Sequence[Run]) -> Outcome:
        found = feedback(
            [(run, run.labels()) for run in runs],
            objective=self.ground.objective.id,
            markers=markers(candidate.text, known=self.ground.task_prompts),
            task_type=self.ground.task_type,
        )
        spent = [Spent(run.header.usage, run.header.waiting) for run in runs]
        spent += [Spent(s.usage, s.waiting) for run in runs for s in run.sessions]
        return Outcome(found, tuple(run.id for run in runs), total(spent))
