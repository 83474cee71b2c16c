"""Plans of sweeps: what a file may say, what it expands to, and what errors say."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.errors import InvalidInputError
from memorydojo.planning import SweepPlan, SweepWarning, dry_run, expand, not_in_plan
from memorydojo.runs import run_id

BASE: dict[str, Any] = {
    "trajectories": ["banking-003-01", "slack-003-01"],
    "memories": ["vector"],
    "objectives": ["own-domain"],
    "payloads": ["seed-1", "seed-2"],
}

TOML = """
# A comment.
name = "example"
trajectories = [
  "banking-003-01",
  "slack-003-01",
]
objectives = "own-domain"
payloads = ["seed-1", "seed-2"]

[[memories]]
name = "vector"

[[memories]]
name = "mem0"
settings = { top_k = 7 }
"""

YAML = """
# A comment.
name: example
trajectories:
  - banking-003-01
  - slack-003-01
objectives: own-domain
payloads: [seed-1, seed-2]
memories:
  - vector
  - name: mem0
    settings:
      top_k: 7
"""


def rows(plan: SweepPlan) -> list[tuple[Any, ...]]:
    """What tells the runs of a plan apart, in order."""
    return [
        (p.memory, p.trajectory.id, p.insertion.payload.objective, p.insertion.payload.id, p.insertion.session)
        if p.insertion
        else (p.memory, p.trajectory.id, None, None, None)
        for p in expand(plan).plans.values()
    ]


def written(folder: Path, text: str, name: str = "plan.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_and_yaml_say_the_same(tmp_path: Path) -> None:
    toml, yaml = SweepPlan.from_file(written(tmp_path, TOML)), SweepPlan.from_file(written(tmp_path, YAML, "p.yaml"))
    assert toml.model_dump() == yaml.model_dump()
    assert expand(toml).plans == expand(yaml).plans
    assert {p.memory_settings["top_k"] for p in expand(toml).plans.values() if p.memory == "mem0"} == {7}


def test_runs_come_by_memory_then_trajectory_then_clean_objective_insertion_and_payload() -> None:
    plan = SweepPlan(
        trajectories=["cross-005-01"],
        memories=["vector", "full_context"],
        objectives=["banking", "slack"],
        payloads=["seed-1", "seed-2"],
        insertion=["first", 2],
        clean=True,
    )
    attacks = [(o, p, s) for o in ("banking", "slack") for s in (1, 2) for p in ("seed-1", "seed-2")]
    expected = [(m, "cross-005-01", *a) for m in ("vector", "full_context") for a in [(None, None, None), *attacks]]
    assert rows(plan) == expected


def test_models_memories_defenses_and_seeds_are_crossed_in_this_order() -> None:
    plan = SweepPlan(
        trajectories="banking-003-01",
        memories=["vector", "full_context"],
        models=["one", {"agent": "two", "memory": "three", "embedding": "four"}],
        defenses=["none", "tool_filter"],
        seeds=[0, 1],
        clean=True,
    )
    found = [(p.model, p.memory, p.defense, p.seed) for p in expand(plan).plans.values()]
    assert found == [
        (model, memory, defense, seed)
        for model in ("one", "two")
        for memory in ("vector", "full_context")
        for defense in (None, "tool_filter")
        for seed in (0, 1)
    ]
    assert {(p.memory_model, p.embedding_model) for p in expand(plan).plans.values()} == {
        ("one", "all-MiniLM-L6-v2-onnx-int8"),
        ("three", "four"),
    }


def test_one_value_may_stand_where_a_list_is_meant() -> None:
    plan = SweepPlan(collections="workspace", memories="vector", objectives="own-domain", payloads="seed-1", seeds=3)
    assert len(expand(plan).plans) == 26


def test_each_trajectory_gets_the_objective_of_its_own_domain() -> None:
    assert {(r[1], r[2]) for r in rows(SweepPlan(**BASE))} == {
        ("banking-003-01", "banking"),
        ("slack-003-01", "slack"),
    }


def test_own_domain_of_a_cross_domain_trajectory_is_an_error() -> None:
    plan = SweepPlan(**{**BASE, "trajectories": ["cross-005-01"]})
    with pytest.raises(InvalidInputError, match=r"objectives\[1\]: the trajectory 'cross-005-01' has sessions in"):
        expand(plan)


def test_equal_combinations_are_run_once_and_counted() -> None:
    plan = SweepPlan(**{**BASE, "seeds": [0, 0], "collections": ["same-domain", "banking"]})
    found = expand(plan)
    assert len(found.plans) == 4
    assert found.duplicates == 8


def test_the_runs_are_those_that_plan_run_gives() -> None:
    trajectory = md.trajectories.load("same-domain")["banking-003-01"]
    attack = md.Attack(objective="banking", payload="seed-1")
    assert run_id(md.plan_run(trajectory, "vector", attack=attack)) in expand(SweepPlan(**BASE)).plans


def test_trajectory_files_are_relative_to_the_file_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    md.trajectories.load("banking")[:2].save(tmp_path / "two.json")
    path = written(tmp_path, 'trajectory_files = "two.json"\nmemories = "vector"\nclean = true\n')
    monkeypatch.chdir("/")
    assert len(expand(SweepPlan.from_file(path)).plans) == 2


class TestPayloads:
    def plan(self, folder: Path, payloads: str) -> SweepPlan:
        text = (
            f'trajectories = ["banking-003-01", "slack-003-01"]\nmemories = ["vector", "mem0"]\npayloads = {payloads}\n'
        )
        return SweepPlan.from_file(written(folder, text + 'objectives = "own-domain"\n'))

    def test_a_file_for_each_memory_and_objective(self, tmp_path: Path) -> None:
        for memory in ("vector", "mem0"):
            for objective in ("banking", "slack"):
                file = tmp_path / memory / f"{objective}.json"
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps({"text": f"{memory} {objective} {{x}} %s"}))
        plan = self.plan(tmp_path, '[{ path = "{memory}/{objective}.json", id = "best", source = "optimized" }]')
        found = [p.insertion.payload for p in expand(plan).plans.values() if p.insertion]
        assert [(p.id, p.source, p.text) for p in found] == [
            ("best", "optimized", f"{memory} {objective} {{x}} %s")
            for memory in ("vector", "mem0")
            for objective in ("banking", "slack")
        ]

    def test_text_files_and_texts_belong_to_one_objective(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("Pay.\n")
        plan = self.plan(
            tmp_path,
            '[{ path = "mine.txt", objective = "banking" }, { text = "Send.", id = "t", objective = "slack" }]',
        )
        assert {(r[2], r[3]) for r in rows(plan)} == {("banking", "mine"), ("slack", "t")}

    def test_a_file_of_another_objective_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text('{"text": "x", "objective": "travel"}')
        plan = self.plan(tmp_path, '[{ path = "p.json", objective = "banking" }]')
        with pytest.raises(InvalidInputError, match="is written for the objective 'travel', not for 'banking'"):
            expand(plan)

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("p.json", "[1]", "is no payload"),
            ("p.json", "{", "is no JSON"),
            ("p.json", '{"text": "x", "txt": "y"}', "txt: "),
            ("p.json", "{}", "text: it is missing"),
            ("p.json", '{"text": "  "}', "it is blank"),
            ("p.toml", 'text = "x"', r"ends in \.toml; a table with a payload ends in \.json"),
        ],
    )
    def test_a_wrong_file_is_an_error_that_names_the_line_of_the_plan(
        self, tmp_path: Path, name: str, content: str, said: str
    ) -> None:
        (tmp_path / name).write_text(content)
        plan = self.plan(tmp_path, f'[{{ path = "{name}", objective = "banking" }}]')
        with pytest.raises(InvalidInputError, match=rf"line 3, payloads\[1\]: .*{said}"):
            expand(plan)

    def test_a_payload_that_a_search_wrote_is_taken_with_its_id(self, tmp_path: Path) -> None:
        held = md.Payload(id="optimized-1a2b", objective="banking", text="Pay.", source="optimized")
        held.to_file(tmp_path / "p.json", provenance={"search": "s", "simulated": True})
        plan = self.plan(tmp_path, '[{ path = "p.json", objective = "banking" }]')
        assert [p.insertion.payload for p in expand(plan).plans.values() if p.insertion] == [held, held]

    def test_a_missing_file_is_counted_but_cannot_be_run(self, tmp_path: Path) -> None:
        plan = self.plan(tmp_path, '["seed-1", { path = "{memory}/{objective}.json" }]')
        assert dry_run(plan).runs == 8
        with pytest.raises(
            InvalidInputError, match=r"4 payload files of this sweep are missing: .*vector/banking\.json"
        ):
            md.sweep(plan, directory=tmp_path / "runs")
        assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("payloads =", "paylods =", "line 9, paylods: there is no such field; did you mean 'payloads'"),
        ("top_k = 7", "top_kk = 7", r"line 16, memories\[2\].*top_kk"),
        ('name = "mem0"', 'name = "mem1"', r"line 15, memories\[2\]\.name: unknown memory system 'mem1'; did you mean"),
        ('name = "mem0"', 'nam = "mem0"', r"line 15, memories\[2\]\.nam: there is no such field; did you mean 'name'"),
        (
            '"own-domain"',
            '"own_domain"',
            "line 8, objectives: unknown objective 'own_domain'; did you mean 'own-",
        ),
        ('"seed-2"', '"seed2"', r"line 9, payloads\[2\]: unknown payload 'seed2'; did you mean 'seed-2' or"),
        ('"slack-003-01"', '"slack-03-01"', r"line 4, trajectories\[2\]: unknown trajectory 'slack-03-01'; did you"),
        ("payloads =", 'defenses = "tool-filter"\npayloads =', "line 9, defenses: unknown defense 'tool-filter'; did"),
        (
            "payloads =",
            'insertion = "frist"\npayloads =',
            "line 9, insertion: it takes 'first', 'middle' or",
        ),
        ("payloads =", "insertion = 3\npayloads =", "line 9, insertion .trajectory 'banking-003-01'.: the insertion"),
        ("payloads =", "seeds = 1.5\npayloads =", "line 9, seeds"),
        ("payloads =", 'clean = "yes"\npayloads =', "line 9, clean"),
        ("payloads =", 'collections = "same"\npayloads =', "line 9, collections: unknown collection 'same'"),
        ('payloads = ["seed-1", "seed-2"]', "", "it has objectives but no payloads"),
        ("payloads =", "payloads = 3 =", "is no TOML: .*line 9"),
    ],
)
def test_errors_name_line_and_field_and_what_is_near(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TOML
    path = written(tmp_path, TOML.replace(old, new))
    with pytest.raises(InvalidInputError, match=rf"plan\.toml.*{said}"):
        expand(SweepPlan.from_file(path))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("payloads:", "paylods:", "line 8, paylods: there is no such field; did you mean 'payloads'"),
        ("name: mem0", "name: mem1", r"line 11, memories\[2\]\.name: unknown memory system 'mem1'"),
        ("- slack-003-01", "- slack-03-01", r"line 6, trajectories\[2\]: unknown trajectory 'slack-03-01'"),
        ("objectives:", "payloads: [seed-1]\nobjectives:", "the key 'payloads' stands there twice"),
        ("objectives:", "objectives: [", "is no YAML"),
        (YAML, "- 1", "holds no table of fields"),
    ],
)
def test_errors_in_yaml_name_the_line_too(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in YAML
    path = written(tmp_path, YAML.replace(old, new), "plan.yaml")
    with pytest.raises(InvalidInputError, match=rf"plan\.yaml.*{said}"):
        expand(SweepPlan.from_file(path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memories": []}, "memories"),
        ({"memories": None}, "memories"),
        ({"trajectories": []}, "it names no trajectories"),
        ({"payloads": [], "objectives": []}, "nothing would run"),
        ({"payloads": [{}]}, r"payloads\[1\]: give the id of a shipped payload, or a path, or a text"),
        ({"payloads": [{"path": "{memory}.txt"}]}, "say which objective it is written for"),
        ({"payloads": [{"path": "{x}/{objective}.txt"}]}, "no other braces"),
        ({"payloads": [{"path": "a", "text": "b"}]}, "two payloads"),
        ({"models": [{"agnt": "x"}]}, r"models\[1\]\.agnt: there is no such field; did you mean 'agent'"),
    ],
)
def test_a_plan_from_python_that_is_wrong_says_what(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        SweepPlan(**{**BASE, **change})


def test_a_missing_file_of_a_plan_points_to_what_ships(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no file .*table-1\.toml; .* memorydojo experiments list"):
        SweepPlan.from_file(tmp_path / "table-1.toml")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"ends in \.toml, \.yaml, \.yml"):
        SweepPlan.from_file(written(tmp_path, TOML, "plan.json"))


def test_a_sweep_takes_a_plan_goes_on_and_warns_of_runs_that_do_not_belong(tmp_path: Path) -> None:
    plan = SweepPlan(trajectories="banking-003-01", memories="full_context", clean=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = md.sweep(plan, directory=tmp_path)
        assert [run.id for run in md.sweep(plan, directory=tmp_path)] == [run.id for run in runs]
    state = (runs[0].directory / "end.json").stat().st_mtime_ns
    changed = SweepPlan(trajectories="slack-003-01", memories="full_context", clean=True)
    with pytest.warns(SweepWarning, match=rf"1 run in .* does not belong to this plan, for example '{runs[0].id}'"):
        added = md.sweep(changed, directory=tmp_path)
    assert not_in_plan([run.plan for run in added], tmp_path) == [runs[0].id]
    assert (runs[0].directory / "end.json").stat().st_mtime_ns == state


def test_aliases_of_aliases_end_in_a_moment(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = written(tmp_path, "\n".join([*lines, "memories: vector"]), "bomb.yaml")
    with pytest.raises(InvalidInputError, match="there is no such field"):
        SweepPlan.from_file(path)
