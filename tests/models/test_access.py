"""One gateway for all runs of a process that share an access."""

import pickle
from pathlib import Path
from typing import Any

import openai
import pytest

from memorydojo.models.access import Access
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys


def keys(value: str) -> Keys:
    return Keys.model_validate({"values": {"TEST_KEY": value}})


def again(access: Access) -> Access:
    """The access as a worker gets it with each of its runs."""
    copy: Access = pickle.loads(pickle.dumps(access))
    return copy


def test_runs_of_one_access_share_a_gateway_in_a_worker_too(tmp_path: Path) -> None:
    access = Access(keys=keys("sk-1"))
    gateway = access.gateway(tmp_path, record=False)
    assert again(access).gateway(tmp_path, record=False) is gateway
    assert Access(keys=keys("sk-1")).gateway(tmp_path, record=False) is gateway


def test_other_keys_never_share_a_gateway(tmp_path: Path) -> None:
    one, two = (Access(keys=keys(key)).gateway(tmp_path, record=False) for key in ("sk-1", "sk-2"))
    assert one is not two


def test_keys_are_told_apart_without_being_told() -> None:
    assert "sk-1" not in keys("sk-1").digest()
    assert keys("sk-1").digest() == keys("sk-1").digest() != keys("sk-2").digest()


def test_a_new_start_tries_again_and_the_runs_of_one_start_do_not(
    make: Any, upstream: Any, faults: Any, tmp_path: Path
) -> None:
    models: Models = make().models
    access = Access(models=models)
    gateway = access.gateway(tmp_path, record=False)

    def ask() -> Any:
        url = gateway.url(run="r", role="agent")
        with openai.OpenAI(base_url=url, api_key=gateway.secret, max_retries=0) as client:
            return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])

    upstream.faults = [faults.status(401)]
    for _ in range(2):  # a second run of the same start
        with pytest.raises(openai.APIStatusError, match="refuses the key"):
            ask()
        assert again(access).gateway(tmp_path, record=False) is gateway
    assert len(upstream.requests) == 1
    assert Access(models=models).gateway(tmp_path, record=False) is gateway
    assert ask().choices
    gateway.close()
