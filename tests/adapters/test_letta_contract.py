import pytest

from memorydojo.adapters.letta import LettaAdapter, LettaConfig
from memorydojo.testing import AdapterContract
from tests.adapters.conftest import LettaAt


class TestLetta(AdapterContract):
    adapter = LettaAdapter

    @pytest.fixture(autouse=True)
    def _server(self, letta: LettaAt) -> None:
        self.letta = letta

    def config(self) -> LettaConfig:
        return LettaConfig(url=self.letta.url, key_variable=self.letta.key_variable)
