"""AgentDojo's suites behind one module: exact copies, and the same verdicts as AgentDojo's own."""

import importlib
import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from memorydojo.errors import UnknownNameError
from memorydojo.running import environment
from memorydojo.trajectory import DOMAINS

ALL_TASKS = {"workspace": 40, "travel": 20, "banking": 16, "slack": 21}


def tasks() -> list[tuple[str, str]]:
    return [(domain, task_id) for domain in DOMAINS for task_id in environment.task_ids(domain)]


def solved(domain: str, task_id: str, state: Any) -> environment.Execution[str]:
    task = environment.user_task(domain, task_id)
    return environment.execute_ground_truth(domain, task, environment=state, observe=environment.format_observation)


def test_importing_the_module_does_not_import_agentdojo() -> None:
    code = "import sys, memorydojo.running.environment; sys.exit('agentdojo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_pinned_agentdojo_is_installed() -> None:
    assert environment.installed_version() == environment.AGENTDOJO_VERSION


@pytest.mark.parametrize("domain", DOMAINS)
def test_each_domain_has_all_templates_in_natural_order(domain: str) -> None:
    ids = environment.task_ids(domain)
    assert ids == tuple(f"user_task_{n}" for n in sorted(int(i.removeprefix("user_task_")) for i in ids))
    assert len(ids) == ALL_TASKS[domain]


def test_an_unknown_domain_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown domain 'workspaces'; did you mean 'workspace'"):
        environment.task_ids("workspaces")


def test_an_unknown_task_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown slack task 'user_tusk_20'; did you mean 'user_task_20'"):
        environment.user_task("slack", "user_tusk_20")


def test_an_unknown_injection_task_is_named() -> None:
    with pytest.raises(UnknownNameError, match="unknown banking injection task 'user_task_1'"):
        environment.injection_task("banking", "user_task_1")


@pytest.mark.parametrize(("domain", "count"), [("workspace", 14), ("travel", 7), ("banking", 9), ("slack", 5)])
def test_injection_tasks_are_found(domain: str, count: int) -> None:
    ids = environment.natural_order(environment.suite(domain).injection_tasks)
    assert [environment.injection_task(domain, i).ID for i in ids] == list(ids)
    assert len(ids) == count


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_fresh_environment_is_what_agentdojo_loads(domain: str) -> None:
    assert environment.fresh_environment(domain) == environment.suite(domain).load_and_inject_default_environment({})


def test_fresh_environments_are_independent() -> None:
    first = environment.fresh_environment("workspace")
    first.cloud_drive.files.clear()
    first.inbox.emails["1"].body = "changed"
    second = environment.fresh_environment("workspace")
    assert second.cloud_drive.files
    assert second.inbox.emails["1"].body != "changed"


def test_a_deleted_file_stays_deleted_in_a_copy() -> None:
    original = environment.fresh_environment("workspace")
    original.cloud_drive.delete_file("11")
    copy = environment.copy_environment(original)
    assert "11" not in copy.cloud_drive.files
    assert copy == original


def test_a_copy_shares_nothing_with_its_original() -> None:
    original = environment.fresh_environment("slack")
    copy = environment.copy_environment(original)
    copy.slack.channel_inbox["general"].clear()
    copy.slack.users.append("Mallory")
    assert original == environment.fresh_environment("slack")


def test_a_copy_keeps_what_is_shared_inside_it() -> None:
    copy = environment.copy_environment(environment.fresh_environment("workspace"))
    email = copy.inbox.initial_emails[0]
    assert copy.inbox.emails[email.id_] is email


def test_a_list_of_tools_can_be_changed_without_changing_the_suite() -> None:
    environment.runtime_functions("banking").clear()
    assert len(environment.runtime_functions("banking")) == 11


@pytest.mark.slow
def test_every_task_passes_alone_and_observes_something() -> None:
    for domain, task_id in tasks():
        pre, post = environment.fresh_environment(domain), environment.fresh_environment(domain)
        done = solved(domain, task_id, post)
        assert done.error is None, (domain, task_id)
        assert len(done.calls) == len(done.observations) >= 1
        assert environment.check_utility(
            environment.user_task(domain, task_id),
            final_response=done.final_response,
            pre=pre,
            post=post,
            calls=done.calls,
        ), (domain, task_id)


@pytest.mark.slow
def test_a_task_needs_its_text_answer_if_agentdojo_checks_it() -> None:
    failing = 0
    for domain, task_id in tasks():
        pre, post = environment.fresh_environment(domain), environment.fresh_environment(domain)
        done = solved(domain, task_id, post)
        task = environment.user_task(domain, task_id)
        failing += not environment.check_utility(task, final_response="", pre=pre, post=post, calls=done.calls)
    assert failing == 43


def test_working_out_the_ground_truth_changes_nothing() -> None:
    for domain, task_id in tasks():
        state = environment.fresh_environment(domain)
        task = environment.user_task(domain, task_id)
        assert environment.ground_truth(task, state) == task.ground_truth(state)
        assert state == environment.fresh_environment(domain)


@pytest.mark.parametrize("domain", DOMAINS)
def test_observations_are_those_of_agentdojos_own_pipeline(domain: str) -> None:
    from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
    from agentdojo.functions_runtime import FunctionsRuntime

    task_id = environment.task_ids(domain)[1]
    task = environment.user_task(domain, task_id)
    _, _, _, messages, _ = GroundTruthPipeline(task).query(
        task.PROMPT, FunctionsRuntime(environment.runtime_functions(domain)), environment.fresh_environment(domain)
    )
    theirs = [message["content"][0]["content"] for message in messages if message["role"] == "tool"]
    assert list(solved(domain, task_id, environment.fresh_environment(domain)).observations) == theirs


