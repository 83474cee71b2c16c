import json
from typing import Any

import pytest

from memorydojo.adapters import _memora_requests as requests
from memorydojo.adapters.memora import MemoraAdapter
from memorydojo.errors import InvalidInputError
from memorydojo.record import Message
from memorydojo.simulator.extraction import Line, extract
from memorydojo.testing import make_session, standing_statement


def answer(request: dict[str, Any]) -> Any:
    return json.loads(MemoraAdapter.simulate(request)["content"])


def decided(new: str, *old: str) -> Any:
    return answer(requests.decision(("new", new), [(f"old {n}", text) for n, text in enumerate(old)], max_tokens=1))


def cues(value: str) -> list[str]:
    found: list[str] = answer(requests.cues([("index", value)], max_tokens=1))["results"][0]["cue_indices"]
    return found


def steered(query: str, working: list[str], frontier: list[str], *, trace: list[dict[str, Any]] | None = None) -> Any:
    return answer(
        requests.policy(
            query,
            step=1,
            max_steps=4,
            working=[(f"w{n}", "", text) for n, text in enumerate(working)],
            frontier=[(f"f{n}", "cue", "", text) for n, text in enumerate(frontier)],
            trace=trace or [],
            max_tokens=1,
        )
    )


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "Tell me a joke."}],
        [{"role": "system", "content": requests.CUES}],
        [{"role": "system", "content": requests.CUES}, {"role": "user", "content": "no JSON"}],
        [],
    ],
)
def test_other_requests_are_refused(messages: list[dict[str, str]]) -> None:
    with pytest.raises(InvalidInputError, match="no request of Memora"):
        MemoraAdapter.simulate({"messages": messages})


def test_every_simulated_answer_has_the_form_that_is_asked_for() -> None:
    record = make_session(1, standing_statement(1))
    requests.MemoryOutputs.model_validate(answer(requests.extraction(record, max_tokens=1)))
    requests.check_cues(
        requests.BatchCueIndices.model_validate(answer(requests.cues([("a", "b"), ("c", "!?")], max_tokens=1))), 2
    )
    for found in (decided("Ann likes tea.", "Ann likes tea."), decided("Ann likes tea.", "The sky.")):
        requests.check_decision(requests.MemoryUpdateDecision.model_validate(found), 1)
    for found in (steered("a b", [], ["a b"]), steered("a b", [], []), steered("a", ["a"], [])):
        requests.check_policy(requests.PolicyDecision.model_validate(found))


def test_values_are_the_facts_of_the_common_extraction() -> None:
    record = make_session(1, standing_statement(1))
    found = answer(requests.extraction(record, max_tokens=1))["entries"]
    lines = [
        Line("user", record.messages[0].text),
        Line("assistant", ""),
        Line("call", "get_unread_emails(limit=3)"),
        Line("tool", record.messages[2].text),
        Line("assistant", record.messages[3].text),
    ]
    assert [entry["value"] for entry in found] == [fact.text for fact in extract(lines)]
    assert standing_statement(1) in [entry["value"] for entry in found]


def test_an_index_has_the_topic_words_and_the_first_target() -> None:
    found = answer(requests.extraction(make_session(1, standing_statement(1)), max_tokens=1))["entries"]
    assert found[-1]["index"] == "weekly report team 1 sent nora.quill1@example.com"


def test_facts_of_a_session_with_the_same_topic_words_get_different_indices() -> None:
    record = make_session(1)
    said = "Always pay the rent of the house. Never ever pay the rent to the house."
    record = record.model_copy(update={"messages": (Message(role="user", text=said),)})
    indices = [entry["index"] for entry in answer(requests.extraction(record, max_tokens=1))["entries"]]
    assert len(indices) == 2
    assert len(set(indices)) == 2


def test_the_words_of_a_text_alone_make_its_facts() -> None:
    plain = requests.extraction(make_session(1, "The cafeteria closes at noon."), max_tokens=1)
    assert "cafeteria" not in json.dumps(answer(plain))


def test_cues_are_pairs_of_topic_words_within_a_clause() -> None:
    assert cues("The user wants the weekly report sent to Ann, the office manager.") == [
        "weekly report",
        "sent ann",
        "office manager",
    ]


def test_cues_have_no_numbers_and_no_targets() -> None:
    assert cues("Room 12 of ann@example.com has blue walls.") == ["blue walls"]


def test_a_text_without_pairs_gives_its_words_or_its_index() -> None:
    assert cues("Tea.") == ["Tea"]
    assert cues("...") == ["index"]


def test_the_candidate_with_most_shared_topic_words_is_updated() -> None:
    found = decided("Ann likes green tea.", "Bob has a dog.", "Ann likes tea.")
    assert (found["should_update"], found["best_candidate_index"]) == (True, 1)
    assert found["updated_value"] == "Ann likes tea. Ann likes green tea."
    assert found["updated_index"] == "old 1"


def test_what_one_value_says_already_is_not_said_twice() -> None:
    assert decided("Ann likes tea.", "Ann likes tea. Always.")["updated_value"] == "Ann likes tea. Always."
    assert decided("Ann likes tea. Always.", "Ann likes tea.")["updated_value"] == "Ann likes tea. Always."


def test_facts_with_few_shared_words_or_a_long_common_value_stay_apart() -> None:
    assert not decided("Ann likes tea.", "Ann works at the bank in Oslo.")["should_update"]
    words = [f"word{n}" for n in range(40)]
    assert not decided(" ".join(words), " ".join(reversed(words)))["should_update"]


def test_frontier_facts_that_share_two_words_with_the_query_are_expanded_best_first() -> None:
    found = steered(
        "Send the weekly report to Ann", [], ["report", "weekly report", "Ann's weekly report, sent to Ann"]
    )
    assert found == {"action": "EXPAND", "ids": ["f2", "f1"], "query": ""}


def test_a_query_of_which_half_is_missing_is_searched_once_by_what_is_missing() -> None:
    found = steered("Send the weekly report to Ann", ["weekly tea"], [])
    assert found == {"action": "RE_QUERY", "ids": [], "query": "send report ann"}
    again = steered("Send the weekly report to Ann", ["weekly tea"], [], trace=[{"action": "RE_QUERY"}])
    assert again["action"] == "STOP"


def test_a_query_that_is_covered_stops_the_search() -> None:
    assert steered("Send the weekly report", ["the weekly report, sent on Monday"], [])["action"] == "STOP"
