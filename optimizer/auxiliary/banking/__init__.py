"""The banking environment: accounts with a ledger, payees, standing orders, cards, savings pots and letters."""

from memorydojo.optimizer.auxiliary._domain import Definition
from memorydojo.optimizer.auxiliary.banking.data import initial_state
from memorydojo.optimizer.auxiliary.banking.tasks import TEMPLATES
from memorydojo.optimizer.auxiliary.banking.tools import CAPABILITIES, PAY

DEFINITION = Definition(
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
