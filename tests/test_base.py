"""What users are told about wrong values, whatever they make."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

import memorydojo as md
from memorydojo._base import Frozen, problems
from memorydojo.errors import InvalidInputError
from memorydojo.models.config import Backend, Models


class Setting(md.AdapterConfig):
    top_k: int = 5


def made(model: type[BaseModel], **data: Any) -> Callable[[], BaseModel]:
    """Makes it later, and with names that mypy would refuse."""
    return lambda: model(**data)


SESSION = md.Session(domain="banking", task_id="user_task_1")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (made(md.SweepPlan, memories=[], collections="banking", clean=True), "memories: it is empty; give at least"),
        (made(md.SweepPlan, memories="vector", collections="banking", clean=True, seeds=[]), "seeds: it is empty"),
        (made(md.SweepPlan, memories="vector", colections="banking"), "colections: .* did you mean 'collections'"),
        (made(md.SweepPlan, memories=[{"name": "mem0", "setings": {}}]), r"memories\[1\]\.setings: .*'settings'"),
        (made(md.SweepPlan, memories="vector", insertion="last"), "insertion: it takes 'first', 'middle' or"),
        (made(md.Session, domain="banking", task="x"), "task_id: it is missing; task: .* did you mean 'task_id'"),
        (made(md.Trajectory, id="x", collection="y", sessions=[]), "Trajectory: sessions: it is empty"),
        (made(md.Trajectory, id="x", collection="y", sessions=[{"domain": 3}]), r"sessions\[1\]\.domain: "),
        (made(md.Attack, objectiv="banking", payload="seed-1"), "objectiv: there is no such field; did you mean"),
        (made(md.Attack, objective="banking", payload={"id": "a", "objective": "b"}), r"payload\.text: it is miss"),
        (made(md.Payload, id="", objective="banking", text=" "), "id: it is empty; text: it is blank"),
        (made(Models, backends={"a": {"kind": "opnai"}}), r"backends\.a\.kind: it takes 'openai', "),
        (made(md.Session, domain="banking", task_id="x", flags="drift"), "flags: it takes a list"),
        (made(md.SweepPlan, memories="vector", clean="maybe"), "clean: it takes true or false"),
        (made(md.SweepPlan, memories="vector", seeds=["x"]), r"seeds\[1\]: it takes a whole number"),
        (made(md.Payload, id="\ud800", objective="banking", text="x"), "id: it takes a text, without half"),
        (made(md.Payload, id="x", objective="banking", text="x", source="me"), "source: it takes 'seed', 'optimized'"),
        (made(Models, models={"m": {"backend": "a", "temprature": 1}}), r"models\.m\.temprature: .*'temperature'"),
        (made(Backend, kind="azure"), "Backend: a backend of kind 'azure' needs a base_url"),
        (made(Setting, topk=1), "Setting: topk: there is no such field; did you mean 'top_k'"),
        (made(md.MemoryItem, text="x"), "MemoryItem: entry_ids: it is missing"),
    ],
)
def test_what_is_wrong_is_told_with_the_field_and_the_nearest_name(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said) as caught:
        make()
    assert "pydantic" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_changed_says_so() -> None:
    with pytest.raises(InvalidInputError, match="Session: task_id: it cannot be changed; make another one"):
        setattr(SESSION, "task_id", "user_task_2")  # noqa: B010 - mypy knows that it is frozen


def test_a_wrong_value_is_never_repeated() -> None:
    with pytest.raises(InvalidInputError) as caught:
        Backend(kind="vllm", key_env="sk-a-secret-key!")
    assert "secret" not in str(caught.value)


def test_a_hostile_name_of_a_field_is_shown_as_plain_text() -> None:
    with pytest.raises(InvalidInputError) as caught:
        md.Session(**{"domain": "banking", "task_id": "t", "\x1b[31m": 1})
    assert "\x1b" not in str(caught.value)


def test_many_problems_are_counted() -> None:
    with pytest.raises(InvalidInputError, match=r"; and 3 more$"):
        md.Session(domain="banking", task_id="t", **{f"x{number}": number for number in range(8)})


def test_a_model_inside_another_one_is_not_made_by_its_init() -> None:
    # Reading saved runs makes thousands of them.
    assert not any(model.__pydantic_custom_init__ for model in (Frozen, md.Session, md.Trajectory, md.Payload))


def test_settings_of_a_memory_system_name_the_nearest() -> None:
    trajectory = md.trajectories.load("banking")[0]
    with pytest.raises(InvalidInputError, match=r"settings of memory system 'vector' .* did you mean 'top_k'"):
        md.plan_run(trajectory, "vector", memory_settings={"topk": 1})


def test_what_no_user_makes_keeps_its_own_error() -> None:
    class Plain(BaseModel):
        number: int

    with pytest.raises(ValueError, match="validation error") as caught:
        Plain.model_validate({"number": "x"})
    assert problems(caught.value, Plain).startswith("number: ")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_wrong_plan_is_one_line_in_a_script() -> None:
    code = "import memorydojo as md\nmd.SweepPlan(memories=[], collections='banking', clean=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "errors.pydantic.dev" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith("SweepPlan: memories: it is empty; give at least one")
