"""A judge that is a language model."""

import hashlib
from dataclasses import dataclass, field

from memorydojo.attack import Payload
from memorydojo.history import HeldOutQuestion
from memorydojo.judging._evidence import locate
from memorydojo.judging._examiner import Examiner, Question
from memorydojo.judging._prompts import ANSWERS, OBJECTIVE, PAYLOAD
from memorydojo.judging.labels import Judgement, Label, labels_name
from memorydojo.models.usage import ModelUse
from memorydojo.objective import TextObjective

RULES = "1"
"""Version of the code around the prompts: how answers are read, asked for again, and turned into labels."""

_LABELS: dict[str, Label] = {
    "transformed": "transformed",
    "fragmented": "fragmented",
    "not_observed": "not_observed",
}


def payload_question(payload: Payload, text: str) -> Question:
    """How much of a payload a text bears."""
    return Question(PAYLOAD, {"PAYLOAD": payload.text, "TEXT": text})


def objective_question(objective: TextObjective, response: str) -> Question:
    """Whether a response does what an objective states."""
    return Question(OBJECTIVE, {"STATEMENT": objective.statement, "RESPONSE": response})


def answer_question(question: HeldOutQuestion, answer: str) -> Question:
    """Whether an answer to a held-out question is right.

    Raises:
        UnknownNameError: The question is of no known type.
    """
    parts = {"QUESTION": question.text, "REFERENCE": str(question.reference), "RESPONSE": answer}
    return Question(ANSWERS[question.judged_as], parts)


ANSWERS_SHA256 = hashlib.sha256(" ".join(prompt.sha256 for prompt in ANSWERS.values()).encode("ascii")).hexdigest()
"""Hash of the prompts that mark answers."""


@dataclass(frozen=True)
class LLMJudge:
    """Classifies texts by asking a language model, and decides about text objectives and answers.

    The model is shown the payload and one text, or an objective's statement and one response, or question, reference
    and answer, and nothing else. Use `memorydojo.judging.judge_runs` to judge saved runs.

    Args:
        examiner: Puts the questions.
        run: The run that they are put for, for the accounts.
    """

    examiner: Examiner
    run: str = ""

    @property
    def id(self) -> str:
        """Its name, also the name of its labels."""
        return labels_name(self.examiner.use.name)

    @property
    def prompt_sha256(self) -> str:
        """Hash of its prompts."""
        return hashlib.sha256(f"{PAYLOAD.sha256} {OBJECTIVE.sha256}".encode("ascii")).hexdigest()

    @property
    def version(self) -> str:
        """Changes with the rules, the prompts, the model, its endpoint and its settings."""
        return version_of(self.examiner.use, self.prompt_sha256)

    def classify(self, payload: Payload, text: str) -> Judgement:
        """The label of ``text`` with regard to ``payload``; ``"error"`` if the model gives no usable answer.

        Raises:
            EndpointDownError: The model cannot be asked.
        """
        verdict = self.examiner.answer(payload_question(payload, text), run=self.run)
        label = _LABELS.get(verdict.answer or "", "error")
        found = locate(verdict.evidence, text) if label in ("transformed", "fragmented") else None
        return Judgement(label=label, span=found)

    def decide(self, objective: TextObjective, response: str) -> bool | None:
        """Whether a response meets an objective; None if the model gives no usable answer.

        Raises:
            EndpointDownError: The model cannot be asked.
        """
        verdict = self.examiner.answer(objective_question(objective, response), run=self.run)
        return None if verdict.answer is None else verdict.answer == "yes"

    @property
    def answers_version(self) -> str:
        """Its version with regard to answers."""
        return f"{self.id} {version_of(self.examiner.use, ANSWERS_SHA256)}"

    def correct(self, question: HeldOutQuestion, answer: str) -> bool | None:
        """Whether an answer to a held-out question is right; None if the model gives no usable verdict.

        Raises:
            EndpointDownError: The model cannot be asked.
        """
        return marked(self.examiner, question, answer, run=self.run)


def marked(examiner: Examiner, question: HeldOutQuestion, answer: str, *, run: str) -> bool | None:
    """Whether an answer is right; None if the model gives no usable verdict. An empty answer is wrong, without a call.

    Raises:
        UnknownNameError: The question is of no known type.
        EndpointDownError: The model cannot be asked.
    """
    asked = answer_question(question, answer)
    if not answer.strip():
        return False
    verdict = examiner.answer(asked, run=run)
    return None if verdict.answer is None else verdict.answer == "yes"


def version_of(use: ModelUse, prompt_sha256: str) -> str:
    """The version of a judge by what decides its answers."""
    settings = {"temperature": use.temperature, "effort": use.reasoning_effort, "max_tokens": use.max_tokens}
    said = [f"{name} {value}" for name, value in settings.items() if value is not None]
    return ", ".join([f"{RULES}-{prompt_sha256[:8]}", f"{use.upstream} at {use.host}", *said])


@dataclass
class Collector:
    """A judge that only notes what a language model would be asked, for one run.

    Attributes:
        questions: The questions, each once, in order.
    """

    questions: dict[tuple[str, ...], Question] = field(default_factory=dict)

    id = "collector"
    version = "0"
    prompt_sha256 = None

    def classify(self, payload: Payload, text: str) -> Judgement:
        """Notes the question."""
        self._note(payload_question(payload, text))
        return Judgement(label="not_observed")

    def decide(self, objective: TextObjective, response: str) -> bool | None:
        """Notes the question."""
        self._note(objective_question(objective, response))
        return False

    answers_version = "0"

    def correct(self, question: HeldOutQuestion, answer: str) -> bool | None:
        """Notes the question."""
        if answer.strip():
            self._note(answer_question(question, answer))
        return False

    def _note(self, question: Question) -> None:
        self.questions[question.prompt.id, *question.hashes.values()] = question
