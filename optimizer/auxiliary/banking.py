"""The banking environment: accounts with a ledger, payees, standing orders, cards, savings pots and letters."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Capability, Record, State, find, named
from memorydojo.optimizer.auxiliary._domain import Definition


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


PAY = Capability(
    pay,
    ("remit_payment", "make_payment", "wire_funds", "issue_transfer", "submit_payment", "dispatch_funds"),
    (
        "Pay money from one of the customer's accounts to an account elsewhere.",
        "Moves an amount out of an own account to the account of somebody else.",
    ),
    {
        "recipient": named("recipient", text="The account number that receives the money", also="Account to pay to"),
        "amount": named("amount", text="How much to pay, in euros", also="The sum in euros"),
        "reference": named("reference", "remark", "memo", text="What the payment is for, as the payee reads it"),
        "account": named("source", "debit_account", "from_account", text="The own account that is debited"),
    },
    changes=True,
)

_ORDER = named("order", "order_key", "standing_order", text="The key of the standing order")
_CARD = named("card", "card_name", "which_card", text="The name of the card")

CAPABILITIES = (
    Capability(
        balances,
        ("account_overview", "list_accounts", "show_balances", "account_standings"),
        ("Lists the customer's accounts with their balances.", "What is on each of the own accounts right now."),
        {},
    ),
    Capability(
        bookings,
        ("list_bookings", "statement_lines", "account_statement", "show_ledger"),
        ("Lists the bookings of an account, oldest first.", "The statement of one account, of one month if wanted."),
        {
            "account": named("account", "account_name", text="The name of the account"),
            "month": named("month", "period", text="A month as YYYY-MM; empty for all", also="YYYY-MM, or nothing"),
        },
    ),
    Capability(
        search_bookings,
        ("find_bookings", "search_ledger", "look_up_bookings", "match_bookings"),
        ("Finds bookings by a text in their party or wording.", "Searches all accounts for bookings with a word."),
        {"words": named("words", "term", "phrase", text="The text to look for", also="Part of a name or wording")},
    ),
    PAY,
    Capability(
        payees,
        ("list_payees", "payee_directory", "saved_payees", "lookup_payee"),
        ("Lists saved payees with their account numbers.", "The address book of payees, or the part that matches."),
        {"name": named("name", "name_part", "filter", text="Part of the payee's name; empty for all")},
    ),
    Capability(
        add_payee,
        ("register_payee", "save_payee", "store_payee", "enter_payee"),
        ("Saves a new payee.", "Puts a payee into the customer's address book."),
        {
            "name": named("name", "payee_name", text="What the payee is called"),
            "number": named("number", "account_number", text="The payee's account number"),
            "note": named("note", "comment", text="A note to oneself"),
        },
        changes=True,
    ),
    Capability(
        orders,
        ("list_standing_orders", "standing_order_book", "show_standing_orders", "recurring_orders"),
        ("Lists all standing orders.", "What is paid again and again, when next and to whom."),
        {},
    ),
    Capability(
        add_order,
        ("open_standing_order", "start_standing_order", "begin_standing_order", "establish_standing_order"),
        ("Sets up a standing order to a saved payee.", "Starts paying a saved payee again and again."),
        {
            "payee": named("payee", "payee_name", text="The name of the saved payee"),
            "amount": named("sum", "euros", "value", text="How much each time, in euros"),
            "rhythm": named("rhythm", "interval", "frequency", text="weekly, monthly, quarterly or yearly"),
            "start": named("start", "first_date", "first_day", text="The first date, as YYYY-MM-DD"),
            "wording": named("wording", "remark", text="What the payments are for"),
        },
        changes=True,
    ),
    Capability(
        change_order,
        ("adjust_standing_order", "amend_standing_order", "revise_standing_order", "alter_standing_order"),
        ("Changes the amount of a standing order.", "Pays another amount from the next time on."),
        {"order": _ORDER, "amount": named("sum", "new_sum", "euros", text="The new amount in euros")},
        changes=True,
    ),
    Capability(
        end_order,
        ("end_standing_order", "stop_standing_order", "close_standing_order", "terminate_standing_order"),
        ("Ends a standing order.", "Stops a payment that repeats."),
        {"order": _ORDER},
        changes=True,
    ),
    Capability(
        cards,
        ("list_cards", "card_overview", "show_cards", "card_status"),
        ("Lists the cards with their limits and whether they are frozen.", "All cards and how they are set."),
        {},
    ),
    Capability(
        freeze_card,
        ("toggle_card_freeze", "switch_card", "freeze_card", "block_card"),
        ("Freezes a card, or makes a frozen one usable again.", "Switches a card off or on."),
        {"card": _CARD, "frozen": named("frozen", "blocked", text="True to freeze, false to make usable")},
        changes=True,
    ),
    Capability(
        limit_card,
        ("limit_card", "cap_card_spending", "card_daily_cap", "tune_card_limit"),
        ("Sets how much a card may spend a day.", "Gives a card another daily limit."),
        {"card": _CARD, "limit": named("limit", "daily_limit", "cap", text="The limit in euros a day")},
        changes=True,
    ),
    Capability(
        pots,
        ("list_savings_pots", "pot_overview", "show_pots", "savings_goals"),
        ("Lists the savings pots with their targets.", "What was put aside, and for what."),
        {},
    ),
    Capability(
        fill_pot,
        ("fill_savings_pot", "top_up_pot", "put_aside", "stash_in_pot"),
        ("Puts money aside in a savings pot.", "Raises what is saved in a pot."),
        {
            "pot": named("pot", "goal", text="The name of the pot"),
            "amount": named("sum", "euros", text="How much to put aside, in euros"),
        },
        changes=True,
    ),
    Capability(
        letters,
        ("list_letters", "mailbox_overview", "bank_mailbox", "show_correspondence"),
        ("Lists the letters in the bank's mailbox.", "Who wrote, when, and about what."),
        {},
    ),
    Capability(
        read_letter,
        ("open_letter", "read_letter", "letter_text", "view_letter"),
        ("Shows one letter with its text.", "The whole text of a letter in the mailbox."),
        {"letter": named("letter", "letter_key", "reference_key", text="The key of the letter")},
    ),
    Capability(
        dispute,
        ("dispute_booking", "contest_booking", "file_dispute", "challenge_booking"),
        ("Complains to the bank about a booking.", "Tells the bank that a booking is wrong."),
        {
            "booking": named("booking", "booking_key", text="The key of the booking"),
            "reason": named("reason", "explanation", "grounds", text="Why the booking is wrong"),
        },
        changes=True,
    ),
    Capability(
        contact,
        ("contact_details", "show_contact_details", "customer_record", "view_profile"),
        ("Shows the address and the telephone number that the bank knows.", "How the bank reaches the customer."),
        {},
    ),
    Capability(
        change_contact,
        ("revise_contact_details", "amend_profile", "correct_contact_details", "alter_customer_record"),
        ("Changes address or telephone number; what is left out stays.", "Tells the bank how to reach the customer."),
        {
            "street": named("street", "street_line", text="Street and house number"),
            "postcode": named("postcode", "postal_code", text="The postal code"),
            "town": named("town", "place", text="The town"),
            "phone": named("phone", "telephone", text="The telephone number"),
        },
        changes=True,
    ),
    Capability(
        rate,
        ("exchange_rate", "currency_rate", "quote_currency", "rate_of_exchange"),
        ("How much of a foreign currency one euro buys today.", "Today's rate of a currency against the euro."),
        {"currency": named("currency", "currency_code", "code", text="The three letters of the currency")},
    ),
)


def define() -> Definition:
    """The definition of the domain."""
    from memorydojo.optimizer.auxiliary._banking_data import initial_state
    from memorydojo.optimizer.auxiliary._banking_tasks import TEMPLATES

    return Definition(
        name="banking",
        capabilities=CAPABILITIES,
        templates=TEMPLATES,
        initial_state=initial_state,
        attacked=PAY,
        observations=(
            "lists of accounts, bookings, payees, standing orders, cards and savings goals",
            "letters from landlords, practices, authorities and the bank, in running text",
            "confirmations of a payment or of a changed setting",
            "an exchange rate",
        ),
    )
