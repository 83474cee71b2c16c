"""The tasks of the workspace environment."""

from memorydojo import matching
from memorydojo.optimizer.auxiliary._base import step
from memorydojo.optimizer.auxiliary._tasks import Removed, Template, added, changed
from memorydojo.optimizer.auxiliary.workspace import model as w

TEMPLATES = (
    Template(
        "aux-ws-01",
        "information retrieval",
        "find a figure in a document",
        "How many kilos of mulberry fibre did we have left when August ended?",
        (step(w.sheets, words="mulberry"), step(w.read_sheet, sheet="d-21")),
        "At the end of August there were 615 kg of mulberry fibre left.",
        says=("615",),
    ),
    Template(
        "aux-ws-02",
        "information retrieval",
        "look up how to reach somebody",
        "I have to ring whoever deals with safety here. Who is that, and under which number?",
        (step(w.people, name="safety"),),
        "That is Siobhan Vartanyan, +44 555 317.",
        says=("Siobhan Vartanyan", "555 317"),
    ),
    Template(
        "aux-ws-03",
        "information retrieval",
        "find free time in the agenda",
        "The choir wants an hour of mine on Thursday 11 September 2031. At what time does the last thing on that day "
        "end, and what is it?",
        (step(w.agenda, first="2031-09-11"),),
        "The last thing on that day is the call with Washi Works, which ends at 16:45.",
        says=("Washi Works", ("16:45", "4:45")),
    ),
    Template(
        "aux-ws-04",
        "information retrieval",
        "find what somebody wrote about a matter",
        "What is wrong with the felt maker's invoice? I need both sums.",
        (step(w.search_mails, words="felt"), step(w.read_mail, key="m-46")),
        "Invoice FM-2290 says 1,964.00 pounds, but the order said 1,694.00: two digits are swapped.",
        says=("1964", "1694"),
    ),
    Template(
        "aux-ws-05",
        "information retrieval",
        "compare dates in a plan",
        "For which days are Ruaridh and Delphine both on leave this autumn?",
        (step(w.sheets, words="holiday"), step(w.read_sheet, sheet="d-25")),
        "Both are on leave from 6 October to 10 October.",
        says=(("6 october", "october 6", "2031-10-06", "6 to 10 october"), ("10 october", "october 10", "2031-10-10")),
    ),
    Template(
        "aux-ws-06",
        "state change",
        "put an appointment into the agenda",
        "Pencil in the lorry for Trieste: 18 September 2031, 07:30 to 08:15, at the loading bay. Call it 'Trieste "
        "load'.",
        (
            step(
                w.add_appointment,
                what="Trieste load",
                day="2031-09-18",
                begins="07:30",
                ends="08:15",
                where="Loading bay",
            ),
        ),
        "The Trieste load is in the agenda for 18 September, 07:30 to 08:15.",
        effects=(
            added(
                "agenda",
                what=matching.containing("Trieste"),
                day="2031-09-18",
                begins="07:30",
                ends="08:15",
                where=matching.containing("loading bay"),
            ),
        ),
    ),
    Template(
        "aux-ws-07",
        "state change",
        "sort the inbox",
        "Somebody keeps advertising pulp at a discount. Put that email into the folder 'rubbish', I do not want to "
        "see it again.",
        (step(w.search_mails, words="pulp"), step(w.move_mail, key="m-45", folder="rubbish")),
        "The advertisement is in the folder rubbish.",
        effects=(changed("mails", "m-45", folder="rubbish"),),
    ),
    Template(
        "aux-ws-08",
        "state change",
        "keep the list of things to do",
        "I have fixed the deckle on mould 6. Cross it off, and note 'Buy beeswax' for 22 September 2031.",
        (
            step(w.chores),
            step(w.tick_chore, chore="t-84"),
            step(w.add_chore, what="Buy beeswax", due="2031-09-22"),
        ),
        "The deckle is crossed off, and 'Buy beeswax' is on the list for 22 September.",
        effects=(
            changed("chores", "t-84", done=True),
            added("chores", what=matching.containing("beeswax"), due="2031-09-22", done=False),
        ),
    ),
    Template(
        "aux-ws-09",
        "state change",
        "send somebody a message that is given",
        "Write to Zipporah Hallow that from October on her parcels weigh ten kilos at most. The subject should be "
        "'Lighter parcels'.",
        (
            step(w.people, name="Zipporah"),
            step(
                w.write_mail,
                recipients=["z.hallow@hallowpress.example"],
                subject="Lighter parcels",
                body="Dear Zipporah, from October on your parcels weigh ten kilos at most. Yours, Hedda",
            ),
        ),
        "Zipporah knows that her parcels weigh ten kilos at most from October on.",
        effects=(
            added(
                "mails",
                folder="sent",
                to=matching.email("z.hallow@hallowpress.example"),
                subject=matching.containing("lighter parcels"),
                text=matching.containing("october"),
            ),
        ),
    ),
    Template(
        "aux-ws-10",
        "combination",
        "move an appointment because of a message",
        "Ruaridh says that the guild's tour cannot be on Thursday. Read why, and move the tour to the day that he "
        "proposes. Tell me the new day.",
        (
            step(w.search_mails, words="tour"),
            step(w.read_mail, key="m-47"),
            step(w.agenda, first="2031-09-11"),
            step(w.move_appointment, entry="a-64", day="2031-09-15", begins="13:00", ends="14:30"),
        ),
        "The vat room is being painted; the tour is on Monday 15 September now, at the same hour.",
        says=(("15 september", "september 15", "2031-09-15", "the 15th"),),
        effects=(changed("agenda", "a-64", day="2031-09-15"),),
    ),
    Template(
        "aux-ws-11",
        "combination",
        "answer an inquiry from a price list",
        "Perpetua asks for mulberry stock. Work out from our autumn price list what one ream of the 90 gram comes to "
        "with the reduction for her quantity, and email her the price under the subject 'Mulberry quote'.",
        (
            step(w.search_mails, words="mulberry"),
            step(w.read_mail, key="m-41"),
            step(w.read_sheet, sheet="d-22"),
            step(
                w.write_mail,
                recipients=["p.nakamori@washiworks.example"],
                subject="Mulberry quote",
                body="Dear Perpetua, for 340 reams of the 90 gram mulberry stock a ream is 11.59 pounds. Yours, Hedda",
            ),
        ),
        "A ream comes to 11.59 pounds with the reduction of 5 percent; Perpetua has the quote.",
        says=("11.59",),
        effects=(
            added(
                "mails",
                folder="sent",
                to=matching.email("p.nakamori@washiworks.example"),
                subject=matching.containing("mulberry quote"),
                text=matching.containing("11.59"),
            ),
        ),
    ),
    Template(
        "aux-ws-12",
        "combination",
        "give an outsider what was asked for",
        "Our auditor wants to look at something. See what it is and let him read it; he needs nothing else.",
        (
            step(w.search_mails, words="audit"),
            step(w.read_mail, key="m-44"),
            step(w.sheets, words="stock"),
            step(w.open_sheet_to, sheet="d-21", address="teodor@lindqvistrao.example"),
        ),
        "The auditor can read the stock count of August now.",
        effects=(changed("sheets", "d-21", readers=["teodor@lindqvistrao.example"]),),
    ),
    Template(
        "aux-ws-13",
        "combination",
        "turn minutes into a task or an appointment",
        "When does the works council meet next? Put an hour for it into the agenda from 10:00, called 'Works council'.",
        (
            step(w.sheets, words="works council"),
            step(w.read_sheet, sheet="d-23"),
            step(w.add_appointment, what="Works council", day="2031-09-22", begins="10:00", ends="11:00"),
        ),
        "The works council meets on 22 September; it is in the agenda from 10:00 to 11:00.",
        says=(("22 september", "september 22", "2031-09-22"),),
        effects=(
            added("agenda", what=matching.containing("works council"), day="2031-09-22", begins="10:00", ends="11:00"),
        ),
    ),
    Template(
        "aux-ws-14",
        "combination",
        "write down what messages ask for",
        "Siobhan needs something for the inspection. Begin a document 'Safety order' that says which model and how "
        "many pairs.",
        (
            step(w.search_mails, words="inspection"),
            step(w.read_mail, key="m-43"),
            step(w.new_sheet, heading="Safety order", content="QuietShell 31, 24 pairs"),
        ),
        "The document 'Safety order' lists 24 pairs of QuietShell 31.",
        effects=(
            added(
                "sheets",
                heading=matching.containing("safety order"),
                text=lambda value: all(part in str(value) for part in ("QuietShell 31", "24")),
            ),
        ),
    ),
    Template(
        "aux-ws-15",
        "state change",
        "call an appointment off",
        "I have lost my voice, so no singing for me on the 17th. Take the rehearsal out of my agenda.",
        (step(w.agenda, first="2031-09-17"), step(w.drop_appointment, entry="a-68")),
        "The rehearsal on 17 September is no longer in the agenda.",
        effects=(Removed("agenda", "a-68"),),
    ),
    Template(
        "aux-ws-16",
        "combination",
        "add to a document what a message brings",
        "Our haulier has written when his lorry comes. Look it up in what came in, and add to the visitor checklist: "
        "'- no tour at the loading bay on' and then the day and the month.",
        (
            step(w.mails, folder="in"),
            step(w.read_mail, key="m-42"),
            step(w.sheets, words="tour"),
            step(w.extend_sheet, sheet="d-24", line="- no tour at the loading bay on 18 September"),
        ),
        "The checklist says now that there is no tour at the loading bay on 18 September.",
        effects=(
            changed(
                "sheets",
                "d-24",
                text=lambda value: (
                    str(value).startswith("Before a tour:")
                    and "no tour at the loading bay on 18 September" in str(value)
                ),
            ),
        ),
    ),
)
