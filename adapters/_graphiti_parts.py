"""The parts that Graphiti is built from: its real pipeline and driver, with models and failures made visible.

Imports graphiti-core, so it is itself imported only when a memory is opened.
"""
# ruff: noqa: E402 (graphiti-core must be loaded the safe way before anything else imports it)

import asyncio
import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from memorydojo.adapters._asking import embedded, reply_text
from memorydojo.adapters._graphiti_prompt import RELEVANCE_QUESTION, RELEVANCE_ROLE, SCORE_QUESTION, SCORE_ROLE
from memorydojo.adapters._graphiti_setup import load
from memorydojo.adapters._state import unicode
from memorydojo.errors import ModelError
from memorydojo.models.base import MemoryModels

load()

from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.falkordb_driver import FalkorDriver
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.graphiti import Graphiti
from graphiti_core.llm_client.config import LLMConfig, ModelSize
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.prompts.models import Message

GROUP = "memory"
_MOST_QUERY_WORDS = 512
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\b\d{1,3}(?:\.\d+)?\b")

_Result = TypeVar("_Result")


class Models:
    """Asks the run's models from Graphiti's event loop, several requests at once, and notes every failure.

    Graphiti swallows some failures, for example those of its question for dates. Whoever calls it looks at
    ``problems`` afterwards.
    """

    def __init__(self, models: MemoryModels, concurrency: int) -> None:
        self.models, self.problems = models, list[str]()
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="graphiti-models")
        self._asked: set[Future[Any]] = set()

    async def chat(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answers one chat request."""
        return await self._ask(lambda: self.models.chat(request))

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embeds texts, in order."""
        said = [unicode(text) for text in texts]
        return await self._ask(lambda: embedded(self.models, said, system="graphiti", call="embed"))

    async def _ask(self, question: Callable[[], _Result]) -> _Result:
        with self.noting():
            future = self._pool.submit(question)
            self._asked.add(future)
            future.add_done_callback(self._asked.discard)
            return await asyncio.wrap_future(future)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Notes an exception that passes, because Graphiti may swallow it further up."""
        try:
            yield
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")
            raise

    def settle(self) -> None:
        """Waits for the questions of a call that has failed, so that none reaches into the next call."""
        wait(list(self._asked))

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)


class Chat(OpenAIGenericClient):
    """Graphiti's client for OpenAI-compatible models, with its own requests, that asks the run's chat model.

    An answer that does not have the wanted form is an error at once. Graphiti's own client would ask up to four times
    with up to two minutes between; repeating what failed in transit is the gateway's work.
    """

    def __init__(self, models: Models, max_tokens: int, form: Literal["json_schema", "json_object"]) -> None:
        # Graphiti's configuration has a temperature of 1 of its own.
        config = LLMConfig(model=models.models.chat_model, temperature=0.1, max_tokens=max_tokens)
        super().__init__(config, client=models, max_tokens=max_tokens, structured_output_mode=form)
        self._models = models

    async def _generate_response(
        self,
        messages: list[Message],
        response_model: type[BaseModel] | None = None,
        max_tokens: int = 0,
        model_size: ModelSize = ModelSize.medium,
        *,
        model: str | None = None,
    ) -> dict[str, Any]:
        response = await self._models.chat(
            {
                "messages": [{"role": m.role, "content": self._clean_input(m.content)} for m in messages],
                "temperature": self.temperature,
                "max_tokens": min(max_tokens, self.max_tokens),
                "response_format": self._build_response_format(response_model),
            }
        )
        with self._models.noting():
            text = self._strip_code_fences(reply_text(response))
            try:
                answer = json.loads(text)
            except ValueError as error:
                raise ModelError(f"the chat model's answer is no JSON ({error}): {text[:200]!r}") from error
            if not isinstance(answer, dict):
                raise ModelError(f"the chat model's answer is no JSON object: {text[:200]!r}")
            answer = _clean(answer)
            if response_model is not None:
                _check_form(answer, response_model)
            return dict(answer)


def _check_form(answer: dict[str, Any], form: type[BaseModel]) -> None:
    try:
        form.model_validate(answer)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ModelError(f"the chat model's answer is no {form.__name__}: {problems}") from error


def _clean(data: Any) -> Any:
    """JSON data whose texts are valid Unicode, which JSON need not be and databases demand."""
    if isinstance(data, str):
        return unicode(data)
    if isinstance(data, list):
        return [_clean(value) for value in data]
    if isinstance(data, dict):
        return {unicode(name): _clean(value) for name, value in data.items()}
    return data


class Embeddings(EmbedderClient):
    """Graphiti's embedding model: the run's, with vectors of full length."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def create(self, input_data: Any) -> list[float]:
        """The vector of one text, which Graphiti gives as a text or as a list of one."""
        texts = [input_data] if isinstance(input_data, str) else list(input_data)
        return (await self._models.embed(texts[:1]))[0]

    async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
        """The vectors of texts, in order."""
        return await self._models.embed(input_data_list)


class ScoreReranker(CrossEncoderClient):
    """Asks for a score from 0 to 100 for each fact, with the question of Graphiti's reranker for Gemini.

    Graphiti's rerankers for models with logprobs ask another question; reasoning models give none.
    """

    def __init__(self, models: Models, max_tokens: int) -> None:
        self._models, self._max_tokens = models, max_tokens

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """The facts with their scores from 0 to 1, best first; of equal ones the first comes first."""
        if len(passages) <= 1:
            return [(passage, 1.0) for passage in passages]
        scores = await asyncio.gather(*(self._score(query, passage) for passage in passages))
        return _best_first(passages, scores)

    async def _score(self, query: str, passage: str) -> float:
        response = await self._models.chat(
            {
                "messages": [
                    {"role": "system", "content": SCORE_ROLE},
                    {"role": "user", "content": SCORE_QUESTION.format(query=query, passage=passage)},
                ],
                "temperature": 0.0,
                "max_tokens": self._max_tokens,
            }
        )
        with self._models.noting():
            text = reply_text(response)
            found = _NUMBER.search(text)
            if found is None:
                raise ModelError(f"the reranking model gave no number from 0 to 100: {text[:200]!r}")
            return min(float(found.group()) / 100, 1.0)


class LogprobReranker(CrossEncoderClient):
    """Asks whether each fact is relevant and takes the probability of True, with the question of Graphiti's reranker.

    Graphiti also favours two tokens by their numbers in the vocabulary of gpt-4; other models would favour others.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """The facts with the probability that they are relevant, best first; of equal ones the first comes first."""
        scores = await asyncio.gather(*(self._probability(query, passage) for passage in passages))
        return _best_first(passages, scores)

    async def _probability(self, query: str, passage: str) -> float:
        response = await self._models.chat(
            {
                "messages": [
                    {"role": "system", "content": RELEVANCE_ROLE},
                    {"role": "user", "content": RELEVANCE_QUESTION.format(query=query, passage=passage)},
                ],
                "temperature": 0.0,
                "max_tokens": 1,
                "logprobs": True,
                "top_logprobs": 2,
            }
        )
        with self._models.noting():
            try:
                best = response["choices"][0]["logprobs"]["content"][0]["top_logprobs"][0]
                token, probability = str(best["token"]), math.exp(float(best["logprob"]))
            except (LookupError, TypeError, ValueError) as error:
                raise ModelError(
                    "the reranking model gives no logprobs; set reranker to 'scores', or to 'rrf' for none"
                ) from error
            return probability if token.strip().lower() == "true" else 1 - probability


def _best_first(passages: Sequence[str], scores: Sequence[float]) -> list[tuple[str, float]]:
    return sorted(zip(passages, scores, strict=True), key=lambda pair: -pair[1])


class Driver(FalkorDriver):
    """Graphiti's driver for FalkorDB, bound to one graph.

    Graphiti takes the name of a group for the name of a graph and would read from another one than it writes to, and
    so lose the previous episodes without a word. It also drops the search by words for a query of more than 128.
    """

    def __init__(self, client: Any, graph: str, models: Models) -> None:
        self._models = models
        super().__init__(falkor_db=client, database=graph)

    def clone(self, database: str) -> "Driver":
        """This driver, whatever graph is named."""
        return self

    async def execute_query(self, cypher_query_: str, **kwargs: Any) -> Any:
        """Runs one query; its texts are parameters."""
        with self._models.noting():
            return await super().execute_query(cypher_query_, **kwargs)

    def build_fulltext_query(self, query: str, group_ids: list[str] | None = None, max_query_length: int = 0) -> str:
        """The query for the search by words: its words only, each once, at most 512."""
        words = list(dict.fromkeys(_WORD.findall(query)))[:_MOST_QUERY_WORDS]
        return str(super().build_fulltext_query(" ".join(words), group_ids, 4 * _MOST_QUERY_WORDS))

    async def close(self) -> None:
        """Closes the connections, also those of a client that was given an address, which would keep them."""
        await super().close()
        await self.client.connection.connection_pool.disconnect()

    async def ready(self) -> None:
        """Waits until the indexes are there; the constructor has begun to make them."""
        if self._init_task is not None:
            await self._init_task


class System(Graphiti):
    """Graphiti around given parts, with its telemetry off."""

    def _capture_initialization_telemetry(self) -> None:
        """Sends nothing, whatever the environment says."""
