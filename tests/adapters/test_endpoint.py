import base64
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from memorydojo.adapters._endpoint import ModelEndpoint
from memorydojo.errors import ModelError


class Models:
    """Answers with what it was asked."""

    chat_model, embedding_model, embedding_dimensions, simulated = "chat", "embedding", 2, True

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("fail"):
            raise ModelError("the endpoint answered 503")
        return {"choices": [{"message": {"role": "assistant", "content": request["messages"]}}]}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 0.5] if text != "short" else [1.0] for text in texts]


@pytest.fixture
def endpoint() -> Iterator[ModelEndpoint]:
    made = ModelEndpoint(Models())
    yield made
    made.close()


def post(url: str, body: Any) -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data)) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_chat_request_is_answered_by_the_models(endpoint: ModelEndpoint) -> None:
    status, answer = post(f"{endpoint.url}/chat/completions", {"messages": "hello"})
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "hello"
    assert endpoint.problems() == []


@pytest.mark.parametrize("form", ["float", "base64"])
def test_embeddings_come_in_the_form_that_was_asked_for(endpoint: ModelEndpoint, form: str) -> None:
    _, answer = post(f"{endpoint.url}/embeddings", {"input": ["abc", ""], "encoding_format": form})
    vectors = [row["embedding"] for row in answer["data"]]
    if form == "base64":
        vectors = [list(struct.unpack("<2f", base64.b64decode(vector))) for vector in vectors]
    assert vectors == [[3.0, 0.5], [0.0, 0.5]]


def test_known_vectors_are_given_without_asking(endpoint: ModelEndpoint) -> None:
    endpoint.known_vectors = {"abc": [9.0, 9.0]}
    _, answer = post(f"{endpoint.url}/embeddings", {"input": ["x", "abc"]})
    assert [row["embedding"] for row in answer["data"]] == [[1.0, 0.5], [9.0, 9.0]]


def test_a_failing_model_is_an_error_and_is_kept(endpoint: ModelEndpoint) -> None:
    status, answer = post(f"{endpoint.url}/chat/completions", {"messages": [], "fail": True})
    assert status == 400
    assert "503" in answer["error"]["message"]
    assert endpoint.problems() == ["the endpoint answered 503"]
    assert endpoint.problems() == []


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("chat/completions", {"messages": [], "stream": True}, "stream"),
        ("embeddings", {"input": [[1, 2]]}, "a text or a list of texts"),
        ("embeddings", {"input": ["short"]}, "lengths"),
        ("chat/completions", b"{", "JSONDecodeError"),
        ("chat/completions", {}, "KeyError"),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_is_kept(
    endpoint: ModelEndpoint, path: str, body: Any, problem: str
) -> None:
    status, _ = post(f"{endpoint.url}/{path}", body)
    assert status in (400, 500)
    (kept,) = endpoint.problems()
    assert problem in kept


def test_without_the_secret_nothing_is_answered(endpoint: ModelEndpoint) -> None:
    address = endpoint.url.split("/")
    for wrong in ("guess", ""):
        status, _ = post("/".join([*address[:3], wrong, "v1", "chat/completions"]), {"messages": []})
        assert status == 401


def test_other_paths_are_unknown(endpoint: ModelEndpoint) -> None:
    assert post(f"{endpoint.url}/images", {})[0] == 404


def test_requests_are_shaped_and_answers_checked() -> None:
    def check(request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        raise ModelError(f"unusable: {answer['choices'][0]['message']['content']}")

    endpoint = ModelEndpoint(Models(), shape=lambda request: {**request, "messages": "other"}, check=check)
    assert post(f"{endpoint.url}/chat/completions", {"messages": "hello"})[0] == 400
    assert endpoint.problems() == ["unusable: other"]
    endpoint.close()
    endpoint.close()
