"""``memorydojo judge`` and the metrics of its labels, on a saved sweep of the simulator."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.cli.main import main
from memorydojo.judging import OverlapJudge

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Invoke:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memorydojo", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return (ended.value.code if isinstance(ended.value.code, int) else 0), said.out, said.err

    return call


def strict(texts: dict[str, str]) -> tuple[str, str]:
    """Another opinion than the offline judge's: fragments are nothing, and no response recommends anything."""
    if "RESPONSE" in texts:
        return "", "no"
    payload = md.Payload(id="x", objective="x", text=texts["PAYLOAD"])
    judged = OverlapJudge().classify(payload, texts["TEXT"])
    if judged.label in ("exact", "transformed") and judged.span:
        return texts["TEXT"][slice(*judged.span)], "transformed"
    return "", "not_observed"


@pytest.fixture
def models(upstream: Any, judge_model: Any, tmp_path: Path) -> Path:
    upstream.chat = judge_model(strict)
    path = tmp_path / "models.toml"
    path.write_text(
        f'[backends.here]\nbase_url = "{upstream.base_url}"\nlimits = {{ retries = 0 }}\n'
        '[models.strict]\nbackend = "here"\n[models."some/judge"]\nbackend = "here"\n'
    )
    return path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a sweep: two trajectories, poisoned and clean, on a plain vector memory."""
    root = tmp_path_factory.mktemp("sweep") / "runs"
    sessions = {"travel": ("user_task_0", "user_task_1", "user_task_2"), "banking": ("user_task_1", "user_task_7")}
    plans = []
    for domain, tasks in sessions.items():
        planned = tuple(md.Session(domain=domain, task_id=task) for task in tasks)
        trajectory = md.Trajectory(id=domain, collection="test", sessions=planned)
        for attack in (None, md.Attack(objective=domain, payload="seed-1")):
            plans.append(md.plan_run(trajectory, "vector", attack=attack))
    md.sweep(plans, directory=root)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def runs(made: dict[str, bytes], tmp_path: Path) -> Path:
    for name, content in made.items():
        path = tmp_path / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "runs"


def test_a_sweep_is_judged_again_measured_and_compared(
    runs: Path, made: dict[str, bytes], models: Path, invoke: Invoke, upstream: Any
) -> None:
    code, out, err = invoke("judge", runs, "--judge", "strict", "--models", models)
    assert code == 0, err
    assert "4 runs have labels of strict" in out
    assert f"{len(upstream.requests)} calls in all" in out
    assert "next: memorydojo metrics" in out
    # No fact has changed, nor the labels that were there.
    assert {name: (runs / name).read_bytes() for name in made} == made
    both = {}
    for option in ([], ["--labels", "strict"]):
        code, out, err = invoke("metrics", runs, "--format", "json", *option)
        assert code == 0, err
        both[bool(option)] = next(row for row in json.loads(out) if row["condition"] == "poisoned")
    assert both[True]["RSR"] <= both[False]["RSR"]
    assert both[True]["BRT"] < both[False]["BRT"]
    code, out, err = invoke("judge", runs, "--agree", "overlap", "strict")
    assert code == 0, err
    assert "Agreement of overlap and strict (simulated)" in out
    for line in ("texts", "objective", "Different texts: overlap down, strict across", "fragmented"):
        assert line in out


def test_the_table_of_agreement_is_what_python_gives(runs: Path, models: Path, invoke: Invoke) -> None:
    invoke("judge", runs, "--judge", "strict", "--models", models)
    found = md.judging.agreement(md.load_runs(runs), "overlap", "strict")
    _, out, _ = invoke("judge", runs, "--agree", "overlap", "strict")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    shown = {row[0]: row[1:] for row in rows}
    for row in found.summary.to_dict("records"):
        assert shown[row["level"]][0] == str(row["n"])
        if row["kappa"] == row["kappa"]:
            ends = "" if math.isnan(row["kappa_low"]) else f" [{row['kappa_low']:.3f}, {row['kappa_high']:.3f}]"
            assert shown[row["level"]][2] == f"{row['kappa']:.3f}{ends}"
    confusion = [[int(cell) for cell in row[1:]] for row in rows if row[0] in found.confusion.index]
    assert confusion == found.confusion.to_numpy().tolist()


def test_judging_twice_asks_nothing_more(runs: Path, models: Path, invoke: Invoke, upstream: Any) -> None:
    invoke("judge", runs, "--judge", "strict", "--models", models)
    asked = len(upstream.requests)
    code, out, _ = invoke("judge", runs, "--judge", "strict", "--models", models)
    assert (code, len(upstream.requests)) == (0, asked)
    assert "(4 had them before)" in out


def test_a_model_whose_name_is_no_name_of_a_file_is_found_by_it(runs: Path, models: Path, invoke: Invoke) -> None:
    assert invoke("judge", runs, "--judge", "some/judge", "--models", models)[0] == 0
    code, out, err = invoke("metrics", runs, "--labels", "some/judge", "--no-intervals")
    assert code == 0, err
    assert "Labels: some-judge-" in out
    assert md.load_runs(runs)[0].labels("some/judge").model is not None
    assert invoke("judge", runs, "--agree", "overlap", "some/judge")[0] == 0


def test_the_cost_of_a_judge_is_in_the_cost_of_the_runs(
    runs: Path, models: Path, invoke: Invoke, upstream: Any
) -> None:
    invoke("judge", runs, "--judge", "strict", "--models", models)
    _, out, _ = invoke("metrics", runs, "--cost", "--by", "role,model", "--format", "json")
    (row,) = [row for row in json.loads(out) if row["role"] == "judge"]
    assert (row["model"], row["calls"]) == ("strict", len(upstream.requests))


def test_errors_are_told_with_their_reasons_and_in_the_metrics(
    runs: Path, models: Path, invoke: Invoke, upstream: Any
) -> None:
    upstream.chat = lambda body: {"role": "assistant", "content": "\x1b[31mNo comment."}
    code, out, _ = invoke("judge", runs, "--judge", "strict", "--models", models)
    assert code == 0
    assert "texts without a usable answer have the label error and count as 0" in out
    assert "times: no usable answer in 3 attempts" in out
    assert "--retry-errors" in out
    assert "\x1b" not in out
    _, out, _ = invoke("metrics", runs, "--labels", "strict", "--no-intervals")
    assert "hangs on texts that the judge gave no usable answer about" in " ".join(out.split())


def test_the_default_is_the_offline_judge(runs: Path, invoke: Invoke) -> None:
    code, out, _ = invoke("judge", runs)
    assert code == 0
    assert "4 runs have labels of overlap (4 had them before)" in out


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"schema_version": 1}'])
def test_damaged_labels_name_the_command_that_makes_them_again(runs: Path, invoke: Invoke, damage: str) -> None:
    path = next(runs.glob("runs/*/labels/overlap.json"))
    path.write_text(damage)
    code, _, err = invoke("metrics", runs)
    assert code == 1
    assert err.endswith(f"Labels can be made again with: memorydojo judge {runs} --judge overlap --again\n")
    assert invoke("judge", runs, "--judge", "overlap", "--again")[0] == 0
    assert invoke("metrics", runs, "--no-intervals")[0] == 0


def test_damaged_labels_of_a_model_name_it_as_it_was_asked_for(runs: Path, models: Path, invoke: Invoke) -> None:
    assert invoke("judge", runs, "--judge", "some/judge", "--models", models)[0] == 0
    next(runs.glob("runs/*/labels/some-judge-*.json")).write_text("{")
    _, _, err = invoke("metrics", runs, "--labels", "some/judge")
    assert err.endswith(f"memorydojo judge {runs} --judge some/judge --models FILE --again\n")


def test_judging_over_damaged_labels_says_how_to_go_on(runs: Path, invoke: Invoke) -> None:
    next(runs.glob("runs/*/labels/overlap.json")).write_text("{")
    code, _, err = invoke("judge", runs)
    assert code == 1
    assert f"memorydojo judge {runs} --judge overlap --again" in err


def test_labels_of_another_run_name_the_command_that_makes_them_again(runs: Path, invoke: Invoke) -> None:
    one, other, *_ = sorted(runs.glob("runs/*/labels/overlap.json"))
    one.write_bytes(other.read_bytes())
    code, _, err = invoke("metrics", runs)
    assert code == 1
    assert "belong to another run" in err
    assert f"memorydojo judge {runs} --judge overlap --again" in err


def test_a_dead_endpoint_is_an_error_that_says_to_go_on(
    runs: Path, models: Path, invoke: Invoke, upstream: Any, faults: Any
) -> None:
    upstream.faults = [faults.status(401)]
    code, _, err = invoke("judge", runs, "--judge", "strict", "--models", models)
    assert code == 1
    assert "give the same command again" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge", "nobody"], "unknown model 'nobody'"),
        (["--judge", "simulated"], "cannot judge; use the offline judge"),
        (["--agree", "overlap", "overlap"], "was named twice"),
        (["--agree", "overlap", "x", "--judge", "overlap"], "use one of them"),
        (["--judge", "strict", "--replay", "sometimes"], "unknown replay mode"),
    ],
)
def test_wrong_use_is_named(runs: Path, models: Path, invoke: Invoke, arguments: list[str], said: str) -> None:
    more = [] if "--agree" in arguments else ["--models", str(models)]
    code, _, err = invoke("judge", runs, *arguments, *more)
    assert code == 2
    assert said in " ".join(err.replace("│", " ").split())


def test_labels_that_are_missing_name_the_command_that_makes_them(runs: Path, invoke: Invoke) -> None:
    code, _, err = invoke("metrics", runs, "--labels", "gpt-mini")
    assert code == 1
    assert f"memorydojo judge {runs} --judge gpt-mini --models FILE" in err