def test_an_observation_is_taken_before_later_calls_change_it() -> None:
    """The channel's messages are returned as the list that the next call appends to."""
    state = environment.fresh_environment("slack")
    before = environment.format_observation(state.slack.channel_inbox["random"])
    assert solved("slack", "user_task_8", state).observations[1] == before
    assert environment.format_observation(state.slack.channel_inbox["random"]) != before


def test_a_text_passes_the_formatter_unchanged() -> None:
    text = "a: {b}\n- '\x1b' \u202e"
    assert environment.format_observation(text) == text


def test_a_failing_call_ends_the_ground_truth_and_is_reported() -> None:
    state = environment.fresh_environment("workspace")
    assert solved("workspace", "user_task_35", state).error is None
    done = solved("workspace", "user_task_38", state)
    assert done.error == "ValueError: File with ID '11' not found."
    assert len(done.observations) == len(done.calls) - 1


def test_a_ground_truth_that_cannot_be_worked_out_is_reported() -> None:
    state = environment.fresh_environment("workspace")
    state.calendar = None
    task = environment.user_task("workspace", "user_task_4")
    stuck = environment.execute_ground_truth("workspace", _Stuck(task), environment=state, observe=str)
    assert stuck.calls == ()
    assert stuck.error == "AttributeError: 'NoneType' object has no attribute 'events'"


class _Stuck:
    def __init__(self, task: environment.UserTask) -> None:
        self.ID = task.ID
        self.GROUND_TRUTH_OUTPUT = task.GROUND_TRUTH_OUTPUT

    def ground_truth(self, pre_environment: Any) -> list[environment.FunctionCall]:
        return list(pre_environment.calendar.events)


@pytest.mark.slow
def test_checking_does_not_change_the_environments() -> None:
    """The check of workspace's task 24 marks emails as read when it gets that far."""
    for domain, task_id in tasks():
        pre, post = environment.fresh_environment(domain), environment.fresh_environment(domain)
        done = solved(domain, task_id, post)
        before = environment.copy_environment(pre), environment.copy_environment(post)
        task = environment.user_task(domain, task_id)
        environment.check_utility(task, final_response="", pre=pre, post=post, calls=done.calls)
        assert (pre, post) == before


def test_a_check_of_the_calls_decides_where_a_task_has_one() -> None:
    decided = []
    for domain, task_id in tasks():
        pre, post = environment.fresh_environment(domain), environment.fresh_environment(domain)
        done = solved(domain, task_id, post)
        task = environment.user_task(domain, task_id)
        if task.utility_from_traces(done.final_response, pre, post, done.calls) is not None:
            decided.append((domain, task_id))
            assert not environment.check_utility(task, final_response=done.final_response, pre=pre, post=post, calls=[])
    assert decided == [("slack", "user_task_11")]


def test_an_error_of_agentdojos_check_comes_out() -> None:
    pre, post = environment.fresh_environment("slack"), environment.fresh_environment("slack")
    del post.slack.user_channels["Charlie"]
    task = environment.user_task("slack", "user_task_7")
    with pytest.raises(KeyError, match="Charlie"):
        environment.check_utility(task, final_response="", pre=pre, post=post, calls=[])


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_verdicts_agree_with_run_task_with_pipeline(domain: str) -> None:
    """With the right final response and with none."""
    from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline

    class Silent(GroundTruthPipeline):  # type: ignore[misc]
        def query(self, *args: Any, **kwargs: Any) -> Any:
            query, runtime, env, messages, extra = super().query(*args, **kwargs)
            messages[-1]["content"][0]["content"] = ""
            return query, runtime, env, messages, extra

    for task_id in environment.task_ids(domain):
        task = environment.user_task(domain, task_id)
        for pipeline, silent in ((GroundTruthPipeline(task), False), (Silent(task), True)):
            theirs, _ = environment.suite(domain).run_task_with_pipeline(
                pipeline, task, injection_task=None, injections={}, environment=environment.fresh_environment(domain)
            )
            pre, post = environment.fresh_environment(domain), environment.fresh_environment(domain)
            done = solved(domain, task_id, post)
            ours = environment.check_utility(
                task, final_response="" if silent else done.final_response, pre=pre, post=post, calls=done.calls
            )
            assert ours == theirs, (task_id, silent)


@pytest.mark.parametrize("domain", [*DOMAINS, "auxiliary-banking:3-1", "auxiliary-workspace:3-1"])
def test_a_saved_state_comes_back_equal(domain: str) -> None:
    fresh = environment.fresh_environment(domain)
    again = environment.restore_saved(environment.snapshot({domain: fresh}))
    assert type(again[domain]) is type(fresh)
    assert again[domain] == fresh


class Calls:
    """Pickled, it asks for a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.called = function, arguments

    def __reduce__(self) -> Any:
        return self.called


@pytest.mark.parametrize("function", [print, os.system, importlib.import_module, environment.fresh_environment])
def test_a_saved_state_that_asks_for_anything_but_data_is_refused(function: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="holds no"):
        environment.restore_saved(pickle.dumps(Calls(function, "memorydojo.optimizer.auxiliary")))


@pytest.mark.parametrize("data", [b"", b"\x80", b"not a pickle"])
def test_a_damaged_saved_state_is_told(data: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        environment.restore_saved(data)
