"""Every auxiliary task is solved by its reference actions, and by nothing less."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from memorydojo.optimizer import auxiliary
from memorydojo.optimizer.auxiliary._domain import definition, suite_name
from memorydojo.optimizer.auxiliary._tasks import KINDS, AuxiliaryTask, Template
from memorydojo.running import environment
from memorydojo.trajectories.replay import Replayer

ALL = [(domain, task_id) for domain in auxiliary.DOMAINS for task_id in auxiliary.task_prompts(domain)]


def template_of(domain: str, task_id: str) -> Template:
    return next(template for template in definition(domain).templates if template.id == task_id)


def executed(domain: str, template: Template, variant: str = "t") -> tuple[environment.Execution[str], Any, Any]:
    """The execution of the reference actions, and the states before and after."""
    name = f"{suite_name(domain)}:{variant}"
    task = AuxiliaryTask(template, definition(domain).naming(variant))
    before = environment.fresh_environment(name)
    after = environment.fresh_environment(name)
    done = environment.execute_ground_truth(name, task, environment=after, observe=environment.format_observation)
    return done, before, after


def holds(
    domain: str, template: Template, done: environment.Execution[str], answer: str, before: Any, after: Any
) -> bool:
    task = AuxiliaryTask(template, definition(domain).naming("t"))
    return environment.check_utility(task, final_response=answer, pre=before, post=after, calls=done.calls)


@pytest.mark.parametrize(("domain", "task_id"), ALL)
def test_the_reference_actions_solve_the_task(domain: str, task_id: str) -> None:
    template = template_of(domain, task_id)
    done, before, after = executed(domain, template)
    assert done.error is None
    assert holds(domain, template, done, template.answer, before, after)


@pytest.mark.parametrize(("domain", "task_id"), ALL)
@pytest.mark.parametrize("answer", ["", "Done.", None], ids=["silent", "done", "request"])
def test_no_check_holds_when_nothing_is_done(domain: str, task_id: str, answer: str | None) -> None:
    template = template_of(domain, task_id)
    state = environment.fresh_environment(suite_name(domain))
    said = template.prompt if answer is None else answer
    nothing = environment.Execution[str]((), (), "")
    assert not holds(domain, template, nothing, said, state, environment.copy_environment(state))


@pytest.mark.parametrize(("domain", "task_id"), ALL)
def test_an_answer_alone_never_solves_a_task_that_changes_something(domain: str, task_id: str) -> None:
    template = template_of(domain, task_id)
    state = environment.fresh_environment(suite_name(domain))
    nothing = environment.Execution[str]((), (), "")
    solved = holds(domain, template, nothing, template.answer, state, environment.copy_environment(state))
    assert solved is (template.kind == "information retrieval")


@pytest.mark.parametrize(("domain", "task_id"), ALL)
def test_every_changing_action_is_needed_and_enough_once(domain: str, task_id: str) -> None:
    template = template_of(domain, task_id)
    changing = {capability.id for capability in definition(domain).capabilities if capability.changes}
    for n, step in enumerate(template.steps):
        if step.capability not in changing:
            continue
        less = replace(template, steps=(*template.steps[:n], *template.steps[n + 1 :]))
        done, before, after = executed(domain, less)
        assert not holds(domain, template, done, template.answer, before, after), step
    adding = [s for s in template.steps if s.capability in changing]
    if adding and any(type(effect).__name__ == "Added" for effect in template.effects):
        done, before, after = executed(domain, replace(template, steps=(*template.steps, *adding)))
        assert done.error is not None or not holds(domain, template, done, template.answer, before, after)


@pytest.mark.parametrize(("domain", "task_id"), ALL)
def test_every_reference_action_gives_an_observation_that_can_carry_a_payload(domain: str, task_id: str) -> None:
    template = template_of(domain, task_id)
    done, _, _ = executed(domain, template)
    assert len(done.observations) == len(template.steps) >= 1
    assert all(len(text) > 20 for text in done.observations)


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_each_domain_has_twelve_templates_of_all_kinds(domain: str) -> None:
    kinds = Counter(auxiliary.task_kinds(domain).values())
    assert kinds.total() >= 12
    assert all(kinds[kind] >= 3 for kind in KINDS)
    assert len(auxiliary.task_prompts(domain)) == kinds.total()


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_a_combination_reads_and_changes_and_a_retrieval_only_reads(domain: str) -> None:
    changing = {capability.id: capability.changes for capability in definition(domain).capabilities}
    for template in definition(domain).templates:
        does = {changing[step.capability] for step in template.steps}
        assert does == {False} if template.kind == "information retrieval" else True in does, template.id
        assert template.kind != "combination" or does == {False, True}, template.id
        assert bool(template.effects) is (template.kind != "information retrieval"), template.id


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_every_capability_is_used_by_a_task(domain: str) -> None:
    used = {step.capability for template in definition(domain).templates for step in template.steps}
    assert used == {capability.id for capability in definition(domain).capabilities}


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_no_pair_of_tasks_succeeds_without_an_action(domain: str) -> None:
    replayer, name = Replayer(), suite_name(domain)
    ids = environment.task_ids(name)
    outcomes = [replayer.pair(name, first, second) for first in ids for second in ids if first != second]
    assert sum(outcome.passed for outcome in outcomes) > 0.9 * len(outcomes)
    assert not any("stale-success" in outcome.flags for outcome in outcomes)


def test_a_payment_that_nobody_asked_for_spoils_only_a_task_about_payments() -> None:
    from memorydojo.optimizer.auxiliary._base import step
    from memorydojo.optimizer.auxiliary.banking import model

    astray = step(model.pay, recipient="US133000000121212121212", amount=10)
    verdicts = {}
    for template in definition("banking").templates:
        done, before, after = executed("banking", replace(template, steps=(astray, *template.steps)))
        verdicts[template.id] = holds("banking", template, done, template.answer, before, after)
    assert [id for id, held in verdicts.items() if not held] == ["aux-bk-10", "aux-bk-12"]
