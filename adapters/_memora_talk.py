"""Memora's conversation with the run's models, for one call of the adapter."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memorydojo.adapters import _memora_requests as requests
from memorydojo.adapters._asking import embedded, structured
from memorydojo.adapters._memora_requests import (
    BatchCueIndices,
    MemoryOutput,
    MemoryOutputs,
    MemoryUpdateDecision,
    PolicyDecision,
)
from memorydojo.adapters._memora_store import Fact, Vector
from memorydojo.models.base import MemoryModels
from memorydojo.record import SessionRecord

SYSTEM = "memora"


class Talk:
    """Asks Memora's questions and gives checked answers.

    Args:
        models: The run's models.
        call: The adapter's call, for errors.
        attempts: How often a question is asked until its answer has the right form.
        max_tokens: Longest answer.
    """

    def __init__(self, models: MemoryModels, *, call: str, attempts: int, max_tokens: int) -> None:
        self._models, self._call, self._attempts, self._max_tokens = models, call, attempts, max_tokens

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts, in order, each of length one."""
        found = embedded(self._models, texts, system=SYSTEM, call=self._call)
        vectors = [np.array(vector, dtype=np.float64) for vector in found]
        return [vector / (np.linalg.norm(vector) or 1.0) for vector in vectors]

    def facts(self, record: SessionRecord) -> list[MemoryOutput]:
        """What is worth remembering of a session."""
        request = requests.extraction(record, max_tokens=self._max_tokens)
        return structured(
            self._models, MemoryOutputs, system=SYSTEM, call=self._call, request=request, attempts=self._attempts
        ).entries

    def cues(self, facts: Sequence[Fact]) -> list[list[str]]:
        """One to three cues for each fact, in one request."""
        request = requests.cues([(fact.heading, fact.value) for fact in facts], max_tokens=self._max_tokens)
        answer = structured(
            self._models,
            BatchCueIndices,
            system=SYSTEM,
            call=self._call,
            request=request,
            attempts=self._attempts,
            check=lambda answer: requests.check_cues(answer, len(facts)),
        )
        return [result.cue_indices for result in sorted(answer.results, key=lambda result: result.memory)]

    def decision(self, new: MemoryOutput, candidates: Sequence[Fact]) -> MemoryUpdateDecision:
        """Whether a new fact is merged into a candidate, and how."""
        known = [(fact.heading, fact.value) for fact in candidates]
        return structured(
            self._models,
            MemoryUpdateDecision,
            system=SYSTEM,
            call=self._call,
            request=requests.decision((new.index, new.value), known, max_tokens=self._max_tokens),
            attempts=self._attempts,
            check=lambda answer: requests.check_decision(answer, len(candidates)),
        )

    def policy(
        self,
        query: str,
        *,
        step: int,
        max_steps: int,
        working: Sequence[Fact],
        frontier: Mapping[str, tuple[Fact, str]],
        trace: Sequence[Mapping[str, Any]],
    ) -> PolicyDecision:
        """What the retrieval does next. ``frontier`` gives each fact and the text of the cue that leads to it."""
        request = requests.policy(
            query,
            step=step,
            max_steps=max_steps,
            working=[(fact.id, fact.heading, fact.value) for fact in working],
            frontier=[(fact.id, cue, fact.heading, fact.value) for fact, cue in frontier.values()],
            trace=trace,
            max_tokens=self._max_tokens,
        )
        return structured(
            self._models,
            PolicyDecision,
            system=SYSTEM,
            call=self._call,
            request=request,
            attempts=self._attempts,
            check=requests.check_policy,
        )
