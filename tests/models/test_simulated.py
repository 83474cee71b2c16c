from collections.abc import Mapping
from typing import Any

import pytest

from memorydojo.adapters.full_context import FullContextAdapter
from memorydojo.errors import ModelError
from memorydojo.models.base import MemoryModels
from memorydojo.models.simulated import SimulatedModels, SimulatedUsage

REQUEST = {"messages": [{"role": "system", "content": "12345"}, {"role": "user", "content": "1234"}]}


def parrot(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": request["messages"][-1]["content"] * 3}


def test_it_implements_the_protocol_and_says_that_it_is_simulated() -> None:
    models = SimulatedModels(parrot)
    assert isinstance(models, MemoryModels)
    assert models.simulated
    assert models.chat_model == "simulated"
    assert models.embedding_model == "all-MiniLM-L6-v2-onnx-int8"


def test_an_answer_is_a_chat_completion_with_counted_tokens() -> None:
    response = SimulatedModels(parrot).chat(REQUEST)
    assert response["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "1234" * 3}, "finish_reason": "stop"}
    ]
    assert response["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


def test_usage_adds_up() -> None:
    models = SimulatedModels(parrot)
    models.chat(REQUEST)
    models.chat(REQUEST)
    models.embed(["12345", "1"])
    assert models.usage == SimulatedUsage(
        chat_calls=2, chat_input_tokens=6, chat_output_tokens=6, embed_calls=1, embed_input_tokens=3
    )


def test_vectors_have_the_stated_length() -> None:
    models = SimulatedModels(parrot)
    assert [len(vector) for vector in models.embed(["a", "b"])] == [models.embedding_dimensions] * 2


def test_a_request_that_nobody_simulates_is_a_model_error() -> None:
    models = SimulatedModels(FullContextAdapter.simulate)
    with pytest.raises(ModelError, match=r"full_context.*no simulated memory-side model"):
        models.chat(REQUEST)
    assert models.usage.chat_calls == 1
