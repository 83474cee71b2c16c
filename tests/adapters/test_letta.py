import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memorydojo.adapters._letta_text import PROMPT_HEAD
from memorydojo.adapters.letta import LettaAdapter, LettaConfig
from memorydojo.errors import MemorySystemError, MissingPackageError
from memorydojo.models.simulated import SimulatedModels
from memorydojo.record import Message, SessionRecord
from memorydojo.simulator.embedder import MiniLMEmbedder
from memorydojo.testing import QUERY, address, make_session, standing_statement
from tests.adapters import fake_letta as module
from tests.adapters.conftest import REAL, LettaAt

EMBEDDER = MiniLMEmbedder()
REQUEST = "Summarize my unread emails."

Step = tuple[str, dict[str, Any]]
FINISH: Step = ("memory_finish_edits", {})


class Scripted(SimulatedModels):
    """Makes the same tool calls in every session and records the requests; without calls it is the simulator."""

    def __init__(self, *calls: Step) -> None:
        super().__init__(LettaAdapter.simulate, embedder=EMBEDDER)
        self.calls = calls
        self.requests: list[Mapping[str, Any]] = []

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        if not self.calls:
            return super().chat(request)
        done = sum(bool(m.get("tool_calls")) for m in _present(request))
        name, arguments = self.calls[done]
        function = {"name": name, "arguments": json.dumps(arguments)}
        id_ = f"call-{len(request['messages'])}"
        return reply(None, tool_calls=[{"id": id_, "type": "function", "function": function}])

    def prompts(self) -> list[str]:
        """The background agent's prompts, one for each session."""
        asked = [_present(request) for request in self.requests if request.get("tools")]
        return [str(messages[0]["content"]) for messages in asked if len(messages) == 1]


class Answering(Scripted):
    """Gives one response to every request."""

    def __init__(self, response: dict[str, Any]) -> None:
        super().__init__()
        self.response = response

    def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        return self.response


