import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memorydojo.adapters._letta_hits import hits
from memorydojo.adapters._letta_state import MessageState
from memorydojo.adapters._letta_text import PROMPT_HEAD, captured, conversation, repeatable, simulated_answer
from memorydojo.errors import InvalidInputError, MemorySystemError
from memorydojo.simulator.extraction import Line
from memorydojo.simulator.transcript import lines as transcript_lines
from memorydojo.testing import make_session, standing_statement

REMINDER = f"{PROMPT_HEAD} - ...\n</system-reminder>\n\nMessages:\n"
TOOLS = [
    {"type": "function", "function": {"name": name}}
    for name in ("archival_memory_insert", "memory_finish_edits", "memory_insert")
]
SESSION = "Session of 2024-05-15 09:30\n\n"


def request(*later: dict[str, Any], human: str = "", said: str = standing_statement(1)) -> dict[str, Any]:
    system = f"<memory_blocks>\n\n<human>\n<value>\n{human}\n</value>\n</human>\n\n</memory_blocks>"
    prompt = f"{REMINDER}user: Read my mail.\nassistant: {SESSION}Observation from read_mail: {said}"
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}, *later]
    return {"messages": messages, "tools": TOOLS}


def called(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    (call,) = answer["tool_calls"]
    return call["function"]["name"], json.loads(call["function"]["arguments"])


def test_the_simulated_agent_makes_one_edit_a_request_and_then_finishes() -> None:
    later: list[dict[str, Any]] = []
    names = []
    for _ in range(3):
        answer = simulated_answer(request(*later))
        names.append(called(answer)[0])
        later += [answer, {"role": "tool", "content": "{}"}]
    assert names == ["memory_insert", "archival_memory_insert", "memory_finish_edits"]


def test_the_simulated_agent_puts_what_lasts_into_the_core_block_and_all_facts_into_the_archive() -> None:
    said = f"Nora's account is DE89370400440532013000. {standing_statement(1)}"
    first = simulated_answer(request(said=said))
    assert called(first) == ("memory_insert", {"label": "human", "new_string": standing_statement(1)})
    name, arguments = called(simulated_answer(request(first, said=said)))
    assert name == "archival_memory_insert"
    assert standing_statement(1) in arguments["content"]
    assert "User's mail" in arguments["content"]


def test_the_simulated_agent_inserts_nothing_that_the_core_block_holds() -> None:
    assert called(simulated_answer(request(human=standing_statement(1))))[0] == "archival_memory_insert"


def test_the_simulated_agent_remembers_what_it_inserted_in_earlier_sessions() -> None:
    earlier = request()["messages"]
    edit = simulated_answer(request())
    again = {"messages": [*earlier, edit, {"role": "tool", "content": "{}"}, earlier[1]], "tools": TOOLS}
    assert called(simulated_answer(again))[0] == "archival_memory_insert"


def test_no_two_calls_of_a_context_share_an_id() -> None:
    first = simulated_answer(request())
    second = simulated_answer(request(first, {"role": "tool", "content": "{}"}))
    assert first["tool_calls"][0]["id"] != second["tool_calls"][0]["id"]
    assert simulated_answer(request()) == first


def test_the_simulated_agent_finishes_when_its_context_holds_no_conversation() -> None:
    summary = {"role": "user", "content": '{"type": "system_alert", "message": "The user likes tea."}'}
    assert called(simulated_answer({"messages": [summary], "tools": TOOLS})) == ("memory_finish_edits", {})


def test_a_request_for_a_summary_gets_a_text() -> None:
    transcript = {"role": "user", "content": f"[user] {REMINDER}{standing_statement(3)}"}
    answer = simulated_answer({"messages": [{"role": "system", "content": "Sum up."}, transcript]})
    assert "nora.quill3@example.com" in answer["content"]


def test_a_request_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        simulated_answer({"messages": [{"role": "system", "content": "You are a poet."}]})


def test_the_prompt_tells_who_said_what() -> None:
    users, told = captured(make_session(1, "Hello there."))
    lines = conversation(f"{REMINDER}user: {users[0]}\nassistant: {told}")
    assert [line.role for line in lines] == ["user", "call", "tool", "assistant"]
    assert lines[0].text == "Summarize my unread emails."
    assert lines[1].text == "get_unread_emails(limit=3)"
    assert lines[2].text.endswith("Hello there.")


@pytest.mark.parametrize("text", ["", "Session of 2024-05-15 09:30", "no transcript at all\n\nAssistants: x"])
def test_a_text_that_is_no_transcript_has_no_lines(text: str) -> None:
    assert transcript_lines(text) == []


def test_paragraphs_belong_to_the_line_before_them() -> None:
    text = f"{SESSION}Observation from f (error): no\n\nreally\n\nAssistant: yes"
    assert transcript_lines(text) == [Line("tool", "no\n\nreally"), Line("assistant", "yes")]


def test_times_and_ids_of_the_machine_become_those_of_the_sessions() -> None:
    now = "2026-11-30 07:12:35 AM UTC+0000"
    metadata = f"<memory_metadata>\n- AGENT_ID: agent-{'1' * 8}-0000-4000-8000-{'2' * 12}\n- System prompt last "
    prompt = {"role": "user", "content": REMINDER + f'user: the log says "time": "{now}"'}
    result = {"role": "tool", "content": json.dumps({"status": "OK", "message": now, "time": now})}
    summary = {"role": "user", "content": json.dumps({"type": "system_alert", "message": "x", "time": now})}
    system = {"role": "system", "content": f"{now} {metadata}recompiled: {now}\n</memory_metadata>"}
    times = [datetime(2024, 5, day, 9, 30, tzinfo=UTC) for day in (1, 2, 3)]
    messages = repeatable({"messages": [system, summary, prompt, result, prompt, result]}, times)["messages"]
    texts = [message["content"] for message in messages]
    assert texts[0].startswith(now)
    assert "recompiled: 2024-05-03 09:30:00 AM UTC+0000\n" in texts[0]
    assert "agent-00000000-" in texts[0]
    assert json.loads(texts[1])["time"].startswith("2024-05-03")
    assert texts[2] == prompt["content"]
    assert json.loads(texts[3]) == {"status": "OK", "message": now, "time": "2024-05-02 09:30:00 AM UTC+0000"}
    assert json.loads(texts[5])["time"].startswith("2024-05-03")


def block(label: str, value: str) -> str:
    return f"<{label}>\n<description>\nText.\n</description>\n<value>\n{value}\n</value>\n</{label}>"


def ordered(*blocks: str) -> str:
    text = "Intro.\n\n<memory_blocks>\nThese:\n\n" + "".join(f"{b}\n\n" for b in blocks) + "</memory_blocks>\n\n"
    system = {"role": "system", "content": f"{text}<memory_metadata>\n</memory_metadata>"}
    return str(repeatable({"messages": [system]}, [datetime(2024, 5, 1, tzinfo=UTC)])["messages"][0]["content"])


def test_core_blocks_come_by_label() -> None:
    human, persona = block("human", "tea\n\n<b>\n"), block("persona", "")
    assert ordered(persona, human) == ordered(human, persona)
    assert "\n\n".join((human, persona)) in ordered(persona, human)


@pytest.mark.parametrize(
    "value", ["x\n</value>\n</persona>\n\ny", block("human", "z") + "\n\nw", "</memory_blocks>\n\n"]
)
def test_core_blocks_that_look_like_others_lose_nothing(value: str) -> None:
    human, persona = block("human", "tea"), block("persona", value)
    text = ordered(persona, human)
    assert human in text
    assert persona in text


def stored(*texts: str) -> list[MessageState]:
    return [MessageState("s", "user", text, f"2026-11-30T07:00:0{n}+00:00") for n, text in enumerate(texts)]


def result(number: int, **more: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-11-30T07:00:0{number}+00:00", "role": "user", "content": "x", **more}


def test_hits_are_known_by_their_times() -> None:
    answer = {"message": "Showing 2 results:", "results": [result(2), result(0)]}
    assert hits(answer, "tea", stored("tea", "coffee", "tea"), 5) == [2, 0]


def test_hits_whose_times_were_overwritten_are_found_again() -> None:
    answer = {"message": "Showing 2 results:", "results": [result(2, timestamp="never"), result(0)]}
    assert hits(answer, "TEA", stored("tea", "coffee", "tea"), 5) == [2, 0]


def test_hits_of_an_answer_that_was_cut_off_are_found_again() -> None:
    answer = '{"message": "Showing 2 results:", "results": [{"timestamp": "2026... [NOTE: function output was truncated'
    assert hits(answer, "tea", stored("tea", "coffee", "tea"), 5) == [2, 0]


def test_an_answer_that_does_not_fit_the_messages_is_an_error() -> None:
    answer = {"message": "Showing 1 results:", "results": [result(7)]}
    with pytest.raises(MemorySystemError, match="1 results, and 2 messages"):
        hits(answer, "tea", stored("tea", "coffee", "tea"), 5)


def test_an_answer_without_results_has_no_hits() -> None:
    assert hits({"message": "No results found.", "results": []}, "tea", stored("coffee"), 5) == []


def test_the_order_of_the_tools_makes_no_difference() -> None:
    times = [datetime(2024, 5, 15, tzinfo=UTC)]
    turned = {**request(), "tools": TOOLS[::-1]}
    assert repeatable(turned, times) == repeatable(request(), times)


def test_a_request_without_tools_gets_none() -> None:
    asked = {"messages": request()["messages"]}
    assert repeatable(asked, [datetime(2024, 5, 15, tzinfo=UTC)]) == asked
