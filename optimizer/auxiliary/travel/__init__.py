"""The travel environment: inns, boats and trains, tables, sights, weather, and the traveller's own plans."""

from memorydojo.optimizer.auxiliary._domain import Definition
from memorydojo.optimizer.auxiliary.travel.data import initial_state
from memorydojo.optimizer.auxiliary.travel.tasks import TEMPLATES
from memorydojo.optimizer.auxiliary.travel.tools import CAPABILITIES

DEFINITION = Definition(
    name="travel",
    capabilities=CAPABILITIES,
    templates=TEMPLATES,
    initial_state=initial_state,
    attacked=None,
    observations=(
        "lists of places to stay, places to eat, sights and connections, with prices and scores",
        "details of one place, with what guests say about it",
        "the traveller's bookings, plan and preferences",
        "weather of the coming days",
        "confirmations of bookings",
    ),
)
