from memorydojo.record import MemoryItem
from memorydojo.running.delivery import deliver


def item(text: str, rank: int) -> MemoryItem:
    return MemoryItem(entry_ids=("x",), text=text, kind="k", rank=rank)


def test_without_items_the_request_is_delivered_alone() -> None:
    assert deliver([], "Do it") == "Do it"


def test_items_come_before_the_request_in_order_and_unchanged() -> None:
    prompt = deliver([item("{first} %s", 0), item("second\n- third", 1)], "Do it")
    assert prompt.index("- {first} %s\n- second\n- third") < prompt.index("Do it")
    assert prompt.endswith("Do it")
