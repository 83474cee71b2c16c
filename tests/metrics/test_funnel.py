"""The funnel, losses and retrieval by route, against plain loops over row dicts."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorydojo.errors import InvalidInputError, UnknownNameError
from memorydojo.metrics import LOSSES, by_delivery, funnel, losses, summarize
from memorydojo.metrics._funnel import Delivery

ROUTES = ["", "primary", "linked", "episodic", "episodic,primary", "episodic,linked"]


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 4))):
        n = draw(st.integers(2, 4))
        t0 = draw(st.none() | st.integers(1, n - 1)) if number else 1
        attacked = t0 is not None
        inserted, entered = draw(st.booleans()), draw(st.booleans())
        for t in range(1, n + 1):
            later = t0 is not None and t > t0
            routes = draw(st.sampled_from(ROUTES)) if later else ""
            rows.append(
                {
                    "run_id": f"r{number}",
                    "session": t,
                    "n_sessions": n,
                    "insertion_session": t0,
                    "domain": draw(st.sampled_from(["workspace", "travel"])),
                    "objective_domain": "travel" if attacked else None,
                    "inserted": attacked and inserted,
                    "retrieved": bool(routes),
                    "retrieved_original": bool(routes),
                    "retrieved_descendant": False,
                    "objective_met": draw(st.booleans()),
                    "utility": draw(st.booleans()),
                    "completed": True,
                    "memory": draw(st.sampled_from(["m", "n"])) if t == 1 else rows[-1]["memory"],
                    "trajectory_id": f"t{number % 2}",
                    "payload_inserted": entered,
                    "failed_check": draw(st.sampled_from(LOSSES)) if later else None,
                    "retrieved_routes": routes,
                }
            )
    return pd.DataFrame(rows)


def attacked_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_dict("records")  # type: ignore[assignment]
    return [row for row in rows if row["insertion_session"] == row["insertion_session"]]


@given(tables())
@settings(max_examples=60)
def test_the_funnel_counts_what_plain_loops_count(table: pd.DataFrame) -> None:
    rows = attacked_rows(table)
    later = [r for r in rows if r["session"] > r["insertion_session"]]
    held = {
        "entered": [r for r in later if r["payload_inserted"]],
        "stored": [r for r in later if r["inserted"]],
        "retrieved": [r for r in later if r["retrieved"]],
        "acted on": [r for r in later if r["retrieved"] and r["objective_met"]],
    }
    found = {(r["unit"], r["stage"]): (r["n"], r["of"]) for r in funnel(table, intervals=False).to_dict("records")}
    runs = len({r["run_id"] for r in rows})
    assert found == {
        **{("runs", stage): (len({r["run_id"] for r in some}), runs) for stage, some in held.items()},
        **{("later sessions", stage): (len(some), len(later)) for stage, some in held.items()},
    }


@given(tables())
@settings(max_examples=60)
def test_the_funnel_agrees_with_the_metrics(table: pd.DataFrame) -> None:
    shares = funnel(table, replicates=50).set_index(["unit", "stage"])
    metrics = summarize(table[table["insertion_session"].notna()], replicates=50).iloc[0]
    for place, metric in {("runs", "stored"): "ISR", ("later sessions", "retrieved"): "RSR"}.items():
        for end in ("", "_low", "_high"):
            pair = pd.Series([shares.loc[place, f"share{end}"], metrics[f"{metric}{end}"]])
            assert pair.isna().all() or pair[0] == pytest.approx(pair[1])


@given(tables())
@settings(max_examples=60)
def test_losses_divide_the_later_sessions(table: pd.DataFrame) -> None:
    later = [r for r in attacked_rows(table) if r["session"] > r["insertion_session"]]
    found = losses(table, intervals=False)
    assert dict(zip(found["failed_check"], found["n"], strict=True)) == {
        check: sum(r["failed_check"] == check for r in later) for check in LOSSES
    }
    assert found["share"].sum() == pytest.approx(1)


@given(tables(), st.sampled_from(["route", "reach"]))
@settings(max_examples=60)
def test_retrieval_by_route_counts_each_session_once_a_route(table: pd.DataFrame, what: Delivery) -> None:
    expected: dict[tuple[str, str], list[bool]] = {}
    later = [r for r in attacked_rows(table) if r["session"] > r["insertion_session"]]
    for row in later:
        routes = set(filter(None, row["retrieved_routes"].split(",")))
        if what == "reach" and routes:
            routes = {"indirect only" if routes <= {"linked", "episodic"} else "direct"}
        for route in routes:
            expected.setdefault((row["memory"], route), []).append(row["objective_met"])
    found = {
        (r["memory"], r[what]): r
        for r in by_delivery(table, what, by="memory", intervals=False).to_dict("records")
        if r["n_retrieved"]
    }
    assert set(found) == set(expected)
    for place, met in expected.items():
        of = sum(r["memory"] == place[0] for r in later)
        assert found[place]["n_retrieved"] == len(met)
        assert found[place]["RSR"] == pytest.approx(len(met) / of)
        assert found[place]["BRT_given_R"] == pytest.approx(sum(met) / len(met))


@pytest.fixture
def table(run_rows: Any) -> pd.DataFrame:
    rows = run_rows("r1", ["workspace"] * 3, inserted=True, original=[2], trajectory_id="t1", retrieved_routes="")
    for row in rows:
        row["retrieved_routes"] = "primary" if row["retrieved"] else ""
    return pd.DataFrame(rows)


def test_a_table_that_does_not_say_whether_the_payload_entered_has_no_such_stage(table: pd.DataFrame) -> None:
    assert set(funnel(table)["stage"]) == {"stored", "retrieved", "acted on"}


def test_a_funnel_of_each_run_is_grouped_by_run(table: pd.DataFrame) -> None:
    assert list(funnel(table, by="run_id")["run_id"].unique()) == ["r1"]


def test_a_funnel_refuses_a_key_that_divides_runs(table: pd.DataFrame) -> None:
    table["domain"] = ["workspace", "travel", "travel"]
    with pytest.raises(InvalidInputError, match="differs within runs"):
        funnel(table, by="domain")


def test_losses_need_the_column_of_saved_runs(table: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="no column 'failed_check'"):
        losses(table)


def test_losses_refuse_an_unknown_check(table: pd.DataFrame) -> None:
    with pytest.raises(InvalidInputError, match="holds 'lost'"):
        losses(table.assign(failed_check="lost"))


def test_an_unknown_breakdown_is_named(table: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="breakdown 'rout'"):
        by_delivery(table, "rout")  # type: ignore[arg-type]


def test_a_payload_that_was_never_delivered_has_no_routes(table: pd.DataFrame) -> None:
    never = table.assign(retrieved=False, retrieved_original=False, retrieved_routes="")
    found = by_delivery(never, "route", by="run_id")
    assert len(found) == 0
    assert list(found.columns) == list(by_delivery(table, "route", by="run_id").columns)
