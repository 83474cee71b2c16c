"""What the entry points of the package name: a suite and an objective for each domain."""

from collections.abc import Callable
from functools import partial
from typing import Any

from memorydojo.objective import Objective


def _suite(domain: str, variant: str) -> Any:
    from memorydojo.optimizer.auxiliary._domain import make_suite

    return make_suite(domain, variant)


def _objective(domain: str, benchmark: str) -> Objective:
    from memorydojo.optimizer.auxiliary._objectives import counterpart
    from memorydojo.shipped import objectives

    return counterpart(domain, objectives[benchmark])


workspace_suite: Callable[[str], Any] = partial(_suite, "workspace")
travel_suite: Callable[[str], Any] = partial(_suite, "travel")
banking_suite: Callable[[str], Any] = partial(_suite, "banking")
communication_suite: Callable[[str], Any] = partial(_suite, "communication")

workspace_objective: Callable[[], Objective] = partial(_objective, "workspace", "workspace")
travel_objective: Callable[[], Objective] = partial(_objective, "travel", "travel")
banking_objective: Callable[[], Objective] = partial(_objective, "banking", "banking")
communication_objective: Callable[[], Objective] = partial(_objective, "communication", "slack")
