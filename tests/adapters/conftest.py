import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.adapters.fake_letta import FakeLetta

#: The environment variable that asks for tests against Letta's real server; ``make test-letta`` sets it.
REAL = "MEMORYDOJO_TEST_LETTA"


@dataclass(frozen=True)
class LettaAt:
    """A Letta server for tests: the stand-in, or the real one.

    Attributes:
        url: Its address.
        key_variable: The environment variable with its password.
        fake: The stand-in, if it is one.
    """

    url: str
    key_variable: str
    fake: FakeLetta | None = None


@pytest.fixture(scope="session")
def real_letta() -> Iterator[LettaAt]:
    """Letta's real server, set up if need be; one for all tests of a process."""
    from memorydojo.adapters import _letta_server, _letta_setup

    place = _letta_server.home()
    _letta_setup.set_up(place, print)
    with _letta_server.LettaServer(place) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORYDOJO_TEST_LETTA_KEY", server.password)
        yield LettaAt(server.url, "MEMORYDOJO_TEST_LETTA_KEY")


@pytest.fixture
def fake_letta(monkeypatch: pytest.MonkeyPatch) -> Iterator[LettaAt]:
    """The stand-in."""
    monkeypatch.setenv("MEMORYDOJO_TEST_FAKE_KEY", "open sesame")
    fake = FakeLetta(password="open sesame")
    yield LettaAt(fake.url, "MEMORYDOJO_TEST_FAKE_KEY", fake)
    fake.close()


_BOTH = ["fake", pytest.param("real", marks=[pytest.mark.slow, pytest.mark.letta_server])]


@pytest.fixture(params=_BOTH if os.environ.get(REAL) else ["fake"])
def letta(request: pytest.FixtureRequest) -> LettaAt:
    """Where they are asked for both servers in turn, so that the stand-in cannot drift from the real one."""
    found = request.getfixturevalue(f"{request.param}_letta")
    assert isinstance(found, LettaAt)
    return found
