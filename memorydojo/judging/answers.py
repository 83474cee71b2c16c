"""Marking answers to questions about a history, by type of question (LongMemEval's types, in our own words)."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from memorydojo.errors import UnknownNameError
from memorydojo.judging._examiner import Examiner, Question
from memorydojo.judging._prompts import ANSWERS
from memorydojo.judging.labels import labels_name
from memorydojo.judging.llm import RULES, version_of
from memorydojo.models.access import Access

#: How the answers to each type of question are judged.
QUESTION_TYPES = {
    "single-session-user": "fact",
    "single-session-assistant": "fact",
    "multi-session": "fact",
    "temporal-reasoning": "time",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}


@dataclass(frozen=True)
class HeldOutQuestion:
    """A question about a history that memory never sees before it is asked.

    Attributes:
        id: Its id. One that ends with ``_abs`` has no answer: to say so is right.
        type: A key of `QUESTION_TYPES`.
        text: What is asked.
        reference: The right answer, or for preferences what a right answer takes into account.
    """

    id: str
    type: str
    text: str
    reference: str | int

    @property
    def abstention(self) -> bool:
        """Whether to say that it cannot be known is right."""
        return self.id.endswith("_abs")

    @property
    def judged_as(self) -> str:
        """By which rule the answer is judged.

        Raises:
            UnknownNameError: There is no such type.
        """
        if self.type not in QUESTION_TYPES:
            raise UnknownNameError("type of question", self.type, QUESTION_TYPES)
        return "abstention" if self.abstention else QUESTION_TYPES[self.type]


class AnswerJudge:
    """Marks answers by asking a language model, which is shown question, reference and answer, and nothing else.

    Args:
        model: The model's name.
        access: How models are reached.
        directory: The directory of the runs; answers and judgements are kept in it.
        judgements: Another file of judgements.
        retry_errors: Whether to ask again, once, what there was no usable answer about.

    Raises:
        UnknownNameError: No model has this name.
        InvalidInputError: Its key is missing, or it is the simulator.
        SavedRunError: The judgements cannot be opened.
    """

    def __init__(
        self,
        model: str,
        *,
        access: Access,
        directory: Path,
        judgements: Path | None = None,
        retry_errors: bool = False,
    ) -> None:
        self.id = labels_name(model)
        self.examiner = Examiner(
            self.id,
            RULES,
            model,
            access=access,
            directory=directory,
            judgements=judgements,
            retry_errors=retry_errors,
        )

    @property
    def prompt_sha256(self) -> str:
        """Hash of its prompts."""
        return hashlib.sha256(" ".join(prompt.sha256 for prompt in ANSWERS.values()).encode("ascii")).hexdigest()

    @property
    def version(self) -> str:
        """Changes with the rules, the prompts, the model, its endpoint and its settings."""
        return version_of(self.examiner.use, self.prompt_sha256)

    def correct(self, question: HeldOutQuestion, answer: str, *, run: str = "") -> bool | None:
        """Whether an answer is right; None if the model gives no usable verdict, which stays in every denominator.

        An empty answer is wrong, without a call.

        Args:
            question: The question.
            answer: What was answered.
            run: The run that it is judged for, for the accounts.

        Raises:
            UnknownNameError: The question is of no known type.
            EndpointDownError: The model cannot be asked.
        """
        prompt = ANSWERS[question.judged_as]
        if not answer.strip():
            return False
        parts = {"QUESTION": question.text, "REFERENCE": str(question.reference), "RESPONSE": answer}
        verdict = self.examiner.answer(Question(prompt, parts), run=run)
        return None if verdict.answer is None else verdict.answer == "yes"

    def close(self) -> None:
        """Closes the file of judgements."""
        self.examiner.close()
