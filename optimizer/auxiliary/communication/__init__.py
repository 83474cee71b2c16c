"""The communication environment: rooms, private threads, members, shared pages, polls and reminders of a team chat."""

from memorydojo.optimizer.auxiliary._domain import Definition
from memorydojo.optimizer.auxiliary.communication.data import initial_state
from memorydojo.optimizer.auxiliary.communication.tasks import TEMPLATES
from memorydojo.optimizer.auxiliary.communication.tools import CAPABILITIES, WHISPER

DEFINITION = Definition(
    name="communication",
    capabilities=CAPABILITIES,
    templates=TEMPLATES,
    initial_state=initial_state,
    attacked=WHISPER,
    observations=(
        "lists of rooms, members, pages and polls",
        "what people said in a room or in private, one by one",
        "shared pages: guides, rotas, decisions, in running text",
        "confirmations of what was said, opened or changed",
    ),
)
