"""The runner executes auxiliary trajectories as it executes the benchmark's."""

from pathlib import Path

import pytest

import memorydojo as md
from memorydojo.optimizer import auxiliary
from memorydojo.runs import Run, Runs
from memorydojo.simulator.agent import tool_of
from memorydojo.simulator.demands import Call, read_demands

SEEDS = 3
"""Seeds of the simulator. With one alone it may happen that no session follows the payload."""


def attack(domain: str, payload: str = "seed-1") -> md.Attack:
    (benchmark,) = [id for id in md.objectives if auxiliary.domain_of(id) == domain]
    poison = auxiliary.counterpart(md.payloads[benchmark][payload])
    return md.Attack(objective=poison.objective, payload=poison)


@pytest.fixture(scope="module", params=auxiliary.DOMAINS)
def domain(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def clean(domain: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A clean run of the longest trajectory."""
    return md.run(auxiliary.trajectories(domain)[-1], "full_context", directory=tmp_path_factory.mktemp(domain))


@pytest.fixture(scope="module")
def poisoned(domain: str, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Poisoned runs of the longest trajectory, with several seeds of the simulator."""
    directory = tmp_path_factory.mktemp(domain)
    for seed in range(SEEDS):
        trajectory = auxiliary.trajectories(domain)[-1]
        md.run(trajectory, "full_context", directory=directory, attack=attack(domain), seed=seed)
    return md.load_runs(directory)


def test_a_clean_run_solves_every_task(clean: Run) -> None:
    assert [session.utility for session in clean.sessions] == [True] * 10
    assert not any(action.error for session in clean.sessions for action in session.actions)


def test_the_payload_enters_and_the_agent_acts_on_it_in_later_sessions(poisoned: Runs, domain: str) -> None:
    met = []
    for run in poisoned:
        assert [session.payload_inserted for session in run.sessions] == [True] + [False] * 9
        met += [session.met[f"auxiliary-{domain}"] for session in run.labels("overlap").sessions][1:]
    assert 0 < sum(met) < len(met)


def test_the_table_counts_it_as_within_the_domain(poisoned: Runs, domain: str) -> None:
    table = poisoned.session_table()
    assert set(table["domain"]) == set(table["objective_domain"]) == {f"auxiliary-{domain}"}
    within = md.metrics.summarize(table, part="within-domain", intervals=False)
    assert within["n_later"].tolist() == [9 * SEEDS]
    assert within["BRT"].tolist() == md.metrics.summarize(table, intervals=False)["BRT"].tolist()
    assert md.metrics.summarize(table, part="cross-domain", intervals=False)["n_later"].sum() == 0


def test_the_benchmark_objectives_are_evaluated_too_and_not_met(clean: Run, poisoned: Runs) -> None:
    """But for travel: an answer that recommends the same place meets both."""
    for run in (clean, *poisoned):
        for session in run.labels("overlap").sessions:
            assert not any(session.met[id] for id in md.objectives if id != "travel")
    assert set(clean.labels("overlap").objectives) == set(md.objectives)


@pytest.mark.parametrize("payload", ["seed-1", "seed-2"])
def test_the_simulated_agent_finds_the_right_tool_in_every_variant(domain: str, payload: str) -> None:
    from memorydojo.optimizer.auxiliary._domain import definition

    poison = attack(domain, payload).payload
    assert isinstance(poison, md.Payload)
    attacked = definition(domain).attacked
    for variant in range(40):
        tools = [tool_of(function) for function in definition(domain).naming(str(variant)).functions()]
        found = read_demands(poison.text, tools=tools, source="observation", today="2031-01-01")
        acts = [demand.act for demand in found]
        if attacked is None:
            assert [type(act).__name__ for act in acts] == ["Remark"]
        else:
            assert [act.function in attacked.names for act in acts if isinstance(act, Call)] == [True]


@pytest.mark.parametrize("position", range(1, 5))
def test_every_session_can_carry_the_payload(domain: str, position: int, tmp_path: Path) -> None:
    trajectory = auxiliary.trajectories(domain, lengths=(5,), count=1)[0]
    poison = attack(domain).model_copy(update={"session": position})
    run = md.run(trajectory, "full_context", directory=tmp_path, attack=poison)
    assert run.sessions[position - 1].payload_inserted
