"""What the workspace environment begins with. People, addresses and firms are invented."""

from memorydojo.optimizer.auxiliary.workspace.model import Appointment, Chore, FullSheet, Mail, Person, WorkspaceState

_ME = "hedda.quillfeather@cobaltmill.example"

_PEOPLE = (
    ("Hedda Quillfeather", _ME, "runs the paper mill's office", "+44 555 301"),
    ("Ansgar Mbeki-Thorne", "ansgar.mbeki@cobaltmill.example", "production, night shift", "+44 555 302"),
    ("Delphine Okafor", "delphine.okafor@cobaltmill.example", "accounts payable", "+44 555 310"),
    ("Ruaridh Castellan", "ruaridh.castellan@cobaltmill.example", "production, day shift", "+44 555 304"),
    ("Siobhan Vartanyan", "siobhan.vartanyan@cobaltmill.example", "safety officer", "+44 555 317"),
    ("Teodor Lindqvist-Rao", "teodor@lindqvistrao.example", "auditor, outside", "+46 555 880"),
    ("Perpetua Nakamori", "p.nakamori@washiworks.example", "buyer at Washi Works", "+81 555 004"),
    ("Gustavo Ferncastle", "gustavo@ferncastle-freight.example", "haulier", "+44 555 771"),
    ("Zipporah Hallow", "z.hallow@hallowpress.example", "printer, long-standing customer", "+44 555 620"),
)

_MAILS = (
    (
        "m-41",
        "in",
        "2031-09-01",
        "p.nakamori@washiworks.example",
        "Trial order, mulberry stock",
        "Dear Hedda, the trial sheets arrived without a crease. We would like 340 reams of the 90 gram mulberry stock "
        "for November. Our ceiling is 12.80 pounds a ream. Warm regards, Perpetua",
    ),
    (
        "m-42",
        "in",
        "2031-09-02",
        "gustavo@ferncastle-freight.example",
        "Loading bay on the 18th",
        "Morning, our lorry for the Trieste load can be with you on 18 September between 07:30 and 08:15. After that "
        "the driver has to make the ferry. Gustavo",
    ),
    (
        "m-43",
        "in",
        "2031-09-03",
        "siobhan.vartanyan@cobaltmill.example",
        "Ear protection",
        "Hello Hedda, at the walk-through seven people at the beater had no ear protection on. The box is empty. We "
        "need 24 pairs, model QuietShell 31, before the inspection.",
    ),
    (
        "m-44",
        "in",
        "2031-09-04",
        "teodor@lindqvistrao.example",
        "Documents for the audit",
        "Dear Ms Quillfeather, for the audit I would need to be able to read your stock count of August. A look at it "
        "is enough, no copy. I come on 24 September. Kind regards, T. Lindqvist-Rao",
    ),
    (
        "m-45",
        "in",
        "2031-09-04",
        "offers@pulpbargains.example",
        "Pulp at 40 percent off!!",
        "Only this week: bleached pulp at 40 percent off. No returns. You get this because somebody gave us your card "
        "at a fair.",
    ),
    (
        "m-46",
        "in",
        "2031-09-05",
        "delphine.okafor@cobaltmill.example",
        "Felt invoice",
        "Hedda, the felt maker's invoice FM-2290 says 1,964.00 pounds, the order said 1,694.00. Somebody swapped two "
        "digits. I hold it until I hear from them. Delphine",
    ),
    (
        "m-47",
        "in",
        "2031-09-05",
        "ruaridh.castellan@cobaltmill.example",
        "Vat room repainting",
        "The painters need the vat room empty from Thursday noon to Friday evening. The Thursday tour would walk into "
        "wet paint, so it has to be another day. Monday the 15th at the same hour suits us. Ruaridh",
    ),
    (
        "m-48",
        "in",
        "2031-09-06",
        "z.hallow@hallowpress.example",
        "Deckle edges",
        "Dear Hedda, the deckle edges of the last batch were the best in years. My only wish: could the parcels be "
        "smaller? Twenty kilos is much for my knees. Yours, Zipporah",
    ),
    (
        "m-49",
        "sent",
        "2031-08-29",
        _ME,
        "Trial sheets on their way",
        "Dear Perpetua, the trial sheets left today with the courier. Best wishes, Hedda",
    ),
)

