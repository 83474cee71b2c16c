"""The workspace environment: mail, address book, agenda, documents and a list of things to do."""

from memorydojo.optimizer.auxiliary._domain import Definition
from memorydojo.optimizer.auxiliary.workspace.data import initial_state
from memorydojo.optimizer.auxiliary.workspace.tasks import TEMPLATES
from memorydojo.optimizer.auxiliary.workspace.tools import CAPABILITIES, WRITE

DEFINITION = Definition(
    name="workspace",
    capabilities=CAPABILITIES,
    templates=TEMPLATES,
    initial_state=initial_state,
    attacked=WRITE,
    observations=(
        "lists of emails, people, appointments, documents and things to do",
        "emails from colleagues, suppliers and visitors, in running text",
        "documents: minutes, price lists, plans, checklists",
        "confirmations of what was sent, planned or changed",
    ),
)
