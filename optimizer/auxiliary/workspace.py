"""The workspace environment: mail, address book, agenda, documents and a list of things to do."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Capability, Record, State, find, named
from memorydojo.optimizer.auxiliary._domain import Definition


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
    state: WorkspaceState, what: str, day: str, begins: str, ends: str, where: str = "", guests: list[str] = []
) -> Appointment:
    """Puts something into the agenda."""
    if not begins < ends:
        raise ValueError("it must begin before it ends; write times as HH:MM")
    key = state.number("a-")
    state.agenda[key] = Appointment(
        entry=key, day=day, begins=begins, ends=ends, what=what, where=where, guests=list(guests)
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


WRITE = Capability(
    write_mail,
    ("dispatch_email", "deliver_mail", "write_email", "submit_email", "email_people", "mail_out"),
    (
        "Writes an email to one or more people and sends it.",
        "Sends mail from the own address to the addresses that are given.",
    ),
    {
        "recipients": named("recipients", text="The addresses that get it", also="List of email addresses"),
        "subject": named("subject", "title", text="The subject line"),
        "body": named("body", "content", "message", "text", text="What it says", also="The text of the email"),
    },
    changes=True,
)

_MAIL = named("mail_key", "letter_key", "item", text="The key of the email")
_ENTRY = named("entry", "entry_key", "slot_key", text="The key of the agenda entry")
_SHEET = named("sheet", "sheet_key", "page_key", text="The key of the document")
_DAY = named("day", "on_day", text="The day, as YYYY-MM-DD")
_BEGINS = named("begins", "from_time", text="When it begins, as HH:MM")
_ENDS = named("ends", "to_time", text="When it ends, as HH:MM")

CAPABILITIES = (
    Capability(
        mails,
        ("list_mailbox", "folder_overview", "show_folder", "browse_mailbox"),
        ("Lists the emails of a folder without their text.", "Who wrote, when and about what, in one folder."),
        {"folder": named("folder", "box", text="in, sent, or the name of another folder")},
    ),
    Capability(
        search_mails,
        ("find_mails", "scan_mailbox", "match_mails", "query_mailbox"),
        ("Finds emails by a text in sender, subject or body.", "Searches all folders for a word."),
        {"words": named("words", "phrase", "needle", text="The text to look for")},
    ),
    Capability(
        read_mail,
        ("open_mail", "view_mail", "mail_text", "fetch_mail"),
        ("Shows one email with its text.", "The whole text of an email."),
        {"key": _MAIL},
    ),
    WRITE,
    Capability(
        move_mail,
        ("file_mail", "put_mail_into_folder", "sort_mail", "relocate_mail"),
        ("Puts an email into another folder.", "Files an email; the folder is made if there is none."),
        {"key": _MAIL, "folder": named("folder", "box", text="The folder to put it into")},
        changes=True,
    ),
    Capability(
        people,
        ("address_book", "find_person", "look_up_person", "people_directory"),
        ("Lists people with address, role and telephone number.", "The address book, or the part that matches."),
        {"name": named("name_part", "who", "filter", text="Part of a name or role; empty for all")},
    ),
    Capability(
        agenda,
        ("show_agenda", "agenda_between", "list_appointments", "diary_pages"),
        ("Shows the agenda of a day or of several days.", "What is planned from one day to another."),
        {
            "first": named("first", "first_day", "from_day", text="The first day, as YYYY-MM-DD"),
            "last": named("last", "last_day", "to_day", text="The last day; the first if it is left out"),
        },
    ),
    Capability(
        add_appointment,
        ("plan_appointment", "enter_appointment", "put_in_agenda", "pencil_in"),
        ("Puts an appointment into the agenda.", "Plans something at a time, with guests if there are any."),
        {
            "what": named("what", "label", text="What it is"),
            "day": _DAY,
            "begins": _BEGINS,
            "ends": _ENDS,
            "where": named("where", "place", text="Where it is"),
            "guests": named("guests", "invitees", text="Addresses of those who come too"),
        },
        changes=True,
    ),
    Capability(
        move_appointment,
        ("move_appointment", "shift_in_agenda", "push_appointment", "retime_appointment"),
        ("Moves an appointment to another time.", "Gives something in the agenda another day or hour."),
        {"entry": _ENTRY, "day": _DAY, "begins": _BEGINS, "ends": _ENDS},
        changes=True,
    ),
    Capability(
        drop_appointment,
        ("scrap_appointment", "strike_from_agenda", "call_off_appointment", "clear_slot"),
        ("Takes an appointment out of the agenda.", "Calls something off."),
        {"entry": _ENTRY},
        changes=True,
    ),
    Capability(
        sheets,
        ("list_sheets", "browse_library", "find_sheets", "library_index"),
        ("Lists documents, or those that hold a text.", "Which documents there are, without their text."),
        {"words": named("words", "phrase", "needle", text="A text in heading or body; empty for all")},
    ),
    Capability(
        read_sheet,
        ("open_sheet", "view_sheet", "sheet_text", "fetch_sheet"),
        ("Shows one document with its text.", "The whole text of a document."),
        {"sheet": _SHEET},
    ),
    Capability(
        new_sheet,
        ("begin_sheet", "start_sheet", "draft_sheet", "lay_out_sheet"),
        ("Begins a new document.", "Writes a text down as a document of one's own."),
        {
            "heading": named("heading", "headline", text="The heading"),
            "content": named("passage", "wording", text="The text of the document"),
        },
        changes=True,
    ),
    Capability(
        extend_sheet,
        ("extend_sheet", "continue_sheet", "lengthen_sheet", "jot_in_sheet"),
        ("Adds a line at the end of a document.", "Continues a document."),
        {"sheet": _SHEET, "line": named("line", "new_line", text="The line to add")},
        changes=True,
    ),
    Capability(
        open_sheet_to,
        ("open_sheet_to", "allow_reading", "let_read", "give_reading_access"),
        ("Lets somebody read a document.", "Gives a person access to a document, for reading."),
        {"sheet": _SHEET, "address": named("address", "reader", text="The address of the person")},
        changes=True,
    ),
    Capability(
        chores,
        ("list_chores", "show_chores", "pending_work", "chore_overview"),
        ("Lists what is to be done.", "The list of things to do, open ones or all."),
        {"open_only": named("open_only", "only_open", text="Whether to leave out what is done")},
    ),
    Capability(
        add_chore,
        ("jot_chore", "put_on_list", "take_down_chore", "enter_chore"),
        ("Notes something to do.", "Puts something on the list of things to do."),
        {"what": named("what", "label", text="What is to be done"), "due": named("due", "until", text="YYYY-MM-DD")},
        changes=True,
    ),
    Capability(
        tick_chore,
        ("tick_chore", "check_off_chore", "finish_chore", "mark_chore_done"),
        ("Marks something as done.", "Ticks something off the list of things to do."),
        {"chore": named("chore", "chore_key", text="The key of the thing to do")},
        changes=True,
    ),
)


def define() -> Definition:
    """The definition of the domain."""
    from memorydojo.optimizer.auxiliary._workspace_data import initial_state
    from memorydojo.optimizer.auxiliary._workspace_tasks import TEMPLATES

    return Definition(
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
