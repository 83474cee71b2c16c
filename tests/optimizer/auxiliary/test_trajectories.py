"""Auxiliary trajectories: composed and validated as the benchmark's are, each with names of its own."""

import subprocess
import sys

import pytest

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.optimizer import auxiliary
from memorydojo.running import environment
from memorydojo.trajectories import Collection
from memorydojo.trajectories.validate import validate

SEED = 3


@pytest.fixture(scope="module", params=auxiliary.DOMAINS)
def domain(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_lengths_are_used_in_turn(domain: str) -> None:
    assert list(map(len, auxiliary.trajectories(domain, seed=SEED))) == [4, 6, 8, 10]
    assert list(map(len, auxiliary.trajectories(domain, seed=SEED, count=5, lengths=(2, 5)))) == [2, 5, 2, 5, 2]


def test_they_are_valid_by_the_validator_of_the_benchmark(domain: str) -> None:
    report = validate(Collection(name="own", trajectories=auxiliary.trajectories(domain, seed=SEED)))
    assert report.problems == ()
    assert (report.trajectories, report.sessions) == (4, 28)
    assert report.flagged == 0


def test_the_validator_finds_what_is_wrong_with_one(domain: str) -> None:
    whole = auxiliary.trajectories(domain, seed=SEED)[0]
    twice = whole.model_copy(update={"id": "twice", "sessions": (whole.sessions[0], *whole.sessions)})
    report = validate(Collection(name="own", trajectories=(twice,)))
    assert "repeats" in str(report.problems[0])


def test_no_task_repeats_and_all_sessions_share_one_variant(domain: str) -> None:
    for number, trajectory in enumerate(auxiliary.trajectories(domain, seed=SEED), start=1):
        assert len({session.task_id for session in trajectory.sessions}) == len(trajectory)
        assert trajectory.domains == (f"auxiliary-{domain}:{SEED}-{number}",)
        assert {session.suite for session in trajectory.sessions} == {f"auxiliary-{domain}"}


def test_tool_names_vary_by_trajectory_and_by_seed(domain: str) -> None:
    made = [*auxiliary.trajectories(domain, seed=SEED), *auxiliary.trajectories(domain, seed=SEED + 1)]
    names = [frozenset(tool.name for tool in environment.runtime_functions(t.domains[0])) for t in made]
    assert len(set(names)) == len(made)
    assert set().union(*names) <= auxiliary.tool_names(domain)


def test_ids_are_unique_over_seeds_and_another_seed_draws_other_tasks(domain: str) -> None:
    first, second = auxiliary.trajectories(domain, seed=SEED), auxiliary.trajectories(domain, seed=SEED + 1)
    assert len({t.id for t in (*first, *second)}) == 8
    tasks = [[[s.task_id for s in t.sessions] for t in made] for made in (first, second)]
    assert tasks[0] != tasks[1]


def test_together_they_use_most_templates(domain: str) -> None:
    used = {s.task_id for t in auxiliary.trajectories(domain, seed=SEED) for s in t.sessions}
    assert len(used) >= 12


@pytest.mark.parametrize(
    ("count", "lengths"), [(0, (4,)), (-1, (4,)), (1, ()), (1, (1,)), (1, (0,)), (1, (99,)), (2, (4, 99))]
)
def test_impossible_numbers_are_refused_with_what_is_possible(count: int, lengths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="lengths from 2 to 16, the number of banking tasks"):
        auxiliary.trajectories("banking", count=count, lengths=lengths)


def test_an_unknown_domain_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown auxiliary domain 'bankings'; did you mean 'banking'"):
        auxiliary.trajectories("bankings")
    with pytest.raises(UnknownNameError, match="unknown auxiliary domain"):
        auxiliary.ontology("slack")


def test_importing_the_package_does_not_import_agentdojo() -> None:
    code = "import sys, memorydojo.optimizer.auxiliary; sys.exit('agentdojo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_submodule_never_takes_the_place_of_a_function() -> None:
    import importlib
    import pkgutil

    for module in pkgutil.iter_modules(auxiliary.__path__):
        importlib.import_module(f"{auxiliary.__name__}.{module.name}")
    assert all(callable(getattr(auxiliary, name)) for name in auxiliary.__all__ if name[0].islower())
