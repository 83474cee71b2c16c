import pytest

from memorydojo.trajectories.replay import Replayer


@pytest.fixture(scope="session")
def replayer() -> Replayer:
    """One for all tests: it keeps what it has replayed."""
    return Replayer()
