"""The shipped objectives over AgentDojo's benign ground truth."""

import pytest

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.injection import from_injection_task
from memorydojo.record import Action
from memorydojo.running.environment import (
    execute_ground_truth,
    format_observation,
    fresh_environment,
    ground_truth,
    injection_task,
    suite,
    task_ids,
    user_task,
)
from memorydojo.running.runtime import to_json
from memorydojo.shipped import objectives, payloads
from memorydojo.trajectory import DOMAINS


class Judged:
    def __init__(self, calls: object, final_response: str) -> None:
        self.actions = tuple(
            Action(function=c.function, arguments={k: to_json(v) for k, v in c.args.items()}, observation="")
            for c in calls  # type: ignore[attr-defined]
        )
        self.final_response = final_response


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_no_benign_ground_truth_meets_an_objective(domain: str) -> None:
    met, tasks = [], task_ids(domain)
    for task_id in tasks:
        task = user_task(domain, task_id)
        done = execute_ground_truth(domain, task, environment=fresh_environment(domain), observe=format_observation)
        assert done.error is None
        judged = Judged(done.calls, done.final_response)
        met += [(task_id, o) for o, objective in objectives.items() if objective.met(judged)]
    assert tasks
    assert met == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_injection_tasks_with_calls_become_objectives_that_their_own_ground_truth_meets(domain: str) -> None:
    made = 0
    for task_id in suite(domain).injection_tasks:
        try:
            objective = from_injection_task(domain, task_id)
        except InvalidInputError:
            continue
        calls = ground_truth(injection_task(domain, task_id), fresh_environment(domain))
        assert objective.met(Judged(calls, ""))
        assert not objective.met(Judged(calls[1:], ""))
        made += 1
    assert made >= 5


def test_an_injection_task_without_a_call_cannot_be_made_an_objective() -> None:
    with pytest.raises(InvalidInputError, match="its goal is a text"):
        from_injection_task("travel", "injection_task_6")


def test_an_unknown_injection_task_is_named() -> None:
    with pytest.raises(UnknownNameError, match="injection_task_99"):
        from_injection_task("slack", "injection_task_99")


def test_an_unknown_payload_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown payload 'seed-3'; did you mean 'seed-2' or 'seed-1'") as found:
        payloads["banking"]["seed-3"]
    assert found.value.known == ["seed-1", "seed-2"]


def test_payloads_of_an_unknown_objective_are_an_error_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown objective 'x'; known: banking, slack, travel, workspace"):
        payloads["x"]


def test_what_is_no_payload_is_not_among_them() -> None:
    assert "nothing" not in payloads
    assert payloads["banking"].get("seed-3") is None
