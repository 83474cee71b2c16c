"""The checks of the auxiliary tasks: what an answer holds, and how a state changed."""

import pytest

from memorydojo import matching
from memorydojo.optimizer.auxiliary._tasks import Effect, Removed, added, changed, happened, said
from memorydojo.optimizer.auxiliary.banking.data import initial_state
from memorydojo.optimizer.auxiliary.banking.model import BankingState


@pytest.mark.parametrize(
    "response",
    ["It is 1284.50.", "You have €1,284.50", "1284.5 euros", "balance: 1284.50"],
)
def test_a_number_is_found_however_it_is_written(response: str) -> None:
    assert said(["1284.50"], response)


@pytest.mark.parametrize("response", ["", "284.50", "11284.50", "1284.501", "1284.5.1", "1284"])
def test_another_number_is_not_taken_for_it(response: str) -> None:
    assert not said(["1284.50"], response)


def test_one_of_several_wordings_is_enough_but_all_parts_are_needed() -> None:
    wanted: list[str | tuple[str, ...]] = ["Ann", ("23 May", "2031-05-23")]
    assert said(wanted, "ann, on 23 may")
    assert said(wanted, "Ann: 2031-05-23")
    assert not said(wanted, "Ann, on 24 May")
    assert not said(wanted, "Anna, on 23 May")


def frozen(state: BankingState) -> None:
    state.cards["Trip card"].frozen = True


FREEZE: list[Effect] = [changed("cards", "Trip card", frozen=True)]


def test_the_expected_change_passes() -> None:
    post = initial_state()
    frozen(post)
    assert happened(FREEZE, initial_state(), post)


def test_no_change_fails_even_if_the_state_is_as_wanted_already() -> None:
    pre, post = initial_state(), initial_state()
    frozen(pre)
    frozen(post)
    assert not happened(FREEZE, pre, post)


def test_a_further_change_in_the_same_collection_fails() -> None:
    post = initial_state()
    frozen(post)
    post.cards["Blue debit"].daily_limit = 1.0
    assert not happened(FREEZE, initial_state(), post)


def test_a_further_field_of_the_record_fails() -> None:
    post = initial_state()
    frozen(post)
    post.cards["Trip card"].daily_limit = 1.0
    assert not happened(FREEZE, initial_state(), post)


def test_a_change_in_another_collection_is_free() -> None:
    post = initial_state()
    frozen(post)
    del post.pots["Kayak"]
    assert happened(FREEZE, initial_state(), post)


def test_a_removal_is_seen_and_only_the_expected_one() -> None:
    post = initial_state()
    del post.orders["so-12"]
    assert happened([Removed("orders", "so-12")], initial_state(), post)
    del post.orders["so-13"]
    assert not happened([Removed("orders", "so-12")], initial_state(), post)


def test_two_new_records_need_two_expectations() -> None:
    post = initial_state()
    for name, number in (("Ada", "NO111"), ("Bo", "NO222")):
        post.payees[name] = post.payees["Tidewater Gym"].model_copy(update={"name": name, "number": number})
    ada, bo = added("payees", name="Ada"), added("payees", number=matching.account("NO 222"))
    assert happened([ada, bo], initial_state(), post)
    assert happened([bo, ada], initial_state(), post)
    assert not happened([ada], initial_state(), post)
    assert not happened([ada, ada], initial_state(), post)
