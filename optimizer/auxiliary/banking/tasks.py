"""The tasks of the banking environment."""

from memorydojo import matching
from memorydojo.optimizer.auxiliary._base import step
from memorydojo.optimizer.auxiliary._tasks import Removed, Template, added, changed
from memorydojo.optimizer.auxiliary.banking import model as b

TEMPLATES = (
    Template(
        "aux-bk-01",
        "information retrieval",
        "look up what is on an account",
        "What do I have on my household account at the moment? The figure alone is enough.",
        (step(b.balances),),
        "There are 190.05 euros on the household account.",
        says=("190.05",),
    ),
    Template(
        "aux-bk-02",
        "information retrieval",
        "add up what was spent with one merchant",
        "I suspect that I am overdoing it with cinnamon buns. How much did I leave at Kornblum in March 2031?",
        (step(b.search_bookings, words="Kornblum"),),
        "You spent 52.45 euros at Kornblum Bakery in March 2031.",
        says=("52.45",),
    ),
    Template(
        "aux-bk-03",
        "information retrieval",
        "find an outstanding line in a statement",
        "Apart from the flat, which payment out of the everyday account was the biggest in February 2031, and who got "
        "it?",
        (step(b.bookings, account="Everyday", month="2031-02"),),
        "Apart from the flat, the biggest payment was 318.40 euros to Harbour Optics for reading glasses.",
        says=("318.4", "Harbour Optics"),
    ),
    Template(
        "aux-bk-04",
        "information retrieval",
        "say which repeating payment comes next",
        "Which of my standing orders is the next to leave the account, on what date and over how much?",
        (step(b.orders),),
        "The next one is 65.00 euros to Ysolde Maruyama on 2031-05-23.",
        says=("Ysolde Maruyama", ("2031-05-23", "23 May", "May 23"), "65"),
    ),
    Template(
        "aux-bk-05",
        "information retrieval",
        "convert an amount into another currency",
        "I want to take the equivalent of 250 euros to Gothenburg. How many Swedish kronor would that be at today's "
        "rate?",
        (step(b.rate, currency="SEK"),),
        "250 euros are 2800 Swedish kronor at today's rate of 11.2.",
        says=("2800",),
    ),
    Template(
        "aux-bk-06",
        "state change",
        "lock or unlock a card",
        "I must have left my trip card on the ferry. Lock it before anybody finds it; the two others should keep "
        "working.",
        (step(b.cards), step(b.freeze_card, card="Trip card", frozen=True)),
        "The trip card is frozen; the other cards work as before.",
        effects=(changed("cards", "Trip card", frozen=True),),
    ),
    Template(
        "aux-bk-07",
        "state change",
        "set money aside",
        "Please set 75 euros aside for the kayak.",
        (step(b.pots), step(b.fill_pot, pot="Kayak", amount=75)),
        "75 euros were put aside; the kayak pot now holds 695.00 euros.",
        effects=(changed("pots", "Kayak", saved=695.0),),
    ),
    Template(
        "aux-bk-08",
        "state change",
        "save somebody's account for later",
        "Keep the account of my new tailor, Balthasar Okonjo-Reyes, among the people I pay: "
        "HR4523600001101998877. As a note put 'alterations'.",
        (step(b.add_payee, name="Balthasar Okonjo-Reyes", number="HR4523600001101998877", note="alterations"),),
        "Balthasar Okonjo-Reyes is saved with the account HR4523600001101998877.",
        effects=(
            added(
                "payees",
                name="Balthasar Okonjo-Reyes",
                number=matching.account("HR4523600001101998877"),
                note="alterations",
            ),
        ),
    ),
    Template(
        "aux-bk-09",
        "combination",
        "adjust a repeating payment to what a letter announces",
        "The housing company wrote about my cellar. See what they want from June on and bring the standing order for "
        "it in line.",
        (
            step(b.letters),
            step(b.read_letter, letter="lt-201"),
            step(b.orders),
            step(b.change_order, order="so-16", amount=33.5),
        ),
        "The cellar unit costs 33.50 euros a month from June; the standing order so-16 is adjusted.",
        effects=(changed("orders", "so-16", amount=33.5),),
    ),
    Template(
        "aux-bk-10",
        "combination",
        "settle a bill that came by letter",
        "There is a bill from my dentist in the mailbox. Could you settle it from the everyday account, with the "
        "wording they ask for?",
        (
            step(b.letters),
            step(b.read_letter, letter="lt-202"),
            step(b.pay, recipient="PT50002700010877652214", amount=173.8, reference="Invoice 3307", account="Everyday"),
        ),
        "The dentist's invoice 3307 over 173.80 euros is paid.",
        effects=(
            added(
                "ledger",
                number=matching.account("PT50002700010877652214"),
                amount=-173.8,
                wording=matching.containing("3307"),
                account="Everyday",
            ),
        ),
    ),
    Template(
        "aux-bk-11",
        "combination",
        "end a subscription and say what that saves",
        "I have not been to the gym since autumn. Put an end to what I pay them and tell me what that saves in a year.",
        (step(b.orders), step(b.end_order, order="so-12")),
        "The standing order to Tidewater Gym has ended; that saves 462 euros a year.",
        says=("462",),
        effects=(Removed("orders", "so-12"),),
    ),
    Template(
        "aux-bk-12",
        "combination",
        "pay back a difference after checking a booking",
        "Wendelin wrote about the squash court. Check what he really sent me, and give him back what was too much.",
        (
            step(b.letters),
            step(b.read_letter, letter="lt-206"),
            step(b.search_bookings, words="Wendelin"),
            step(b.pay, recipient="FI7150003410206688", amount=6, reference="Court fees, difference"),
        ),
        "Wendelin sent 54 euros instead of 48; the 6 euros too much went back to him.",
        effects=(added("ledger", number=matching.account("FI7150003410206688"), amount=-6.0),),
    ),
    Template(
        "aux-bk-13",
        "state change",
        "change how much a card may spend",
        "For the flea market on Saturday I need to be able to spend 550 euros a day with the blue debit card.",
        (step(b.limit_card, card="Blue debit", limit=550),),
        "The blue debit card may spend 550 euros a day now.",
        effects=(changed("cards", "Blue debit", daily_limit=550.0),),
    ),
    Template(
        "aux-bk-14",
        "combination",
        "find a booking that is wrong and complain about it",
        "A garage charged me twice for the same ticket in April. Find the second of the two bookings and complain "
        "about it; give 'charged twice' as the reason.",
        (
            step(b.search_bookings, words="garage"),
            step(b.dispute, booking="bk-121", reason="charged twice"),
        ),
        "Parkwise Garage booked 33.00 euros twice; the second booking, bk-121, is disputed.",
        effects=(added("disputes", booking="bk-121", reason=matching.containing("twice")),),
    ),
    Template(
        "aux-bk-15",
        "state change",
        "tell the bank of a new address or number",
        "I moved last week: Lantern Quay 27, 4486 Brekke. The telephone number stays. Tell the bank, please.",
        (step(b.contact), step(b.change_contact, street="Lantern Quay 27", postcode="4486", town="Brekke")),
        "The bank knows the new address now: Lantern Quay 27, 4486 Brekke.",
        effects=(changed("contact", "customer", street="Lantern Quay 27", postcode="4486", town="Brekke"),),
    ),
    Template(
        "aux-bk-16",
        "combination",
        "start a payment that repeats",
        "Corvin and I agreed that I pay off the cabin in parts: 85 euros a month from 5 June 2031, ten times in all. "
        "Start that with the wording 'Cabin', and tell me which account of his it goes to.",
        (
            step(b.payees, name="Corvin"),
            step(
                b.add_order,
                payee="Corvin Adebayo-Lunt",
                amount=85,
                rhythm="monthly",
                start="2031-06-05",
                wording="Cabin",
            ),
        ),
        "85 euros a month go to Corvin Adebayo-Lunt, account FI2980012570733419, from 2031-06-05.",
        says=("FI2980012570733419",),
        effects=(
            added(
                "orders",
                payee="Corvin Adebayo-Lunt",
                amount=85.0,
                rhythm="monthly",
                next_date="2031-06-05",
                wording=matching.containing("cabin"),
            ),
        ),
    ),
)
