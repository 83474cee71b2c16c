"""The same contract for Letta's real server and for the stand-in that most tests use, so that it cannot drift."""

from collections.abc import Iterator

import pytest

from memorydojo.adapters.letta import LettaAdapter, LettaConfig
from memorydojo.testing import AdapterContract
from tests.adapters.fake_letta import FakeLetta


class TestLetta(AdapterContract):
    adapter = LettaAdapter

    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        self.fake = FakeLetta()
        yield
        self.fake.close()

    def config(self) -> LettaConfig:
        return LettaConfig(url=self.fake.url)
