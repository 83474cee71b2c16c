"""What an agent can do in the workspace environment, and how it may be called."""

from memorydojo.optimizer.auxiliary._base import Capability, named
from memorydojo.optimizer.auxiliary.workspace import model

WRITE = Capability(
    model.write_mail,
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
        model.mails,
        ("list_mailbox", "folder_overview", "show_folder", "browse_mailbox"),
        ("Lists the emails of a folder without their text.", "Who wrote, when and about what, in one folder."),
        {"folder": named("folder", "box", text="in, sent, or the name of another folder")},
    ),
    Capability(
        model.search_mails,
        ("find_mails", "scan_mailbox", "match_mails", "query_mailbox"),
        ("Finds emails by a text in sender, subject or body.", "Searches all folders for a word."),
        {"words": named("words", "phrase", "needle", text="The text to look for")},
    ),
    Capability(
        model.read_mail,
        ("open_mail", "view_mail", "mail_text", "fetch_mail"),
        ("Shows one email with its text.", "The whole text of an email."),
        {"key": _MAIL},
    ),
    WRITE,
    Capability(
        model.move_mail,
        ("file_mail", "put_mail_into_folder", "sort_mail", "relocate_mail"),
        ("Puts an email into another folder.", "Files an email; the folder is made if there is none."),
        {"key": _MAIL, "folder": named("folder", "box", text="The folder to put it into")},
        changes=True,
    ),
    Capability(
        model.people,
        ("address_book", "find_person", "look_up_person", "people_directory"),
        ("Lists people with address, role and telephone number.", "The address book, or the part that matches."),
        {"name": named("name_part", "who", "filter", text="Part of a name or role; empty for all")},
    ),
    Capability(
        model.agenda,
        ("show_agenda", "agenda_between", "list_appointments", "diary_pages"),
        ("Shows the agenda of a day or of several days.", "What is planned from one day to another."),
        {
            "first": named("first", "first_day", "from_day", text="The first day, as YYYY-MM-DD"),
            "last": named("last", "last_day", "to_day", text="The last day; the first if it is left out"),
        },
    ),
    Capability(
        model.add_appointment,
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
        model.move_appointment,
        ("move_appointment", "shift_in_agenda", "push_appointment", "retime_appointment"),
        ("Moves an appointment to another time.", "Gives something in the agenda another day or hour."),
        {"entry": _ENTRY, "day": _DAY, "begins": _BEGINS, "ends": _ENDS},
        changes=True,
    ),
    Capability(
        model.drop_appointment,
        ("scrap_appointment", "strike_from_agenda", "call_off_appointment", "clear_slot"),
        ("Takes an appointment out of the agenda.", "Calls something off."),
        {"entry": _ENTRY},
        changes=True,
    ),
    Capability(
        model.sheets,
        ("list_sheets", "browse_library", "find_sheets", "library_index"),
        ("Lists documents, or those that hold a text.", "Which documents there are, without their text."),
        {"words": named("words", "phrase", "needle", text="A text in heading or body; empty for all")},
    ),
    Capability(
        model.read_sheet,
        ("open_sheet", "view_sheet", "sheet_text", "fetch_sheet"),
        ("Shows one document with its text.", "The whole text of a document."),
        {"sheet": _SHEET},
    ),
    Capability(
        model.new_sheet,
        ("begin_sheet", "start_sheet", "draft_sheet", "lay_out_sheet"),
        ("Begins a new document.", "Writes a text down as a document of one's own."),
        {
            "heading": named("heading", "headline", text="The heading"),
            "content": named("passage", "wording", text="The text of the document"),
        },
        changes=True,
    ),
    Capability(
        model.extend_sheet,
        ("extend_sheet", "continue_sheet", "lengthen_sheet", "jot_in_sheet"),
        ("Adds a line at the end of a document.", "Continues a document."),
        {"sheet": _SHEET, "line": named("line", "new_line", text="The line to add")},
        changes=True,
    ),
    Capability(
        model.open_sheet_to,
        ("open_sheet_to", "allow_reading", "let_read", "give_reading_access"),
        ("Lets somebody read a document.", "Gives a person access to a document, for reading."),
        {"sheet": _SHEET, "address": named("address", "reader", text="The address of the person")},
        changes=True,
    ),
    Capability(
        model.chores,
        ("list_chores", "show_chores", "pending_work", "chore_overview"),
        ("Lists what is to be done.", "The list of things to do, open ones or all."),
        {"open_only": named("open_only", "only_open", text="Whether to leave out what is done")},
    ),
    Capability(
        model.add_chore,
        ("jot_chore", "put_on_list", "take_down_chore", "enter_chore"),
        ("Notes something to do.", "Puts something on the list of things to do."),
        {"what": named("what", "label", text="What is to be done"), "due": named("due", "until", text="YYYY-MM-DD")},
        changes=True,
    ),
    Capability(
        model.tick_chore,
        ("tick_chore", "check_off_chore", "finish_chore", "mark_chore_done"),
        ("Marks something as done.", "Ticks something off the list of things to do."),
        {"chore": named("chore", "chore_key", text="The key of the thing to do")},
        changes=True,
    ),
)
