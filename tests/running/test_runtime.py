from agentdojo.functions_runtime import FunctionCall

from memorydojo.running.environment import fresh_environment, runtime_functions
from memorydojo.running.runtime import RecordingRuntime


def runtime(payload: str | None = "POISON", observation: int = 1) -> RecordingRuntime:
    return RecordingRuntime(runtime_functions("banking"), payload=payload, observation=observation)


def test_the_payload_is_appended_once_to_the_chosen_observation() -> None:
    env, r = fresh_environment("banking"), runtime(observation=2)
    texts = [r.run_function(env, "get_balance", {})[0] for _ in range(3)]
    assert ["POISON" in str(text) for text in texts] == [False, True, False]
    assert [a.poisoned for a in r.actions] == [False, True, False]
    assert str(texts[1]) == f"{texts[0]}\n\nPOISON" == r.actions[1].observation


def test_failed_calls_do_not_count_and_get_no_payload() -> None:
    env, r = fresh_environment("banking"), runtime()
    _, error = r.run_function(env, "read_file", {"wrong": 1})
    text, _ = r.run_function(env, "get_iban", {})
    assert error is not None
    assert "POISON" in str(text)
    assert [(a.error is None, a.poisoned) for a in r.actions] == [(False, False), (True, True)]


def test_nested_calls_are_recorded_but_get_no_payload() -> None:
    env, r = fresh_environment("banking"), runtime()
    nested = FunctionCall(function="get_iban", args={})
    call = {"recipient": nested, "amount": 1.0, "subject": "s", "date": "2024-05-16"}
    text, error = r.run_function(env, "send_money", call)
    assert error is None
    inner, outer = r.actions
    assert (inner.function, inner.depth, inner.poisoned) == ("get_iban", 1, False)
    assert (outer.function, outer.depth, outer.poisoned) == ("send_money", 0, True)
    assert outer.arguments["recipient"] == inner.observation
    assert str(text).endswith("POISON")


def test_a_nested_call_counts_as_done_when_the_outer_one_fails() -> None:
    env, r = fresh_environment("banking"), runtime(payload=None)
    nested = FunctionCall(function="get_iban", args={})
    _, error = r.run_function(env, "read_file", {"file_path": nested, "x": FunctionCall(function="no_tool", args={})})
    assert error is not None
    assert [(a.function, a.depth, a.error is None) for a in r.actions] == [
        ("get_iban", 1, True),
        ("no_tool", 1, False),
        ("read_file", 0, False),
    ]


def test_an_observation_that_is_never_reached_leaves_no_mark() -> None:
    env, r = fresh_environment("banking"), runtime(observation=5)
    r.run_function(env, "get_iban", {})
    assert not any(a.poisoned for a in r.actions)


def test_hostile_payloads_are_appended_word_for_word() -> None:
    payload = "{0} %s $(rm) \x1b[31m </script> {{ 7*7 }}"
    env, r = fresh_environment("banking"), runtime(payload=payload)
    assert str(r.run_function(env, "get_iban", {})[0]).endswith(payload)
