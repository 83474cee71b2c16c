from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from memorydojo.record import MemoryEntry, Message, SessionRecord, Snapshot, ToolCall

TIME = datetime(2024, 5, 16, 9, tzinfo=UTC)
IDS = st.sampled_from("abcdef")
ENTRIES = st.dictionaries(IDS, st.text(max_size=3), max_size=6).map(
    lambda texts: Snapshot(entries={i: MemoryEntry(id=i, kind="k", text=t) for i, t in texts.items()})
)


@given(ENTRIES, ENTRIES)
def test_applying_a_difference_gives_the_later_snapshot(before: Snapshot, after: Snapshot) -> None:
    assert before.apply(before.difference(after)).entries == after.entries


@given(ENTRIES)
def test_a_snapshot_does_not_differ_from_itself(snapshot: Snapshot) -> None:
    difference = snapshot.difference(snapshot)
    assert (difference.created, difference.rewritten, difference.removed) == ((), (), ())


def test_a_change_of_metadata_alone_is_a_rewrite() -> None:
    entry = MemoryEntry(id="a", kind="k", text="t")
    changed = entry.model_copy(update={"metadata": {"tags": ["x"]}})
    difference = Snapshot(entries={"a": entry}).difference(Snapshot(entries={"a": changed}))
    assert difference.rewritten == (changed,)


def record(*messages: Message) -> SessionRecord:
    return SessionRecord(id="session-0001", time=TIME, messages=messages)


def test_the_transcript_holds_every_message_call_and_error() -> None:
    call = ToolCall(id="1", function="f", arguments={"a": "ü", "n": [1]})
    text = record(
        Message(role="user", text="Do it"),
        Message(role="assistant", text="", tool_calls=(call,)),
        Message(role="tool", text="seen", tool="f"),
        Message(role="tool", text="", tool="g", error="broke"),
        Message(role="assistant", text="Done"),
    ).transcript()
    assert text.split("\n\n") == [
        "Session of 2024-05-16 09:00",
        "User: Do it",
        'Assistant called f(a="ü", n=[1])',
        "Observation from f: seen",
        "Observation from g (error): broke",
        "Assistant: Done",
    ]


def test_a_session_that_ends_with_a_tool_call_has_no_final_response() -> None:
    call = ToolCall(id="1", function="f", arguments={})
    assert record(Message(role="assistant", text="x", tool_calls=(call,))).final_response is None
    assert record(Message(role="assistant", text="x")).final_response == "x"
    assert record().final_response is None
