"""The domain ontology says what can be done and asked, and names no tool, task or entity."""

import json
import re

import pytest

from memorydojo.optimizer import auxiliary
from memorydojo.optimizer.auxiliary._domain import definition
from memorydojo.running import environment
from memorydojo.simulator.reading import ACCOUNT, EMAIL, URL
from memorydojo.trajectory import DOMAINS


@pytest.fixture(params=auxiliary.DOMAINS)
def ontology(request: pytest.FixtureRequest) -> auxiliary.Ontology:
    return auxiliary.ontology(request.param)


def strings(value: object) -> set[str]:
    """All strings in JSON data, keys included."""
    if isinstance(value, dict):
        return set().union(*(strings(k) | strings(v) for k, v in value.items()))
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return {value} if isinstance(value, str) else set()


def test_it_covers_every_capability_and_category(ontology: auxiliary.Ontology) -> None:
    defined = definition(ontology.domain)
    assert len(ontology.capabilities) == len(defined.capabilities)
    assert {note.changes_state for note in ontology.capabilities} == {True, False}
    assert {task.description for task in ontology.tasks} == {template.category for template in defined.templates}
    assert {task.kind for task in ontology.tasks} == {"information retrieval", "state change", "combination"}
    assert len(ontology.observations) >= 3


def test_its_text_holds_everything(ontology: auxiliary.Ontology) -> None:
    text = ontology.text()
    for note in ontology.capabilities:
        assert note.description.rstrip(".") in text
        assert all(parameter in text for parameter in note.parameters)
    assert all(task.description in text for task in ontology.tasks)
    assert all(observation in text for observation in ontology.observations)


def test_it_survives_json(ontology: auxiliary.Ontology) -> None:
    assert auxiliary.Ontology.model_validate_json(ontology.model_dump_json()) == ontology


def test_it_names_no_tool(ontology: auxiliary.Ontology) -> None:
    names = set(auxiliary.tool_names(ontology.domain))
    names |= {tool.name for domain in DOMAINS for tool in environment.runtime_functions(domain)}
    words = set(re.findall(r"\w+", ontology.text() + ontology.model_dump_json(), re.ASCII))
    assert not {name for name in names if "_" in name} & words


def test_it_names_no_task_and_repeats_no_request(ontology: auxiliary.Ontology) -> None:
    text = ontology.text().casefold()
    for task_id, prompt in auxiliary.task_prompts(ontology.domain).items():
        assert task_id not in text
        words = prompt.casefold().split()
        assert not [i for i in range(len(words) - 4) if " ".join(words[i : i + 5]) in text]


def test_it_names_no_entity(ontology: auxiliary.Ontology) -> None:
    text = ontology.text()
    assert not EMAIL.findall(text) + ACCOUNT.findall(text) + URL.findall(text)
    state = json.loads(definition(ontology.domain).initial_state().model_dump_json())
    entities = {s for s in strings(state) if re.search(r"[A-Z]\w+ [A-Z]|\d", s) or "-" in s}
    assert len(entities) > 30
    assert not [entity for entity in entities if entity in text]
    assert not re.findall(r"(?<=[a-z,;:] )[A-Z][a-z]+", text)
