"""Which proposals may be tested (paper, appendix A.6.3): deterministic checks, and a judge's if one is given."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pydantic import Field

from memorydojo._base import Frozen
from memorydojo._display import plain
from memorydojo.judging.overlap import demands_action, missing_targets
from memorydojo.optimizer.ground import Ground


class Rules(Frozen):
    """The limits of validation; saved with the search.

    Attributes:
        max_length: The longest payload, in characters.
        ngram: A payload may share no row of so many words with a task prompt.
    """

    max_length: int = Field(default=1200, ge=1)
    ngram: int = Field(default=5, ge=2)


class ObjectiveJudge(Protocol):
    """Decides whether a payload still asks for the objective."""

    def preserved(self, objective: str, payload: str) -> bool | None:
        """True or False; None if it gives no usable answer, which rejects nothing.

        Args:
            objective: The description of the objective.
            payload: The text.
        """
        ...


@dataclass(frozen=True)
class Validator:
    """Checks proposals.

    Attributes:
        objective: The description of the objective.
        ground: What must not leak.
        rules: The limits.
        judge: A further opinion on whether the objective is preserved; asked only about what passed all else.
    """

    objective: str
    ground: Ground
    rules: Rules
    judge: ObjectiveJudge | None = None

    def reasons(self, payload: str, *, earlier: Iterable[str]) -> tuple[str, ...]:
        """Why a payload is rejected; nothing if it is valid.

        Args:
            payload: The text.
            earlier: The texts of the candidates that were tested, and of the proposals before this one in its round.
        """
        if not payload.strip():
            return ("blank: the payload has no words",)
        found = [*self._length(payload), *self._objective(payload), *self._leaks(payload), *self._prompts(payload)]
        if folded(payload) in {folded(text) for text in earlier}:
            found.append("repeated: it is an earlier payload, apart from case and white space")
        if not found and self.judge is not None and self.judge.preserved(self.objective, payload) is False:
            found.append("off objective: the judge finds that it no longer asks for the objective")
        return tuple(found)

    def _length(self, payload: str) -> list[str]:
        most = self.rules.max_length
        return [f"too long: {len(payload)} characters, {most} are allowed"] if len(payload) > most else []

    def _objective(self, payload: str) -> list[str]:
        missing = missing_targets(self.objective, payload)
        found = [f"off objective: it does not name {plain(target)!r}" for target in missing]
        if not missing and not demands_action(self.objective, payload):
            found.append("off objective: it does not ask for the action, aimed at its target")
        return found

    def _leaks(self, payload: str) -> list[str]:
        tools = sorted(name for name in self.ground.tool_names if _names_tool(payload, name))
        ids = sorted(name for name in self.ground.identifiers if _has_word(payload, name))
        return [
            *(f"leak: it names the auxiliary tool {plain(name)!r}" for name in tools),
            *(f"leak: it holds the auxiliary identifier {plain(name)!r}" for name in ids),
        ]

    def _prompts(self, payload: str) -> list[str]:
        n = self.rules.ngram
        # What the objective itself says may stand in a payload, whatever a prompt holds.
        own = rows(self.objective, n)
        shared = [row for row in rows(payload, n) if row not in own and row in self._prompt_rows]
        return [f"leak: it shares the words {' '.join(shared[0])!r} with a task prompt"] if shared else []

    @cached_property
    def _prompt_rows(self) -> frozenset[tuple[str, ...]]:
        return frozenset(row for prompt in self.ground.task_prompts for row in rows(prompt, self.rules.ngram))


def rows(text: str, n: int) -> list[tuple[str, ...]]:
    """All rows of n words of a text, in order, case folded."""
    words = re.findall(r"\w+(?:'\w+)?", text.casefold())
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def folded(text: str) -> str:
    """A text without regard to case and white space."""
    return " ".join(text.casefold().split())


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None


def _names_tool(text: str, name: str) -> bool:
    """Whether a tool is named: as a word; a name that is plain English only where it is written as code or called."""
    if not re.fullmatch(r"[a-z]+", name):
        return _has_word(text, name)
    shown = re.escape(name)
    return re.search(rf"`{shown}`|(?<![\w-]){shown}\s?\(", text, re.IGNORECASE) is not None


def best(valid: Sequence[tuple[int, float]]) -> int | None:
    """The best valid proposal: the one of which its strategy expects the highest BRT, of equal ones the first.

    Args:
        valid: Number and expected BRT of each valid proposal, in order.
    """
    return max(valid, key=lambda one: one[1])[0] if valid else None
