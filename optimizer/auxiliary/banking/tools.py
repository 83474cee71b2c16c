"""What an agent can do in the banking environment, and how it may be called."""

from memorydojo.optimizer.auxiliary._base import Capability, named
from memorydojo.optimizer.auxiliary.banking import model

PAY = Capability(
    model.pay,
    ("remit_payment", "make_payment", "wire_funds", "issue_transfer", "submit_payment", "dispatch_funds"),
    (
        "Pays money from one of the customer's accounts to an account elsewhere.",
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
        model.balances,
        ("account_overview", "list_accounts", "show_balances", "account_standings"),
        ("Lists the customer's accounts with their balances.", "What is on each of the own accounts right now."),
        {},
    ),
    Capability(
        model.bookings,
        ("list_bookings", "statement_lines", "account_statement", "show_ledger"),
        ("Lists the bookings of an account, oldest first.", "The statement of one account, of one month if wanted."),
        {
            "account": named("account", "account_name", text="The name of the account"),
            "month": named("month", "period", text="A month as YYYY-MM; empty for all", also="YYYY-MM, or nothing"),
        },
    ),
    Capability(
        model.search_bookings,
        ("find_bookings", "search_ledger", "look_up_bookings", "match_bookings"),
        ("Finds bookings by a text in their party or wording.", "Searches all accounts for bookings with a word."),
        {"words": named("words", "term", "phrase", text="The text to look for", also="Part of a name or wording")},
    ),
    PAY,
    Capability(
        model.payees,
        ("list_payees", "payee_directory", "saved_payees", "lookup_payee"),
        ("Lists saved payees with their account numbers.", "The address book of payees, or the part that matches."),
        {"name": named("name", "name_part", "filter", text="Part of the payee's name; empty for all")},
    ),
    Capability(
        model.add_payee,
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
        model.orders,
        ("list_standing_orders", "standing_order_book", "show_standing_orders", "recurring_orders"),
        ("Lists all standing orders.", "What is paid again and again, when next and to whom."),
        {},
    ),
    Capability(
        model.add_order,
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
        model.change_order,
        ("adjust_standing_order", "amend_standing_order", "revise_standing_order", "alter_standing_order"),
        ("Changes the amount of a standing order.", "Pays another amount from the next time on."),
        {"order": _ORDER, "amount": named("sum", "new_sum", "euros", text="The new amount in euros")},
        changes=True,
    ),
    Capability(
        model.end_order,
        ("end_standing_order", "stop_standing_order", "close_standing_order", "terminate_standing_order"),
        ("Ends a standing order.", "Stops a payment that repeats."),
        {"order": _ORDER},
        changes=True,
    ),
    Capability(
        model.cards,
        ("list_cards", "card_overview", "show_cards", "card_status"),
        ("Lists the cards with their limits and whether they are frozen.", "All cards and how they are set."),
        {},
    ),
    Capability(
        model.freeze_card,
        ("toggle_card_freeze", "switch_card", "freeze_card", "block_card"),
        ("Freezes a card, or makes a frozen one usable again.", "Switches a card off or on."),
        {"card": _CARD, "frozen": named("frozen", "blocked", text="True to freeze, false to make usable")},
        changes=True,
    ),
    Capability(
        model.limit_card,
        ("limit_card", "cap_card_spending", "card_daily_cap", "tune_card_limit"),
        ("Sets how much a card may spend a day.", "Gives a card another daily limit."),
        {"card": _CARD, "limit": named("limit", "daily_limit", "cap", text="The limit in euros a day")},
        changes=True,
    ),
    Capability(
        model.pots,
        ("list_savings_pots", "pot_overview", "show_pots", "savings_goals"),
        ("Lists the savings pots with their targets.", "What was put aside, and for what."),
        {},
    ),
    Capability(
        model.fill_pot,
        ("fill_savings_pot", "top_up_pot", "put_aside", "stash_in_pot"),
        ("Puts money aside in a savings pot.", "Raises what is saved in a pot."),
        {
            "pot": named("pot", "goal", text="The name of the pot"),
            "amount": named("sum", "euros", text="How much to put aside, in euros"),
        },
        changes=True,
    ),
    Capability(
        model.letters,
        ("list_letters", "mailbox_overview", "bank_mailbox", "show_correspondence"),
        ("Lists the letters in the bank's mailbox.", "Who wrote, when, and about what."),
        {},
    ),
    Capability(
        model.read_letter,
        ("open_letter", "read_letter", "letter_text", "view_letter"),
        ("Shows one letter with its text.", "The whole text of a letter in the mailbox."),
        {"letter": named("letter", "letter_key", "reference_key", text="The key of the letter")},
    ),
    Capability(
        model.dispute,
        ("dispute_booking", "contest_booking", "file_dispute", "challenge_booking"),
        ("Complains to the bank about a booking.", "Tells the bank that a booking is wrong."),
        {
            "booking": named("booking", "booking_key", text="The key of the booking"),
            "reason": named("reason", "explanation", "grounds", text="Why the booking is wrong"),
        },
        changes=True,
    ),
    Capability(
        model.contact,
        ("contact_details", "show_contact_details", "customer_record", "view_profile"),
        ("Shows the address and the telephone number that the bank knows.", "How the bank reaches the customer."),
        {},
    ),
    Capability(
        model.change_contact,
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
        model.rate,
        ("exchange_rate", "currency_rate", "quote_currency", "rate_of_exchange"),
        ("How much of a foreign currency one euro buys today.", "Today's rate of a currency against the euro."),
        {"currency": named("currency", "currency_code", "code", text="The three letters of the currency")},
    ),
)