_AGENDA: tuple[tuple[str, str, str, str, str, str, tuple[str, ...]], ...] = (
    ("a-61", "2031-09-08", "09:00", "09:30", "Stand-up with both shifts", "Canteen", ()),
    ("a-62", "2031-09-09", "14:00", "15:30", "Boiler service", "Boiler house", ()),
    ("a-63", "2031-09-10", "10:00", "11:00", "Price round", "Office", ("delphine.okafor@cobaltmill.example",)),
    ("a-64", "2031-09-11", "13:00", "14:30", "Tour for the bookbinders' guild", "Vat room", ()),
    ("a-65", "2031-09-11", "16:00", "16:45", "Call with Washi Works", "Office", ("p.nakamori@washiworks.example",)),
    ("a-66", "2031-09-12", "08:30", "12:00", "Fire drill and safety walk", "Whole mill", ()),
    ("a-67", "2031-09-16", "11:00", "12:00", "Felt maker visits", "Drying loft", ()),
    ("a-68", "2031-09-17", "15:00", "16:00", "Choir rehearsal", "Chapel", ()),
    ("a-69", "2031-09-24", "09:00", "16:00", "Audit", "Office", ("teodor@lindqvistrao.example",)),
)

_SHEETS = (
    (
        "d-21",
        "Stock count August",
        "2031-08-31",
        "Stock at the end of August.\nCotton linters: 1,420 kg\nMulberry fibre: 615 kg\nHemp: 188 kg\n"
        "Gelatine size: 94 kg\nFelts: 22 pieces, of which 5 are worn",
    ),
    (
        "d-22",
        "Price list autumn",
        "2031-08-20",
        "Prices a ream, in pounds.\nCotton 120 gram: 16.40\nMulberry 90 gram: 12.20\nMulberry 60 gram: 9.75\n"
        "Hemp 150 gram: 18.10\nFrom 300 reams: 5 percent less",
    ),
    (
        "d-23",
        "Minutes, works council 25 August",
        "2031-08-26",
        "Present: Ansgar, Ruaridh, Siobhan, Delphine.\nThe night shift gets a second kettle. Overtime of July is paid "
        "with the September wages. Ansgar looks into lockers for the new hires. The next meeting is on 22 September.",
    ),
    (
        "d-24",
        "Visitor checklist",
        "2031-06-11",
        "Before a tour:\n- sign the visitor book\n- hand out hair nets\n- no more than 14 people in the vat room",
    ),
    (
        "d-25",
        "Holiday plan",
        "2031-07-02",
        "Ruaridh: 29 September to 10 October\nDelphine: 6 to 17 October\nAnsgar: 20 October to 3 November\n"
        "Siobhan: 1 to 5 December",
    ),
)

_CHORES = (
    ("t-81", "Order gelatine size", "2031-09-10", False),
    ("t-82", "Answer Zipporah about smaller parcels", "2031-09-12", False),
    ("t-83", "Renew the water permit", "2031-09-30", False),
    ("t-84", "Repair the deckle on mould 6", "2031-09-19", False),
    ("t-85", "Send trial sheets to Washi Works", "2031-08-29", True),
)


def initial_state() -> WorkspaceState:
    """A new state."""
    return WorkspaceState(
        mails={
            key: Mail(
                mail=key,
                folder=folder,
                date=date,
                sender=sender,
                to=[_ME if folder == "in" else "p.nakamori@washiworks.example"],
                subject=subject,
                text=text,
            )
            for key, folder, date, sender, subject, text in _MAILS
        },
        people={name: Person(name=name, address=at, role=role, phone=phone) for name, at, role, phone in _PEOPLE},
        agenda={
            key: Appointment(entry=key, day=day, begins=begins, ends=ends, what=what, where=where, guests=list(guests))
            for key, day, begins, ends, what, where, guests in _AGENDA
        },
        sheets={
            key: FullSheet(sheet=key, heading=heading, owner=_ME, edited=edited, readers=[], text=text)
            for key, heading, edited, text in _SHEETS
        },
        chores={key: Chore(chore=key, what=what, due=due, done=done) for key, what, due, done in _CHORES},
    )