def _present(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages of the present session."""
    messages = request["messages"]
    start = max(n for n, m in enumerate(messages) if str(m.get("content") or "").startswith(PROMPT_HEAD))
    found: list[Mapping[str, Any]] = list(messages[start:])
    return found


def reply(content: Any, *, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {"object": "chat.completion", "model": "simulated", "choices": [choice], "usage": usage}


def insert(text: str, label: str = "human") -> Step:
    return ("memory_insert", {"label": label, "new_string": text})


def archive(text: str) -> Step:
    return ("archival_memory_insert", {"content": text})


Opened = Callable[..., LettaAdapter]


@pytest.fixture
def opened(tmp_path: Path, letta: LettaAt) -> Iterator[Opened]:
    """Opens Letta in a directory of the test's and closes it afterwards."""
    yield from _opened(tmp_path, letta)


@pytest.fixture
def faked(tmp_path: Path, fake_letta: LettaAt) -> Iterator[Opened]:
    """The same on the stand-in alone, for what the real server cannot be made to do."""
    yield from _opened(tmp_path, fake_letta)


def _opened(tmp_path: Path, letta: LettaAt) -> Iterator[Opened]:
    made: list[LettaAdapter] = []

    def make(models: Any = None, name: str = "memory", **settings: Any) -> LettaAdapter:
        (tmp_path / name).mkdir(exist_ok=True)
        given = {"url": letta.url, "key_variable": letta.key_variable, **settings}
        made.append(LettaAdapter.open(tmp_path / name, models or Scripted(), LettaConfig(**given)))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


def test_every_session_is_processed_by_itself_and_at_once(opened: Opened) -> None:
    models = Scripted(insert("User likes tea"), FINISH)
    memory = opened(models)
    for number in (1, 2, 3):
        memory.write(make_session(number, standing_statement(number)))
    prompts = models.prompts()
    assert [[n for n in (1, 2, 3) if address(n) in prompt] for prompt in prompts] == [[1], [2], [3]]


def test_a_memory_that_was_opened_again_shows_the_agent_only_the_new_session(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    memory.close()
    models = Scripted()
    opened(models).write(make_session(2, standing_statement(2)))
    assert address(2) in models.prompts()[0]
    assert address(1) not in models.prompts()[0]


def test_the_background_agent_keeps_its_context_when_a_memory_is_opened_again(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    memory.close()
    models = Scripted()
    opened(models).write(make_session(2, standing_statement(2)))
    assert any(address(1) in str(m.get("content")) for m in models.requests[0]["messages"])


def test_originals_forks_and_equal_runs_ask_the_model_exactly_the_same(opened: Opened, tmp_path: Path) -> None:
    asked = []
    for name in ("a", "b"):
        memory = opened(name=name)
        memory.write(make_session(1, standing_statement(1)))
        memory.checkpoint(tmp_path / f"{name}-fork")
        memory.close()
    for name in ("a", "b", "a-fork", "b-fork"):
        models = Scripted()
        opened(models, name=name).write(make_session(2, standing_statement(2)))
        asked.append(models.requests)
    models = Scripted()
    memory = opened(models, name="c")
    memory.write(make_session(1, standing_statement(1)))
    first = len(models.requests)
    memory.write(make_session(2, standing_statement(2)))
    assert len(asked[0]) > 1
    for requests in asked:
        assert requests == models.requests[first:]


def test_the_prompts_name_the_time_of_the_session_and_no_random_id(opened: Opened) -> None:
    models = Scripted()
    memory = opened(models)
    memory.write(make_session(1, standing_statement(1)))
    memory.write(make_session(2, standing_statement(2)))
    system = models.requests[-1]["messages"][0]["content"]
    assert "System prompt last recompiled: 2024-05-16 09:30:00 AM UTC+0000" in system
    assert "AGENT_ID: agent-00000000-0000-4000-8000-000000000000" in system
    times = [json.loads(m["content"])["time"] for m in models.requests[-1]["messages"] if m["role"] == "tool"]
    assert times == ["2024-05-15 09:30:00 AM UTC+0000"] * 3 + ["2024-05-16 09:30:00 AM UTC+0000"] * 2


def test_the_prompts_can_name_the_time_of_the_machine_as_letta_does(opened: Opened) -> None:
    models = Scripted()
    opened(models, repeatable_prompts=False).write(make_session(1))
    system = models.requests[0]["messages"][0]["content"]
    assert f"last recompiled: {datetime.now(UTC):%Y-%m}" in system


def test_the_model_is_asked_with_the_papers_temperature(opened: Opened) -> None:
    models = Scripted()
    opened(models).write(make_session(1))
    assert {request["temperature"] for request in models.requests} == {0.1}


def test_the_task_request_is_the_users_and_the_rest_the_assistants(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    messages = [e for e in memory.snapshot().entries.values() if e.kind == "message"]
    assert [message.metadata["role"] for message in messages] == ["user", "assistant"]
    assert messages[0].text == f"user: {REQUEST}"
    assert standing_statement(1) in messages[1].text
    assert "get_unread_emails(limit=3)" in messages[1].text
    assert messages[1].text.endswith("Assistant: You have 1 unread emails about lunch.")


def test_an_observed_error_is_captured(opened: Opened) -> None:
    memory, record = opened(), make_session(1)
    failed = Message(role="tool", text="", tool="get_day", tool_call_id="1", error="ValueError: no such day 31")
    memory.write(record.model_copy(update={"messages": (*record.messages[:2], failed)}))
    assert "ValueError: no such day 31" in memory.snapshot().entries["session-0001/assistant-1"].text


def test_a_history_session_is_captured_in_its_order(opened: Opened) -> None:
    said = [("user", "I moved to Oslo."), ("assistant", "Noted."), ("user", "I like tea."), ("assistant", "Fine.")]
    messages = tuple(Message(role=role, text=text) for role, text in said)
    record = SessionRecord(id="history-1", time=make_session(1).time, messages=messages, kind="history")
    memory = opened()
    memory.write(record)
    entries = memory.snapshot().entries
    assert entries["history-1/user-1"].text == "user: I moved to Oslo."
    told = entries["history-1/assistant-1"].text
    assert told.index("Noted.") < told.index("User: I like tea.") < told.index("Fine.")


def test_core_blocks_come_first_then_messages_then_passages(opened: Opened) -> None:
    memory = opened(Scripted(insert("User is Nora"), insert("I am calm", "persona"), archive("Tea is green"), FINISH))
    memory.write(make_session(1))
    items = memory.retrieve(REQUEST)
    assert [(item.route, item.entry_ids) for item in items] == [
        ("core", ("core/human",)),
        ("core", ("core/persona",)),
        ("conversation", ("session-0001/user-1",)),
        ("archival", ("session-0001/passage-1",)),
    ]
    assert items[0].text == "<human>\n\nUser is Nora\n</human>"
    assert items[2].text == f"user: {REQUEST}"
    assert items[3].text == "Tea is green"


def test_empty_blocks_are_not_delivered(opened: Opened) -> None:
    memory = opened(Scripted(FINISH))
    memory.write(make_session(1))
    assert memory.retrieve("Which tea?") == []
    assert {"core/human", "core/persona"} <= set(memory.snapshot().entries)


def test_the_blocks_can_hold_something_at_first(opened: Opened) -> None:
    memory = opened(blocks={"human": "Nora Quill", "plans": ""})
    assert [item.text for item in memory.retrieve("tea")] == ["<human>\nNora Quill\n</human>"]
    assert {"core/human", "core/plans"} <= set(memory.snapshot().entries)


def test_each_search_delivers_no_more_than_its_k(opened: Opened) -> None:
    memory = opened(Scripted(archive("Tea is green"), FINISH), conversation_k=2, archival_k=1)
    for number in (1, 2, 3):
        memory.write(make_session(number))
    found = [(item.route, item.entry_ids[0]) for item in memory.retrieve(REQUEST)]
    assert [id_ for route, id_ in found if route == "conversation"] == ["session-0003/user-1", "session-0002/user-1"]
    assert len([id_ for route, id_ in found if route == "archival"]) == 1


def test_the_archive_is_searched_by_meaning(opened: Opened) -> None:
    class InTurn(Scripted):
        def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
            facts = ["The dentist's invoice is overdue", "Nora likes green tea", "The car needs new tyres"]
            self.calls = (archive(facts[len(self.prompts())]), FINISH) if len(_present(request)) == 1 else self.calls
            return super().chat(request)

    memory = opened(InTurn(FINISH), archival_k=1)
    for number in (1, 2, 3):
        memory.write(make_session(number))
    assert [item.text for item in memory.retrieve("Which hot drink does Nora prefer?")] == ["Nora likes green tea"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("unread emails", True),
        ("UNREAD EMAILS.", True),
        ("unread%emails", True),
        ("unread_emails", True),
        ("unread lunch emails", False),
        ("Please summarize my unread emails.", False),
    ],
)
def test_the_conversation_search_is_lettas_own_substring_search(opened: Opened, query: str, found: bool) -> None:
    memory = opened(Scripted(FINISH))
    memory.write(make_session(1))
    routes = [item.route for item in memory.retrieve(query)]
    assert ("conversation" in routes) == found


@pytest.mark.parametrize(
    "request_text",
    [
        '{"type": "user_message", "message": "lunch at noon"}',
        '{"timestamp": "2020-01-01T00:00:00+00:00", "role": "system", "note": "lunch at noon"}',
        '{"content": "lunch at noon", "time_ago": 7}',
        '["lunch at noon"]',
        '"lunch at noon"',
    ],
)
def test_a_message_that_is_json_is_found_as_it_was_written(opened: Opened, request_text: str) -> None:
    memory = opened(Scripted(FINISH))
    memory.write(make_session(1, request=request_text))
    memory.write(make_session(2, request="Have lunch at noon."))
    found = [item for item in memory.retrieve("lunch at noon") if item.route == "conversation"]
    assert [item.text for item in found] == ["user: Have lunch at noon.", f"user: {request_text}"]
    assert memory.snapshot().entries["session-0001/user-1"].text == f"user: {request_text}"


def test_messages_that_the_search_cuts_off_are_delivered_whole(opened: Opened) -> None:
    long = "The quarterly report is long. " * 4000
    memory = opened(Scripted(FINISH))
    for number in (1, 2):
        memory.write(make_session(number, f"{long} Its end is number {number}."))
    found = [item for item in memory.retrieve("quarterly report is long") if item.route == "conversation"]
    assert [item.entry_ids[0] for item in found] == ["session-0002/assistant-1", "session-0001/assistant-1"]
    assert all(f"number {number}." in item.text for number, item in zip((2, 1), found, strict=True))


def test_a_failed_tool_call_does_not_fail_the_write_and_is_told(opened: Opened) -> None:
    wrong = ("memory_replace", {"label": "human", "old_string": "no such text", "new_string": "x"})
    memory = opened(Scripted(wrong, insert("User likes tea"), FINISH))
    memory.write(make_session(1))
    entries = memory.snapshot().entries
    assert entries["core/human"].text == "\nUser likes tea"
    assert entries["session-0001/user-1"].metadata["background"] == {
        "stop_reason": "tool_rule",
        "calls": [
            {"tool": "memory_replace", "ok": False},
            {"tool": "memory_insert", "ok": True},
            {"tool": "memory_finish_edits", "ok": True},
        ],
    }


def test_an_answer_without_an_edit_is_no_failure_and_is_told(opened: Opened) -> None:
    memory = opened(Answering(reply("There is nothing to remember.")))
    memory.write(make_session(1))
    background = memory.snapshot().entries["session-0001/user-1"].metadata["background"]
    assert background == {"stop_reason": "end_turn", "calls": []}


@pytest.mark.parametrize(
    "response",
    [
        reply(""),
        reply(None),
        reply("There is", finish_reason="length"),
        reply(None, finish_reason="content_filter"),
        reply(None, refusal="No."),
        {"choices": []},
        {"error": {"message": "overloaded"}},
    ],
)
def test_an_answer_that_letta_would_take_for_nothing_is_an_error(faked: Opened, response: dict[str, Any]) -> None:
    with pytest.raises(MemorySystemError, match=r"letta.*write.*model"):
        faked(Answering(response)).write(make_session(1, standing_statement(1)))


def test_a_write_that_failed_for_its_model_leaves_the_memory_as_it_was(opened: Opened) -> None:
    memory = opened(Answering(reply("")))
    before = memory.snapshot()
    with pytest.raises(MemorySystemError, match=r"letta.*write.*model"):
        memory.write(make_session(1, standing_statement(1)))
    assert memory.snapshot() == before


def test_tool_calls_that_repeat_an_id_are_an_error(opened: Opened) -> None:
    function = {"name": "memory_insert", "arguments": json.dumps(insert("User likes tea")[1])}
    models = Answering(reply(None, tool_calls=[{"id": "call-0", "type": "function", "function": function}]))
    with pytest.raises(MemorySystemError, match="id of an earlier one"):
        opened(models).write(make_session(1))
    assert len(models.requests) == 2


def test_a_failed_write_can_be_repeated(opened: Opened) -> None:
    models = Answering(reply(""))
    memory = opened(models)
    with pytest.raises(MemorySystemError):
        memory.write(make_session(1, standing_statement(1)))
    models.response = reply("Nothing.")
    memory.write(make_session(1, standing_statement(1)))
    kinds = [entry.kind for entry in memory.snapshot().entries.values()]
    assert kinds.count("message") == 2


def test_a_session_is_written_once(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1))
    with pytest.raises(MemorySystemError, match="already stored"):
        memory.write(make_session(1))


def test_native_ids_are_given_for_every_entry(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    native = memory.native_ids()
    assert list(native) == list(memory.snapshot().entries)
    kinds = {id_.split("/")[1].split("-")[0]: value.split("-")[0] for id_, value in native.items()}
    assert kinds == {
        "human": "block",
        "persona": "block",
        "memory_persona": "block",
        "user": "message",
        "assistant": "message",
        "passage": "passage",
    }


def test_close_leaves_nothing_on_the_server(opened: Opened, letta: LettaAt) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    native = memory.native_ids().values()
    agents = memory._agents()
    memory.close()
    left = {*native, agents.foreground, agents.background, agents.archive}
    client = opened(name="other")._server._client
    for there in (client.agents.list(), client.blocks.list(), client.archives.list()):
        assert not left & {found.id for found in there}


def test_a_capture_is_never_sent_twice(faked: Opened, fake_letta: LettaAt) -> None:
    memory = faked()
    before = memory.snapshot()
    assert fake_letta.fake is not None
    fake_letta.fake.before = lambda call: (_ for _ in ()).throw(OSError("busy")) if "capture" in call else None
    with pytest.raises(MemorySystemError, match="busy"):
        memory.write(make_session(1))
    assert sum("capture" in call for call in fake_letta.fake.calls) == 1
    fake_letta.fake.before = lambda call: None
    assert memory.snapshot() == before


def test_an_agent_file_is_asked_for_again_when_another_export_came_in_between(
    faked: Opened, fake_letta: LettaAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, fake, waits = faked(), fake_letta.fake, list[float]()
    assert fake is not None
    monkeypatch.setattr("memorydojo.adapters._letta_client.time.sleep", waits.append)
    failing = iter([True, True, False])
    fake.before = lambda call: _fail("Unexpected new tool ID") if "export" in call and next(failing) else None
    memory.write(make_session(1))
    assert sum("export" in call for call in fake.calls) == 3
    assert "session-0001/user-1" in memory.snapshot().entries


def test_a_server_that_gives_no_agent_file_fails_the_write(
    faked: Opened, fake_letta: LettaAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, fake = faked(), fake_letta.fake
    assert fake is not None
    monkeypatch.setattr("memorydojo.adapters._letta_client.time.sleep", lambda seconds: None)
    before = memory.snapshot()
    fake.before = lambda call: _fail("no agent file") if "export" in call else None
    with pytest.raises(MemorySystemError, match="no agent file"):
        memory.write(make_session(1))
    fake.before = lambda call: None
    assert memory.snapshot() == before


def _fail(text: str) -> None:
    raise OSError(text)


def test_exports_and_imports_of_all_memories_take_turns(faked: Opened, fake_letta: LettaAt) -> None:
    fake, now, most = fake_letta.fake, [0], [0]
    assert fake is not None

    def before(call: str) -> None:
        if "export" in call or "import" in call:
            now[0] += 1
            most.append(now[0])
            time.sleep(0.1)
            now[0] -= 1

    def work(name: str) -> None:
        for number in (1, 2):
            memory = faked(name=name)
            memory.write(make_session(number))
            memory.close()

    fake.before = before
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(work, "abcd"))
    assert len(most) > 12
    assert max(most) == 1


def test_the_server_is_not_made_to_write_its_tools_anew(faked: Opened, fake_letta: LettaAt) -> None:
    faked()
    assert fake_letta.fake is not None
    assert any("GET /v1/tools/" in call for call in fake_letta.fake.calls)
    assert fake_letta.fake.tools_written == 0


def test_a_server_that_goes_away_is_reported_with_the_command_that_starts_one(
    faked: Opened, fake_letta: LettaAt
) -> None:
    memory = faked()
    assert fake_letta.fake is not None
    fake_letta.fake.before = lambda call: (_ for _ in ()).throw(ConnectionAbortedError)
    with pytest.raises(MemorySystemError, match="memorydojo letta up"):
        memory.retrieve("tea")
    fake_letta.fake.before = lambda call: None
    assert memory.retrieve("tea") == []


def test_no_server_at_an_address_is_reported_with_the_command_that_starts_one(tmp_path: Path) -> None:
    with pytest.raises(MemorySystemError, match="memorydojo letta up"):
        LettaAdapter.open(tmp_path, Scripted(), LettaConfig(url="http://127.0.0.1:9"))


def test_without_an_address_and_a_started_server_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYDOJO_LETTA_HOME", str(tmp_path / "nowhere"))
    (tmp_path / "memory").mkdir()
    with pytest.raises(MemorySystemError, match="memorydojo letta up"):
        LettaAdapter.open(tmp_path / "memory", Scripted(), LettaConfig())


def test_a_server_of_another_version_is_refused(faked: Opened, fake_letta: LettaAt) -> None:
    assert fake_letta.fake is not None
    fake_letta.fake.version = "0.34.1"
    with pytest.raises(MemorySystemError, match=r"0\.34\.1.*0\.16\.8"):
        faked()


def test_a_wrong_key_is_reported_with_the_setting_that_names_it(faked: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYDOJO_TEST_FAKE_KEY", "wrong")
    with pytest.raises(MemorySystemError, match="key_variable"):
        faked()


def test_a_background_run_that_does_not_end_is_reported(faked: Opened) -> None:
    free = threading.Event()

    class Slow(Scripted):
        def chat(self, request: Mapping[str, Any]) -> dict[str, Any]:
            free.wait(20)
            return super().chat(request)

    memory = faked(Slow(), timeout=0.5)
    with pytest.raises(MemorySystemError, match="did not finish"):
        memory.write(make_session(1))
    free.set()


def test_a_run_that_failed_on_the_server_is_an_error(faked: Opened, fake_letta: LettaAt) -> None:
    memory = faked()
    fake = fake_letta.fake
    assert fake is not None
    fake._step = lambda agent: (_ for _ in ()).throw(RuntimeError("out of memory"))  # type: ignore[method-assign]
    with pytest.raises(MemorySystemError, match="out of memory"):
        memory.write(make_session(1))


def test_a_server_that_stores_something_else_is_an_error(faked: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = faked(Answering(reply("Nothing.")))
    message = module._message
    monkeypatch.setattr(module, "_message", lambda role, text: message(role, text[:10]))
    with pytest.raises(MemorySystemError, match="other messages"):
        memory.write(make_session(1))


def test_a_frequency_that_was_changed_on_the_server_is_an_error(faked: Opened, fake_letta: LettaAt) -> None:
    memory, fake = faked(), fake_letta.fake
    assert fake is not None
    for group in fake.groups.values():
        group.update(sleeptime_agent_frequency=5, turns_counter=0)
    with pytest.raises(MemorySystemError, match="0 background runs"):
        memory.write(make_session(1))


def test_foreign_messages_in_the_conversation_are_an_error(faked: Opened, fake_letta: LettaAt) -> None:
    memory, fake = faked(), fake_letta.fake
    assert fake is not None
    body = {"request_messages": [{"role": "user", "content": "hi"}], "response_dict": {"content": "ho"}}
    fake.groups.clear()
    fake.capture(memory._agents().foreground, {}, body)
    with pytest.raises(MemorySystemError, match="not those that this memory wrote"):
        memory.snapshot()


def test_a_memory_made_with_another_embedding_model_is_refused(faked: Opened) -> None:
    faked().close()
    models = Scripted()
    models.embedding_model = "another"
    with pytest.raises(MemorySystemError, match="another"):
        faked(models)


def test_a_damaged_state_is_reported(faked: Opened, tmp_path: Path) -> None:
    memory = faked()
    memory.write(make_session(1))
    memory.close()
    (tmp_path / "memory" / "state.json").write_text('{"agent_file": {}')
    with pytest.raises(MemorySystemError, match="checkpoint"):
        faked()


def test_making_a_memory_anew_asks_no_model(opened: Opened) -> None:
    memory = opened()
    memory.write(make_session(1, standing_statement(1)))
    memory.close()
    models = Scripted()
    assert any(entry.kind == "passage" for entry in opened(models).snapshot().entries.values())
    assert not models.requests
    assert models.usage.embed_calls == 0


@pytest.mark.slow
@pytest.mark.letta_server
@pytest.mark.skipif(not os.environ.get(REAL), reason="the stand-in sums nothing up: make test-letta")
def test_a_memory_whose_agent_summed_up_its_context_goes_on_and_can_be_opened_again(
    tmp_path: Path, real_letta: LettaAt
) -> None:
    for opened in _opened(tmp_path, real_letta):
        models = Scripted()
        memory = opened(models, context_window=8000)
        for number in range(1, 5):
            memory.write(make_session(number, "The report is long. " * 500 + standing_statement(number)))
        summaries = [request for request in models.requests if not request.get("tools")]
        assert summaries
        assert not any(str(datetime.now(UTC).year) in str(request["messages"]) for request in models.requests)
        before = memory.snapshot()
        memory.close()
        again = opened(context_window=8000)
        assert again.snapshot() == before
        again.write(make_session(5, standing_statement(5)))


def test_a_missing_client_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "letta_client", None)
    with pytest.raises(MissingPackageError, match=r"memorydojo\[letta\]"):
        LettaAdapter.open(tmp_path, Scripted(), LettaConfig(url="http://127.0.0.1:9"))


def test_the_description_says_what_the_optimizer_and_the_reader_need(faked: Opened) -> None:
    description = faked().describe()
    assert description.versions == {"letta": "0.16.8", "letta-client": "1.12.1"}
    assert "substring" in " ".join(description.limits)
    assert "core blocks" in description.presents
    assert QUERY not in str(description)
