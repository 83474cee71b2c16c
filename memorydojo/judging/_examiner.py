"""Puts a judge's questions to a model: through the gateway, each once, and with everything that it cost."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from memorydojo._display import valid
from memorydojo.errors import EndpointDownError, InvalidInputError, ModelError, UnusableAnswerError
from memorydojo.judging._evidence import locate
from memorydojo.judging._prompts import Form, Prompt
from memorydojo.judging.store import JUDGEMENTS, JudgementStore, Spent, Verdict
from memorydojo.models.access import Access
from memorydojo.models.asking import ask
from memorydojo.models.config import SIMULATED, SIMULATED_EMBEDDING
from memorydojo.models.conversation import ABOUT_THE_QUESTION, Conversation, conversation
from memorydojo.models.usage import ModelUse

ROLE = "judge"

ATTEMPTS = 3
"""How often one question is put at most until the answer can be used."""

_PATIENCE = 3
"""So many questions that an endpoint refuses before it has answered any: it is not the texts, it is the set-up."""

_MOST_EVIDENCE = 1000


@dataclass(frozen=True)
class Question:
    """A prompt with its texts.

    Attributes:
        prompt: The prompt.
        parts: The texts by name.
    """

    prompt: Prompt
    parts: Mapping[str, str] = field(hash=False)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of each text."""
        return {name: hashlib.sha256(t.encode("utf-8", "surrogatepass")).hexdigest() for name, t in self.parts.items()}


class Examiner:
    """Answers questions from the store of judgements, or by asking the model. Safe to share between threads.

    Args:
        judge: The judge's id.
        rules: The version of the code around the prompts.
        model: The model's name.
        access: How models are reached.
        directory: The directory of the runs; answers and judgements are kept in it.
        judgements: Another file of judgements.
        retry_errors: Whether to ask again, once, what there was no usable answer about.

    Attributes:
        use: The model as it is used.

    Raises:
        UnknownNameError: No model has this name.
        InvalidInputError: Its key is missing, or it is the simulator.
        SavedRunError: The judgements cannot be opened.
    """

    def __init__(
        self,
        judge: str,
        rules: str,
        model: str,
        *,
        access: Access,
        directory: Path,
        judgements: Path | None = None,
        retry_errors: bool = False,
    ) -> None:
        if model in (SIMULATED, SIMULATED_EMBEDDING):
            raise InvalidInputError(
                f"the model {model!r} belongs to the simulator and cannot judge; use the offline judge, 'overlap', "
                "or a model of a models file (docs/models.md)"
            )
        access.check(model)
        route = access.models.route(model)
        # Temperature 0 whatever the model is declared with, unless it takes none.
        temperature = 0.0 if route.capabilities.temperature else None
        self.use = ModelUse.of(route).model_copy(update={"temperature": temperature})
        self._judge, self._rules = judge, rules
        self._gateway = access.gateway(directory, record=True)
        self._store = JudgementStore(judgements or directory / JUDGEMENTS)
        self._retry_errors = retry_errors
        self._asked_now: set[str] = set()
        self._refused: dict[str, Verdict] = {}
        self._answered = False

    def identity(self, question: Question) -> str:
        """Everything that decides the answer to a question, as JSON."""
        settings = self.use.model_dump(exclude={"name"})
        parts = [self._judge, self._rules, question.prompt.sha256, settings, question.hashes]
        return json.dumps(parts, sort_keys=True)

    def key(self, question: Question) -> str:
        """What a question is known by."""
        return hashlib.sha256(self.identity(question).encode("ascii")).hexdigest()

    def known(self, question: Question) -> Verdict | None:
        """The verdict that is kept, if it need not be asked for."""
        key = self.key(question)
        verdict = self._store.get(key)
        if verdict is None:
            return self._refused.get(key)
        stale = verdict.answer is None and self._retry_errors and key not in self._asked_now
        return None if stale else verdict

    def answer(self, question: Question, *, run: str) -> Verdict:
        """The verdict on a question; without an answer if the model gave none that can be used.

        Args:
            question: The question.
            run: The run that it is asked for, for the accounts.

        Raises:
            EndpointDownError: The model cannot be asked. What was judged is kept.
            SavedRunError: The judgement cannot be kept.
        """
        return self.known(question) or self._asked(question, run)

    def spent(self, run: str) -> dict[str, list[Spent]]:
        """What was spent on a run, by question."""
        return self._store.spent(run, self._judge)

    def close(self) -> None:
        """Closes the file of judgements; the gateway serves others too."""
        self._store.close()

    def _asked(self, question: Question, run: str) -> Verdict:
        key = self.key(question)
        # The gateway knows every question as a run of its own: its counts and recorded answers are the question's,
        # whichever run of the benchmark it was first asked for.
        token = f"judgement-{key[:32]}"
        verdict: Verdict | None = None
        talk = None
        try:
            with conversation(self._gateway, token=token, role=ROLE, model=self.use.name) as talk:
                verdict = self._from_model(question, talk)
        finally:
            if talk is not None and (verdict is not None or talk.usage):
                about = {"prompt": question.prompt.id, "identity": self.identity(question)}
                spent = Spent(talk.usage, talk.waiting)
                self._store.put(key, verdict, judge=self._judge, run=run, spent=spent, about=about)
        self._asked_now.add(key)
        return verdict or self._refused[key]

    def _from_model(self, question: Question, talk: Conversation) -> Verdict | None:
        """The verdict; None if the endpoint has refused the question, which is not kept: it may be mended."""
        try:
            found = self._form(question, talk)
            verdict = Verdict(found.answer, valid(found.evidence)[:_MOST_EVIDENCE])
        except UnusableAnswerError as error:
            verdict = Verdict(None, problem=str(error))
        except ModelError as error:
            self._check_refusal(error, talk)
            self._refused[self.key(question)] = Verdict(None, problem=str(error))
            return None
        self._answered = True
        return verdict

    def _form(self, question: Question, talk: Conversation) -> Form:
        prompt = question.prompt
        request: dict[str, Any] = {"messages": prompt.messages(question.parts), "temperature": 0}
        misquoted: list[Form] = []

        def check(found: Form) -> None:
            # Asked again once: a model that cannot show where may not have found it. Then the answer stands.
            needed = prompt.quoted is not None and found.answer in found.NEED_EVIDENCE
            if needed and not misquoted and locate(found.evidence, question.parts[prompt.quoted or ""]) is None:
                misquoted.append(found)
                raise ValueError(f"the evidence does not stand in {prompt.quoted}; copy it word for word")

        try:
            return ask(talk.chat, prompt.form, request=request, attempts=ATTEMPTS, check=check)
        except UnusableAnswerError:
            if misquoted:
                return misquoted[0]
            raise

    def _check_refusal(self, error: ModelError, talk: Conversation) -> None:
        """Whether a failure is about the one text, so that others can be judged.

        Raises:
            EndpointDownError: It is not.
        """
        trouble = talk.trouble()
        hopeless = not self._answered and len(self._refused) >= _PATIENCE - 1
        if trouble is not None or error.code not in ABOUT_THE_QUESTION or hopeless:
            raise EndpointDownError(
                f"the judge cannot go on: {trouble or error}. What was judged is kept; when this is mended, give the "
                "same command again"
            ) from error
