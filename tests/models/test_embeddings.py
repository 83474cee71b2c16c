"""Answers of embedding models: as many vectors as texts, or none."""

import json
from typing import Any

import openai
import pytest


def rows(*vectors: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"object": "embedding", "index": i, "embedding": v, **more} for i, v in enumerate(vectors)]


def answering(faults: Any, data: Any) -> Any:
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return faults.body(json.dumps({"object": "list", "data": data, "model": "m", "usage": usage}).encode())


def embed(gateway: Any, given: Any) -> list[list[float]]:
    with gateway.client() as c:
        found = c.embeddings.create(model="m", input=given, encoding_format="float")
    return [row.embedding for row in found.data]


MALFORMED = {
    "fewer": (rows([1.0, 0.0]), "1 embeddings for 2 inputs"),
    "more": (rows([1.0, 0.0], [0.0, 1.0], [0.0, 1.0]), "3 embeddings for 2 inputs"),
    "none": ([], "0 embeddings for 2 inputs"),
    "an empty one": (rows([1.0, 0.0], []), "an input without its embedding"),
    "one that is none": (rows([1.0, 0.0], None), "an input without its embedding"),
    "unequal lengths": (rows([1.0, 0.0], [1.0]), "embeddings of different lengths"),
    "the same place twice": (rows([1.0, 0.0], [0.0, 1.0], index=0), "which embedding is whose"),
    "a place that is none": (rows([1.0, 0.0], [0.0, 1.0], index=[1]), "which embedding is whose"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_answer_is_retried(make: Any, upstream: Any, faults: Any, case: str) -> None:
    gateway = make()
    upstream.faults = [answering(faults, MALFORMED[case][0])] * 2
    assert [len(vector) for vector in embed(gateway, ["a", "b"])] == [8, 8]
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors, count.input_tokens) == (1, 2, 0, 2)


@pytest.mark.parametrize("case", MALFORMED)
def test_a_lastingly_malformed_answer_is_an_error(make: Any, upstream: Any, faults: Any, case: str) -> None:
    gateway = make()
    data, message = MALFORMED[case]
    upstream.faults = [answering(faults, data)] * 3
    with pytest.raises(openai.APIStatusError, match=f"{message}, after 3 attempts"):
        embed(gateway, ["a", "b"])
    (count,) = gateway.counts("run-1")
    assert (count.calls, count.retries, count.errors, count.input_tokens) == (0, 2, 1, 0)


@pytest.mark.parametrize(("given", "vectors"), [("a", 1), (["a"], 1), ([1, 2, 3], 1), ([[1, 2], [3], [4]], 3)])
def test_texts_and_tokens_are_counted_as_what_they_are(
    make: Any, upstream: Any, faults: Any, given: Any, vectors: int
) -> None:
    upstream.faults = [answering(faults, rows(*[[1.0, 0.0]] * vectors))]
    assert len(embed(make(), given)) == vectors
    assert len(upstream.requests) == 1


def test_vectors_in_another_order_pass(make: Any, upstream: Any, faults: Any) -> None:
    upstream.faults = [answering(faults, rows([1.0, 0.0], [0.0, 1.0])[::-1])]
    assert embed(make(), ["a", "b"]) == [[0.0, 1.0], [1.0, 0.0]]


def test_a_simulated_embedder_that_gives_too_few_is_an_error(make: Any) -> None:
    gateway = make()
    gateway.register("run-1", chat=lambda _: {}, embed=lambda texts: [[1.0]] * (len(texts) - 1))
    with gateway.client() as c, pytest.raises(openai.APIStatusError, match="1 vectors for 2 texts"):
        c.embeddings.create(model="all-MiniLM-L6-v2-onnx-int8", input=["a", "b"])
    assert gateway.counts("run-1")[0].errors == 1
