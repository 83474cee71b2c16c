"""The data card says of the shipped collections what they are."""

import json
import re
from pathlib import Path

import pytest
import yaml

import memorydojo as md
from memorydojo.trajectory import DOMAINS, Trajectory

ROOT = Path(__file__).resolve().parents[2]
CARD = (ROOT / "docs" / "data-card.md").read_text(encoding="utf-8")
FILES = ("same-domain", "cross-domain")
COLLECTIONS = (*FILES, "history-prefixed")


def _line(name: str, trajectories: list[Trajectory]) -> str:
    sessions = [session for trajectory in trajectories for session in trajectory.sessions]
    templates = {(session.domain, session.task_id) for session in sessions}
    lengths = [len(trajectory) for trajectory in trajectories]
    counts = (len(templates), len(trajectories), len(sessions), min(lengths), max(lengths))
    return f"| {name} | {' | '.join(map(str, counts))} |"


def test_the_table_of_counts_is_that_of_the_collections() -> None:
    expected = []
    for name in COLLECTIONS:
        collection = [*md.trajectories.load(name)]
        if name == "same-domain":
            expected += [_line(f"{name}: {d}", [t for t in collection if t.domains == (d,)]) for d in DOMAINS]
        expected.append(_line(name, collection))
    assert re.findall(r"^\| (?:same|cross|history).*\|$", CARD, re.MULTILINE) == expected


@pytest.mark.parametrize("flag", ["drift", "stale-success"])
def test_the_flags_are_counted(flag: str) -> None:
    sessions = [s for name in FILES for t in md.trajectories.load(name) for s in t.sessions]
    assert f"`{flag}` ({sum(flag in s.flags for s in sessions)} sessions" in CARD


def test_the_front_matter_names_every_file_that_ships() -> None:
    head = yaml.safe_load(CARD.split("---")[1])
    files = {config["config_name"]: ROOT / config["data_files"] for config in head["configs"]}
    assert {*files.values()} == {*(ROOT / "trajectories" / "data").glob("*.json")}
    assert all(json.loads(files[name].read_text())["name"] == name for name in FILES)
    assert head["license"] == "mit"


def test_the_versions_are_those_of_the_files() -> None:
    for name in FILES:
        data = json.loads((ROOT / "trajectories" / "data" / f"{name}.json").read_text())
        assert f"`agentdojo` ({data['agentdojo']})" in CARD
        assert f"`benchmark` ({data['benchmark']})" in CARD
        known = {key for trajectory in data["trajectories"] for session in trajectory["sessions"] for key in session}
        assert {*data} == {"format", "schema_version", "name", "seed", "agentdojo", "benchmark", "trajectories"}
        assert known <= {"domain", "task_id", "flags"}


def test_templates_do_not_repeat_within_a_trajectory() -> None:
    for name in COLLECTIONS:
        for trajectory in md.trajectories.load(name):
            tasks = [(session.domain, session.task_id) for session in trajectory.sessions]
            assert len({*tasks}) == len(tasks)


def test_the_recorded_conversations_are_counted() -> None:
    prefixes = [trajectory.history for trajectory in md.trajectories.load("history-prefixed")]
    assert f"({sum(prefix.n_sessions for prefix in prefixes if prefix)} in all)" in " ".join(CARD.split())
