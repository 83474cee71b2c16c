"""Marking answers to questions about a history, by type of question (LongMemEval's types, in our own words)."""

from pathlib import Path

from memorydojo.history import HeldOutQuestion
from memorydojo.judging._examiner import Examiner
from memorydojo.judging.labels import labels_name
from memorydojo.judging.llm import ANSWERS_SHA256, RULES, marked, version_of
from memorydojo.models.access import Access


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
        return ANSWERS_SHA256

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
        return marked(self.examiner, question, answer, run=run)

    def close(self) -> None:
        """Closes the file of judgements."""
        self.examiner.close()
