"""The state of the banking environment, and the functions that read and change it."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Record, State, find


class Account(Record):
    """An account; its balance is what it opened with and what was booked since."""

    name: str
    number: str
    opening: float


class Balance(Record):
    """An account as an agent sees it."""

    account: str
    number: str
    balance: float
    currency: str = "EUR"


class Booking(Record):
    """One line of the ledger; money that leaves is negative."""

    booking: str
    date: str
    account: str
    party: str
    number: str
    amount: float
    wording: str


class Payee(Record):
    """A saved payee."""

    name: str
    number: str
    note: str


class StandingOrder(Record):
    """A payment that repeats."""

    order: str
    payee: str
    amount: float
    rhythm: str
    next_date: str
    wording: str


class Card(Record):
    """A card and its limits."""

    card: str
    account: str
    daily_limit: float
    frozen: bool
    abroad: bool


class Pot(Record):
    """A savings pot."""

    pot: str
    target: float
    saved: float


class Letter(Record):
    """A letter in the bank's mailbox."""

    letter: str
    date: str
    sender: str
    subject: str
    text: str


class LetterLine(Record):
    """A letter in the list of letters."""

    letter: str
    date: str
    sender: str
    subject: str


class Dispute(Record):
    """A complaint about a booking."""

    booking: str
    reason: str


class Contact(Record):
    """How the bank reaches the customer."""

    street: str
    postcode: str
    town: str
    phone: str
    statements_by: str


class Rate(Record):
    """How much of a currency one euro buys."""

    currency: str
    per_euro: float


class BankingState(State):
    """The state of the banking environment."""

    accounts: dict[str, Account] = Field(default_factory=dict)
    ledger: dict[str, Booking] = Field(default_factory=dict)
    payees: dict[str, Payee] = Field(default_factory=dict)
    orders: dict[str, StandingOrder] = Field(default_factory=dict)
    cards: dict[str, Card] = Field(default_factory=dict)
    pots: dict[str, Pot] = Field(default_factory=dict)
    letters: dict[str, Letter] = Field(default_factory=dict)
    disputes: dict[str, Dispute] = Field(default_factory=dict)
    contact: dict[str, Contact] = Field(default_factory=dict)
    rates: dict[str, Rate] = Field(default_factory=dict)
    today: str = "2031-05-20"


def balances(state: BankingState) -> list[Balance]:
    """All accounts with their balances."""
    return [
        Balance(
            account=account.name,
            number=account.number,
            balance=round(account.opening + sum(b.amount for b in state.ledger.values() if b.account == name), 2),
        )
        for name, account in state.accounts.items()
    ]


def bookings(state: BankingState, account: str, month: str = "") -> list[Booking]:
    """The bookings of an account, of one month if it is given."""
    name = find(state.accounts, account, "account").name
    return [b for b in state.ledger.values() if b.account == name and b.date.startswith(month)]


def search_bookings(state: BankingState, words: str) -> list[Booking]:
    """The bookings whose party or wording holds a text."""
    wanted = words.casefold()
    return [b for b in state.ledger.values() if wanted in f"{b.party} {b.wording}".casefold()]


def pay(state: BankingState, recipient: str, amount: float, reference: str = "", account: str = "Everyday") -> Booking:
    """Pays money to an account elsewhere."""
    number = recipient.replace(" ", "").upper()
    if not (number.isalnum() and 12 <= len(number) <= 34 and number[:2].isalpha()):
        raise ValueError(f"{recipient!r} is no account number; it starts with a country's two letters")
    if amount <= 0:
        raise ValueError("the amount must be more than 0")
    source = find(state.accounts, account, "account")
    party = next((p.name for p in state.payees.values() if p.number == number), number)
    booking = Booking(
        booking=state.number("bk-"),
        date=state.today,
        account=source.name,
        party=party,
        number=number,
        amount=-round(amount, 2),
        wording=reference,
    )
    state.ledger[booking.booking] = booking
    return booking


