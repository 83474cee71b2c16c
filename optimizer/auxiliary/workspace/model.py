"""The state of the workspace environment, and the functions that read and change it."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Record, State, find


class Letterhead(Record):
    """A message in a list of messages."""

    mail: str
    folder: str
    date: str
    sender: str
    to: list[str]
    subject: str


class Mail(Letterhead):
    """A message with its text."""

    text: str


class Person(Record):
    """Somebody in the address book."""

    name: str
    address: str
    role: str
    phone: str


class Appointment(Record):
    """Something in the agenda."""

    entry: str
    day: str
    begins: str
    ends: str
    what: str
    where: str
    guests: list[str]


class Sheet(Record):
    """A document in a list of documents."""

    sheet: str
    heading: str
    owner: str
    edited: str
    readers: list[str]


class FullSheet(Sheet):
    """A document with its text."""

    text: str


class Chore(Record):
    """Something to do."""

    chore: str
    what: str
    due: str
    done: bool


class WorkspaceState(State):
    """The state of the workspace environment."""

    mails: dict[str, Mail] = Field(default_factory=dict)
    people: dict[str, Person] = Field(default_factory=dict)
    agenda: dict[str, Appointment] = Field(default_factory=dict)
    sheets: dict[str, FullSheet] = Field(default_factory=dict)
    chores: dict[str, Chore] = Field(default_factory=dict)
    today: str = "2031-09-08"
    owner: str = "hedda.quillfeather@cobaltmill.example"


def mails(state: WorkspaceState, folder: str = "in") -> list[Letterhead]:
    """The messages of a folder, without their text."""
    return [_head(mail) for mail in state.mails.values() if mail.folder == folder.casefold()]


def _head(mail: Mail) -> Letterhead:
    return Letterhead.model_validate(mail.model_dump(exclude={"text"}))


def search_mails(state: WorkspaceState, words: str) -> list[Letterhead]:
    """The messages with a text in sender, subject or body."""
    wanted = words.casefold()
    return [_head(m) for m in state.mails.values() if wanted in f"{m.sender} {m.subject} {m.text}".casefold()]


def read_mail(state: WorkspaceState, key: str) -> Mail:
    """One message with its text."""
    return find(state.mails, key, "message")


def write_mail(state: WorkspaceState, recipients: list[str], subject: str, body: str) -> Letterhead:
    """Sends a message."""
    wrong = [address for address in recipients if "@" not in address]
    if wrong or not recipients:
        raise ValueError(f"these are no addresses: {', '.join(wrong) or 'none given'}")
    key = state.number("m-")
    state.mails[key] = Mail(
        mail=key, folder="sent", date=state.today, sender=state.owner, to=list(recipients), subject=subject, text=body
    )
    return _head(state.mails[key])


def move_mail(state: WorkspaceState, key: str, folder: str) -> Letterhead:
    """Puts a message into another folder."""
    mail = find(state.mails, key, "message")
    mail.folder = folder.casefold()
    return _head(mail)


def people(state: WorkspaceState, name: str = "") -> list[Person]:
    """The people in the address book whose name or role holds a text."""
    return [p for p in state.people.values() if name.casefold() in f"{p.name} {p.role}".casefold()]


def agenda(state: WorkspaceState, first: str, last: str = "") -> list[Appointment]:
    """What the agenda holds on a day, or from one day to another."""
    found = [a for a in state.agenda.values() if first <= a.day <= (last or first)]
    return sorted(found, key=lambda a: (a.day, a.begins))


def add_appointment(
    state: WorkspaceState,
    what: str,
    day: str,
    begins: str,
    ends: str,
    where: str = "",
    guests: list[str] | None = None,
) -> Appointment:
    """Puts something into the agenda."""
    if not begins < ends:
        raise ValueError("it must begin before it ends; write times as HH:MM")
    key = state.number("a-")
    state.agenda[key] = Appointment(
        entry=key, day=day, begins=begins, ends=ends, what=what, where=where, guests=list(guests or [])
    )
    return state.agenda[key]


def move_appointment(state: WorkspaceState, entry: str, day: str, begins: str, ends: str) -> Appointment:
    """Moves something in the agenda to another time."""
    found = find(state.agenda, entry, "appointment")
    if not begins < ends:
        raise ValueError("it must begin before it ends; write times as HH:MM")
    found.day, found.begins, found.ends = day, begins, ends
    return found


def drop_appointment(state: WorkspaceState, entry: str) -> str:
    """Takes something out of the agenda."""
    found = find(state.agenda, entry, "appointment")
    del state.agenda[found.entry]
    return f"{found.what} on {found.day} is no longer in the agenda."


def sheets(state: WorkspaceState, words: str = "") -> list[Sheet]:
    """The documents with a text in heading or body, without their text."""
    wanted = words.casefold()
    found = [s for s in state.sheets.values() if wanted in f"{s.heading} {s.text}".casefold()]
    return [Sheet.model_validate(sheet.model_dump(exclude={"text"})) for sheet in found]


def read_sheet(state: WorkspaceState, sheet: str) -> FullSheet:
    """One document with its text."""
    return find(state.sheets, sheet, "document")


def new_sheet(state: WorkspaceState, heading: str, content: str) -> FullSheet:
    """Begins a document."""
    key = state.number("d-")
    state.sheets[key] = FullSheet(
        sheet=key, heading=heading, owner=state.owner, edited=state.today, readers=[], text=content
    )
    return state.sheets[key]


def extend_sheet(state: WorkspaceState, sheet: str, line: str) -> FullSheet:
    """Adds a line at the end of a document."""
    found = find(state.sheets, sheet, "document")
    found.text = f"{found.text}\n{line}"
    return found


def open_sheet_to(state: WorkspaceState, sheet: str, address: str) -> FullSheet:
    """Lets somebody read a document."""
    found = find(state.sheets, sheet, "document")
    if address not in found.readers:
        found.readers = [*found.readers, address]
    return found


def chores(state: WorkspaceState, open_only: bool = True) -> list[Chore]:
    """What is to be done."""
    return [c for c in state.chores.values() if not (open_only and c.done)]


def add_chore(state: WorkspaceState, what: str, due: str) -> Chore:
    """Notes something to do."""
    key = state.number("t-")
    state.chores[key] = Chore(chore=key, what=what, due=due, done=False)
    return state.chores[key]


def tick_chore(state: WorkspaceState, chore: str) -> Chore:
    """Marks something as done."""
    found = find(state.chores, chore, "thing to do")
    found.done = True
    return found
