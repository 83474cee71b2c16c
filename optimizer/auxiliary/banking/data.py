"""What the banking environment begins with. People, numbers and firms are invented."""

from memorydojo.optimizer.auxiliary.banking.model import (
    Account,
    BankingState,
    Booking,
    Card,
    Contact,
    Letter,
    Payee,
    Pot,
    Rate,
    StandingOrder,
)

_ACCOUNTS = (
    ("Everyday", "NO4218067749015", 2310.75),
    ("Household", "NO7718067749023", 846.20),
    ("Reserve", "NO0918067749031", 6400.00),
)

_PAYEES = (
    ("Fjellstue Housing", "NO5286013349970", "flat and cellar"),
    ("Wendelin Oduya", "FI7150003410206688", "squash partner"),
    ("Dr Szymanska Dental", "PT50002700010877652214", "dentist"),
    ("Tidewater Gym", "AT402011183746590217", ""),
    ("Kestrel Broadband", "NO3390415520187", "line in the flat"),
    ("Ysolde Maruyama", "BE58733094417762", "violin lessons"),
    ("Glasswing Insurance", "NO6186010072214", "contents"),
    ("Corvin Adebayo-Lunt", "FI2980012570733419", "shared the cabin"),
)

_ORDERS = (
    ("so-11", "Fjellstue Housing", 912.00, "monthly", "2031-06-01", "Flat 4C"),
    ("so-12", "Tidewater Gym", 38.50, "monthly", "2031-06-15", "Membership 7741"),
    ("so-13", "Kestrel Broadband", 44.90, "monthly", "2031-05-28", "Line 0093"),
    ("so-14", "Ysolde Maruyama", 65.00, "weekly", "2031-05-23", "Lessons"),
    ("so-15", "Glasswing Insurance", 126.00, "yearly", "2031-11-02", "Contents policy"),
    ("so-16", "Fjellstue Housing", 29.00, "monthly", "2031-06-01", "Cellar unit 18"),
)

_CARDS = (
    ("Blue debit", "Everyday", 400.0, False, False),
    ("Household debit", "Household", 250.0, False, False),
    ("Trip card", "Everyday", 600.0, False, True),
)

_POTS = (("Kayak", 1450.0, 620.0), ("Roof repair", 3000.0, 1875.5), ("Winter coat", 280.0, 95.0))

_BOOKINGS = (
    ("2031-02-03", "Everyday", "Fjellstue Housing", "NO5286013349970", -912.00, "Flat 4C"),
    ("2031-02-06", "Everyday", "Harbour Optics", "NO1199023344501", -318.40, "Reading glasses"),
    ("2031-02-11", "Household", "Kornblum Bakery", "NO8123400098213", -11.60, "Card payment"),
    ("2031-02-14", "Everyday", "Nautilus Records", "SI56290000159800373", -47.25, "Order 5581"),
    ("2031-02-19", "Household", "Greenmarket Osk", "NO4417002299814", -86.15, "Groceries"),
    ("2031-02-25", "Everyday", "Lumen & Oar Studios", "NO2604499120077", 2480.00, "Salary February"),
    ("2031-02-27", "Everyday", "Rosalind Petrakis", "HR1723600001101234565", -140.00, "Second-hand lamp"),
    ("2031-03-03", "Everyday", "Fjellstue Housing", "NO5286013349970", -912.00, "Flat 4C"),
    ("2031-03-04", "Household", "Kornblum Bakery", "NO8123400098213", -9.80, "Card payment"),
    ("2031-03-09", "Household", "Greenmarket Osk", "NO4417002299814", -102.35, "Groceries"),
    ("2031-03-12", "Household", "Kornblum Bakery", "NO8123400098213", -14.20, "Card payment"),
    ("2031-03-17", "Everyday", "Ferry Line North", "NO9951002203318", -58.00, "Ticket 88-201"),
    ("2031-03-20", "Household", "Kornblum Bakery", "NO8123400098213", -7.45, "Card payment"),
    ("2031-03-25", "Everyday", "Lumen & Oar Studios", "NO2604499120077", 2480.00, "Salary March"),
    ("2031-03-29", "Household", "Kornblum Bakery", "NO8123400098213", -21.00, "Birthday cake"),
    ("2031-04-01", "Everyday", "Fjellstue Housing", "NO5286013349970", -912.00, "Flat 4C"),
    ("2031-04-05", "Everyday", "Corvin Adebayo-Lunt", "FI2980012570733419", 260.00, "Cabin share"),
    ("2031-04-07", "Everyday", "Skarv Cabins", "NO3011890047720", -430.00, "Cabin 12, four nights"),
    ("2031-04-10", "Household", "Greenmarket Osk", "NO4417002299814", -74.90, "Groceries"),
    ("2031-04-16", "Everyday", "Parkwise Garage", "NO7340091188260", -33.00, "Ticket 40113"),
    ("2031-04-16", "Everyday", "Parkwise Garage", "NO7340091188260", -33.00, "Ticket 40113"),
    ("2031-04-22", "Household", "Kornblum Bakery", "NO8123400098213", -12.75, "Card payment"),
    ("2031-04-25", "Everyday", "Lumen & Oar Studios", "NO2604499120077", 2480.00, "Salary April"),
    ("2031-04-28", "Everyday", "Thistle Theatre", "NO5540012277613", -92.00, "Season pass"),
    ("2031-05-01", "Everyday", "Fjellstue Housing", "NO5286013349970", -912.00, "Flat 4C"),
    ("2031-05-06", "Household", "Greenmarket Osk", "NO4417002299814", -118.05, "Groceries"),
    ("2031-05-09", "Everyday", "Wendelin Oduya", "FI7150003410206688", 54.00, "Court fees, half"),
    ("2031-05-12", "Household", "Halvorsen Plumbing", "NO6612309987145", -187.50, "Kitchen tap"),
    ("2031-05-15", "Everyday", "Nautilus Records", "SI56290000159800373", -23.90, "Order 6120"),
    ("2031-05-18", "Household", "Kornblum Bakery", "NO8123400098213", -10.40, "Card payment"),
)