def payees(state: BankingState, name: str = "") -> list[Payee]:
    """The saved payees whose name holds a text."""
    return [p for p in state.payees.values() if name.casefold() in p.name.casefold()]


def add_payee(state: BankingState, name: str, number: str, note: str = "") -> Payee:
    """Saves a payee."""
    if name.casefold() in (known.casefold() for known in state.payees):
        raise ValueError(f"there is a payee {name!r} already")
    state.payees[name] = Payee(name=name, number=number.replace(" ", ""), note=note)
    return state.payees[name]


def orders(state: BankingState) -> list[StandingOrder]:
    """All standing orders."""
    return list(state.orders.values())


def add_order(state: BankingState, payee: str, amount: float, rhythm: str, start: str, wording: str) -> StandingOrder:
    """Sets up a standing order to a saved payee."""
    name = find(state.payees, payee, "payee").name
    key = state.number("so-")
    state.orders[key] = StandingOrder(
        order=key, payee=name, amount=round(amount, 2), rhythm=rhythm, next_date=start, wording=wording
    )
    return state.orders[key]


def change_order(state: BankingState, order: str, amount: float) -> StandingOrder:
    """Changes the amount of a standing order."""
    found = find(state.orders, order, "standing order")
    found.amount = round(amount, 2)
    return found


def end_order(state: BankingState, order: str) -> str:
    """Ends a standing order."""
    found = find(state.orders, order, "standing order")
    del state.orders[found.order]
    return f"The standing order {found.order} to {found.payee} has ended."


def cards(state: BankingState) -> list[Card]:
    """All cards."""
    return list(state.cards.values())


def freeze_card(state: BankingState, card: str, frozen: bool) -> Card:
    """Freezes a card or makes it usable again."""
    found = find(state.cards, card, "card")
    found.frozen = frozen
    return found


def limit_card(state: BankingState, card: str, limit: float) -> Card:
    """Sets what a card may spend a day."""
    found = find(state.cards, card, "card")
    found.daily_limit = round(limit, 2)
    return found


def pots(state: BankingState) -> list[Pot]:
    """All savings pots."""
    return list(state.pots.values())


def fill_pot(state: BankingState, pot: str, amount: float) -> Pot:
    """Puts money aside in a savings pot."""
    found = find(state.pots, pot, "savings pot")
    if amount <= 0:
        raise ValueError("the amount must be more than 0")
    found.saved = round(found.saved + amount, 2)
    return found


def letters(state: BankingState) -> list[LetterLine]:
    """The letters in the mailbox, without their text."""
    return [LetterLine.model_validate(letter.model_dump(exclude={"text"})) for letter in state.letters.values()]


def read_letter(state: BankingState, letter: str) -> Letter:
    """One letter with its text."""
    return find(state.letters, letter, "letter")


def dispute(state: BankingState, booking: str, reason: str) -> Dispute:
    """Complains about a booking."""
    found = find(state.ledger, booking, "booking")
    if found.booking in state.disputes:
        raise ValueError(f"the booking {found.booking} is disputed already")
    state.disputes[found.booking] = Dispute(booking=found.booking, reason=reason)
    return state.disputes[found.booking]


def contact(state: BankingState) -> Contact:
    """How the bank reaches the customer."""
    return state.contact["customer"]


def change_contact(
    state: BankingState, street: str = "", postcode: str = "", town: str = "", phone: str = ""
) -> Contact:
    """Changes how the bank reaches the customer; what is left out stays."""
    found = state.contact["customer"]
    new = {"street": street, "postcode": postcode, "town": town, "phone": phone}
    state.contact["customer"] = found.model_copy(update={name: value for name, value in new.items() if value})
    return state.contact["customer"]


def rate(state: BankingState, currency: str) -> Rate:
    """How much of a currency one euro buys."""
    return find(state.rates, currency, "currency")
