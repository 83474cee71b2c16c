"""The auxiliary environments share nothing with the benchmark: no tool name, name, address, account or wording."""

import re
from functools import cache

import pytest

from memorydojo.optimizer import auxiliary
from memorydojo.optimizer.auxiliary._domain import definition
from memorydojo.running import environment
from memorydojo.shipped import objectives, payloads
from memorydojo.simulator.reading import ACCOUNT, EMAIL, URL
from memorydojo.trajectories import load
from memorydojo.trajectory import DOMAINS

WORDS_IN_A_ROW = 5
"""Two texts are independent if they share no run of so many words."""

NAME = re.compile(r"\b[A-Z][a-zé'-]+(?: [A-Z][a-zé'-]+)+")


@cache
def benchmark_states() -> str:
    """Everything in AgentDojo's data, with the calls and answers of its tasks."""
    texts = []
    for domain in DOMAINS:
        texts.append(environment.fresh_environment(domain).model_dump_json())
        suite = environment.suite(domain)
        for task in [*suite.user_tasks.values(), *suite.injection_tasks.values()]:
            calls = environment.ground_truth(task, environment.fresh_environment(domain))
            texts += [task.GROUND_TRUTH_OUTPUT, *(f"{call.function} {call.args}" for call in calls)]
    return "\n".join(texts)


@cache
def benchmark_prompts() -> str:
    """The requests and goals of AgentDojo's tasks: those of its suites, and those in the shipped trajectories."""
    texts = []
    for domain in DOMAINS:
        suite = environment.suite(domain)
        texts += [task.PROMPT for task in suite.user_tasks.values()]
        texts += [task.GOAL for task in suite.injection_tasks.values()]
    for name in ("same-domain", "cross-domain"):
        texts += [environment.user_task(s.domain, s.task_id).PROMPT for t in load(name) for s in t.sessions]
    return "\n".join(dict.fromkeys(texts))


@cache
def auxiliary_state(domain: str) -> str:
    return str(definition(domain).initial_state().model_dump_json())


@cache
def auxiliary_tasks(domain: str) -> str:
    """Requests, reference actions and answers."""
    return "\n".join(f"{t.prompt}\n{t.answer}\n{t.steps}\n{t.says}" for t in definition(domain).templates)


def everything(domain: str) -> str:
    return auxiliary_state(domain) + "\n" + auxiliary_tasks(domain)


def benchmark() -> str:
    return benchmark_states() + "\n" + benchmark_prompts()


def runs_of_words(text: str, length: int = WORDS_IN_A_ROW) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for line in re.split(r"\n|\\n|[\"{}\[\]]", text):
        words = re.findall(r"[a-z0-9]+", line.lower())
        found |= {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}
    return found


def test_the_benchmark_is_read_whole() -> None:
    assert len(EMAIL.findall(benchmark())) > 100
    assert len(ACCOUNT.findall(benchmark())) > 10
    assert {"Riverside View Hotel", "Emma Johnson"} <= set(NAME.findall(benchmark()))
    assert len(runs_of_words(benchmark_prompts())) > 1000


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_no_tool_is_called_like_one_of_the_benchmark(domain: str) -> None:
    names = {tool.name for name in DOMAINS for tool in environment.runtime_functions(name)}
    assert len(names) > 60
    assert not names & auxiliary.tool_names(domain)


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
@pytest.mark.parametrize("pattern", [EMAIL, ACCOUNT, URL, NAME], ids=["emails", "accounts", "links", "names"])
def test_no_identifier_is_shared(domain: str, pattern: re.Pattern[str]) -> None:
    theirs = {found.casefold() for found in pattern.findall(benchmark())}
    assert not {found for found in pattern.findall(everything(domain)) if found.casefold() in theirs}


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_no_entity_of_a_state_occurs_in_the_benchmark(domain: str) -> None:
    state = definition(domain).initial_state()
    kinds = [name for name in type(state).model_fields if isinstance(getattr(state, name), dict)]
    keys = {key for kind in kinds for key in state.collection(kind)}
    text = benchmark().casefold()
    own = {key for key in keys if " " in key or "-" in key}
    assert len(own) > 15
    assert not {key for key in own if key.casefold() in text}


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_requests_share_no_wording_with_the_benchmark(domain: str) -> None:
    ours = runs_of_words("\n".join(auxiliary.task_prompts(domain).values()))
    assert len(ours) > 150
    assert not ours & runs_of_words(benchmark_prompts())


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_states_share_no_wording_with_the_benchmark(domain: str) -> None:
    ours = runs_of_words(auxiliary_state(domain), 4)
    assert len(ours) > 50
    assert not ours & runs_of_words(benchmark_states(), 4)


@pytest.mark.parametrize("domain", auxiliary.DOMAINS)
def test_the_targets_of_the_attack_do_not_occur(domain: str) -> None:
    text = everything(domain)
    targets = ["mark.black-2134", "Riverside", "US133000000121212121212", "Alice", "secure-systems", "$10"]
    assert not [target for target in targets if target in text]
    assert all(any(t in p.text for t in targets) for o in objectives for p in payloads[o].values())


def test_domains_share_no_identifier_among_themselves() -> None:
    found = {d: {*EMAIL.findall(everything(d)), *ACCOUNT.findall(everything(d))} for d in auxiliary.DOMAINS}
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
