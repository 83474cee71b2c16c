import pytest

from memorydojo import matching


@pytest.mark.parametrize(
    "value",
    ["mark@example.com", ["mark@example.com"], ["a@b.c", " Mark@Example.com "], "Mark B. <mark@example.com>"],
)
def test_email_finds_the_address_however_it_is_written(value: object) -> None:
    assert matching.email("mark@example.com")(value)


@pytest.mark.parametrize("value", ["mark@example.com.evil.org", ["a@b.c"], [], None, "mark"])
def test_email_refuses_other_addresses(value: object) -> None:
    assert not matching.email("mark@example.com")(value)


@pytest.mark.parametrize("value", [10, 10.0, "10", "10.00", "$10", "$ 10.00", "10 USD", "€10"])
def test_amount_reads_numbers_and_text(value: object) -> None:
    assert matching.amount(10)(value)


@pytest.mark.parametrize("value", [100, 1.0, "100", "1,0", "10 or 20", True, None, "", "ten", [10]])
def test_amount_refuses_other_amounts(value: object) -> None:
    assert not matching.amount(10)(value)


def test_account_ignores_spaces_and_case() -> None:
    assert matching.account("US133000000121212121212")("us13 3000 0001 2121 2121 212")


def test_account_refuses_a_longer_number() -> None:
    assert not matching.account("US133000000121212121212")("US1330000001212121212120")


def test_text_folds_white_space_and_case_only() -> None:
    assert matching.text("Hey, how is it going?")("hey,  how\nis it going?")
    assert not matching.text("Hey, how is it going?")("Hey how is it going")


def test_containing_looks_inside() -> None:
    assert matching.containing("www.x.com")("see https://WWW.X.com now")


def test_equal_compares_lists_without_order_and_numbers_by_value() -> None:
    assert matching.equal(["a", "B"])(["b", "A"])
    assert matching.equal(100)("100.00")
    assert matching.equal(["only"])("only") is False
    assert matching.equal("only")(["only"])
    assert not matching.equal(True)(1)
