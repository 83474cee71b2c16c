"""A language model's opinion on whether a proposal preserves the objective."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from memorydojo.attack import Payload
from memorydojo.judging import LLMJudge
from memorydojo.judging._examiner import Examiner
from memorydojo.judging.llm import RULES
from memorydojo.judging.store import Spent, total
from memorydojo.models.access import Access
from memorydojo.optimizer.ground import Ground
from memorydojo.optimizer.saved import SearchSpec
from memorydojo.optimizer.search import Checker
from memorydojo.optimizer.validation import Validator

_NAME = "preserves"


@dataclass(frozen=True)
class ModelJudge:
    """Asks how much of the objective can be recognised in a payload, as the judge of memory does.

    Attributes:
        judge: The judge.
    """

    judge: LLMJudge

    def preserved(self, objective: str, payload: str) -> bool | None:
        """Whether a reader of the payload would take it that the objective's action is wanted; None without an answer.

        Raises:
            EndpointDownError: The model cannot be asked.
        """
        label = self.judge.classify(Payload(id="objective", objective="objective", text=objective), payload).label
        return None if label == "error" else label in ("exact", "transformed")


@contextmanager
def judging(
    model: str | None, spec: SearchSpec, ground: Ground, *, access: Access, directory: Path
) -> Iterator[Callable[[str], Checker]]:
    """What makes the validator of a round: by code, and by a model if one is named.

    Args:
        model: The model's name.
        spec: The search.
        ground: What must not leak.
        access: How the model is reached.
        directory: The directory of the search; answers and judgements are kept in it.
    """

    def validator(judge: ModelJudge | None) -> Validator:
        return Validator(objective=spec.description, ground=ground, rules=spec.rules, judge=judge)

    if model is None:
        yield lambda token: Checker(validator(None), Spent)
        return
    with closing(Examiner(_NAME, RULES, model, access=access, directory=directory)) as examiner:

        def checker(token: str) -> Checker:
            def spent() -> Spent:
                return total(part for parts in examiner.spent(token).values() for part in parts)

            return Checker(validator(ModelJudge(LLMJudge(examiner, token))), spent)

        yield checker
