"""The commands that speak with real endpoints, here a scripted one on loopback."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import memorydojo as md
from memorydojo.cli.main import main
from memorydojo.cost import Price, summarize_cost, usage_table
from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.models.config import Models


@pytest.fixture
def file(upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEST_KEY", "sk-test-0123456789abcdef")
    path = tmp_path / "models.toml"
    path.write_text(
        f'[backends.here]\nbase_url = "{upstream.base_url}"\nkey_env = "TEST_KEY"\nlimits = {{ retries = 0 }}\n'
        '[models.m]\nbackend = "here"\n'
    )
    return path


def invoke(*arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["memorydojo", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return (ended.value.code if isinstance(ended.value.code, int) else 0), said.out, said.err


def _run(file: Path, directory: Path, **more: Any) -> md.Run:
    sessions = tuple(md.Session(domain="banking", task_id=f"user_task_{n}") for n in (1, 7))
    trajectory = md.Trajectory(id="t", collection="test", sessions=sessions)
    models = Models.from_toml(file)
    return md.run(trajectory, "vector", directory=directory, model="m", embedding_model="m", models=models, **more)


def test_a_run_on_a_declared_model(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--memory", "full_context", "--model", "m", "--models", str(file), "--directory", str(tmp_path / "r")]
    code, out, err = invoke("run", "banking-003-01", *arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert (code, err) == (0, "")
    assert "simulated" not in out


def test_the_doctor_says_what_a_model_can_do(
    file: Path, upstream: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    upstream.chat = lambda _: {"role": "assistant", "content": None, "tool_calls": [call]}
    arguments = ["doctor", "--model", "m", "--models", str(file)]
    code, out, _ = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["works", "works"]


def test_the_doctor_says_why_a_model_does_not_answer(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TEST_KEY")
    arguments = ["doctor", "--model", "m", "--models", str(file)]
    code, out, _ = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 1
    assert "set TEST_KEY" in out


def test_the_doctor_says_of_models_in_json(
    file: Path, upstream: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["doctor", "--json", "--model", "m", "--models", str(file)]
    code, out, _ = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    (model,) = json.loads(out)["models"]
    assert model["model"] == "m"
    assert model["problems"]["embedding"] is None
    assert "tool" in model["problems"]["tool call"]  # the endpoint answers without calling the tool


def test_a_wrong_models_file_names_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.toml").write_text('[backends.b]\nbase_url = "http://u:secret@x/v1"\n[models.m]\nbackend = "c"\n')
    arguments = ["doctor", "--model", "m", "--models", str(tmp_path / "m.toml")]
    code, _, err = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert "backends.b.base_url" in err
    assert "secret" not in err


def test_costs_are_those_that_the_server_counted(
    file: Path, upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(file, tmp_path / "r")
    arguments = ["metrics", str(tmp_path / "r"), "--cost", "--by", "role,model", "--format", "json"]
    code, out, _ = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 0
    rows = {(row["role"], row["model"]): row for row in json.loads(out)}
    assert rows["agent", "m"]["calls"] == upstream.tokens["chat_calls"] == 2
    assert rows["agent", "m"]["output_tokens"] == upstream.tokens["output"]


def test_prices_apply_to_fresh_cached_and_output_tokens(file: Path, tmp_path: Path) -> None:
    table = usage_table([_run(file, tmp_path / "r")])
    agent = table[table["role"] == "agent"]
    priced = summarize_cost(agent, by=["role"], prices={"m": Price(input=2, cached=1, output=10)})
    sent, made = int(agent["input_tokens"].sum()), int(agent["output_tokens"].sum())
    assert priced["price"].iloc[0] == pytest.approx(((sent - 6) * 2 + 6 * 1 + made * 10) / 1e6)


def test_a_model_without_a_price_leaves_no_price(file: Path, tmp_path: Path) -> None:
    table = usage_table([_run(file, tmp_path / "r")])
    assert summarize_cost(table, prices={"other": Price(input=1)})["price"].isna().all()


def test_calls_without_token_counts_are_marked_and_leave_no_price(
    file: Path, upstream: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.usage = lambda true: true if "completion_tokens" in true else None  # as some servers of embeddings do
    run = _run(file, tmp_path / "r")
    embeddings = upstream.tokens["embedding_calls"]
    assert embeddings > 1
    by_role = summarize_cost(usage_table([run]), by=["role"], prices={"m": Price(input=1)}).set_index("role")
    assert list(by_role["unmetered"][["agent", "memory"]]) == [0, embeddings]
    assert list(by_role["price"].isna()[["agent", "memory"]]) == [False, True]
    arguments = ["metrics", str(tmp_path / "r"), "--cost"]
    _, out, _ = invoke(*arguments, monkeypatch=monkeypatch, capsys=capsys)
    assert f"{embeddings} calls without token counts" in out
    assert "unmetered" in out


def test_where_all_calls_have_token_counts_nothing_is_said_of_them(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(file, tmp_path / "r")
    _, out, _ = invoke("metrics", str(tmp_path / "r"), "--cost", monkeypatch=monkeypatch, capsys=capsys)
    assert "unmetered" not in out
    assert "without token counts" not in out


def test_costs_cannot_be_grouped_by_what_is_not_there(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown column 'rol'; did you mean 'role'"):
        summarize_cost(usage_table([_run(file, tmp_path / "r")]), by=["rol"])


def test_costs_need_saved_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    code, _, err = invoke("metrics", str(tmp_path / "t.csv"), "--cost", monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2
    assert "no directory of saved runs" in err


def test_prices_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    from memorydojo.cost import read_prices

    (tmp_path / "p.toml").write_text("[m]\ninput = -1\n")
    with pytest.raises(InvalidInputError, match=r"the prices in .* are wrong: m: input: "):
        read_prices(tmp_path / "p.toml")


@pytest.mark.parametrize("option", ["--models", "--prices"])
def test_a_missing_file_is_named_with_what_to_do(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    missing = str(tmp_path / "nothing.toml")
    code, _, err = invoke(
        "sweep", "--experiment", "table-1", "--dry-run", option, missing, monkeypatch=monkeypatch, capsys=capsys
    )
    assert code == 2
    assert err.startswith("error: there is no ")
    assert missing in err
    assert "docs/models.md" in err
    assert "Errno" not in err
