"""Letta's real server. Sets it up if it is not; ``make test-letta`` runs this, plain ``make test`` does not."""

import os
from collections.abc import Iterator

import pytest

from memorydojo.adapters.letta import LettaAdapter, LettaConfig
from memorydojo.testing import AdapterContract

KEY = "MEMORYDOJO_TEST_LETTA_KEY"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("MEMORYDOJO_TEST_LETTA"), reason="run it with: make test-letta"),
]


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    from memorydojo.adapters import _letta_server

    place = _letta_server.home()
    _letta_server.set_up(place, print)
    with _letta_server.LettaServer(place) as server:
        os.environ[KEY] = server.password
        yield server.url
        del os.environ[KEY]


class TestLetta(AdapterContract):
    adapter = LettaAdapter
    url = ""

    @pytest.fixture(autouse=True)
    def _server(self, server_url: str) -> None:
        self.url = server_url

    def config(self) -> LettaConfig:
        return LettaConfig(url=self.url, key_variable=KEY)