_LETTERS = (
    (
        "lt-201",
        "2031-04-29",
        "Fjellstue Housing",
        "Cellar unit 18",
        "Dear tenant, the charge for your cellar unit rises from 29.00 to 33.50 euros a month with the June payment, "
        "since the lift was renewed. The rent for the flat stays as it is. Kind regards, Fjellstue Housing.",
    ),
    (
        "lt-202",
        "2031-05-08",
        "Dr Szymanska Dental",
        "Invoice 3307",
        "For the treatment of 2 May we charge 173.80 euros. The amount is due within three weeks to "
        "PT50002700010877652214, with the wording 'Invoice 3307'. We wish you a good recovery.",
    ),
    (
        "lt-203",
        "2031-05-10",
        "Municipal Treasury of Osk",
        "Dog licence",
        "The licence for your dog runs out on 30 June. The fee for the coming year is 61.00 euros. Transferable to "
        "NO8845001100927 with the licence number OSK-5512. Owners of guide dogs are exempt.",
    ),
    (
        "lt-204",
        "2031-05-13",
        "Your bank",
        "New terms for cards",
        "From July a card that is enabled for use abroad costs 1.50 euros a month. Cards that are used at home only "
        "stay free of charge. Your trip card is enabled for use abroad.",
    ),
    (
        "lt-205",
        "2031-05-16",
        "Ysolde Maruyama",
        "Lessons from June",
        "Good news: since we moved the lessons to the school hall, a lesson costs 58.00 euros from June. The weekday "
        "stays Friday. See you in the hall.",
    ),
    (
        "lt-206",
        "2031-05-17",
        "Wendelin Oduya",
        "Court fees",
        "Hello, I believe that I sent you too much for the squash court: it was 96 euros in all, so my half is 48. "
        "It would be kind to get the difference back some time.",
    ),
)

_RATES = (("NOK", 11.62), ("SEK", 11.2), ("GBP", 0.8455), ("JPY", 163.1), ("CHF", 0.9472))


def initial_state() -> BankingState:
    """A new state."""
    ledger = [
        Booking(booking=f"bk-{n}", date=date, account=account, party=party, number=number, amount=amount, wording=words)
        for n, (date, account, party, number, amount, words) in enumerate(_BOOKINGS, start=101)
    ]
    return BankingState(
        accounts={name: Account(name=name, number=number, opening=opening) for name, number, opening in _ACCOUNTS},
        ledger={booking.booking: booking for booking in ledger},
        payees={name: Payee(name=name, number=number, note=note) for name, number, note in _PAYEES},
        orders={
            key: StandingOrder(order=key, payee=payee, amount=amount, rhythm=rhythm, next_date=date, wording=words)
            for key, payee, amount, rhythm, date, words in _ORDERS
        },
        cards={
            name: Card(card=name, account=account, daily_limit=limit, frozen=frozen, abroad=abroad)
            for name, account, limit, frozen, abroad in _CARDS
        },
        pots={name: Pot(pot=name, target=target, saved=saved) for name, target, saved in _POTS},
        letters={
            key: Letter(letter=key, date=date, sender=sender, subject=subject, text=text)
            for key, date, sender, subject, text in _LETTERS
        },
        contact={
            "customer": Contact(
                street="Myrtle Steps 9", postcode="4471", town="Osk", phone="+47 555 01 882", statements_by="letter"
            )
        },
        rates={code: Rate(currency=code, per_euro=per_euro) for code, per_euro in _RATES},
    )
