"""The tasks of the communication environment."""

from memorydojo import matching
from memorydojo.optimizer.auxiliary._base import step
from memorydojo.optimizer.auxiliary._tasks import Template, added, changed
from memorydojo.optimizer.auxiliary.communication import model as c

_ME = "Isaura Brightwater"

TEMPLATES = (
    Template(
        "aux-cm-01",
        "information retrieval",
        "find a figure in a room",
        "What was the best seeing that was reported in dome-talk this month, and at what hour?",
        (step(c.history, room="dome-talk"),),
        "The best seeing was 0.48 arcseconds at 03:15.",
        says=("0.48", ("03:15", "3:15")),
    ),
    Template(
        "aux-cm-02",
        "information retrieval",
        "look up when somebody can be reached",
        "I would like to drop by the two night operators in person. In which domes do they sit, and from what time on "
        "are they awake?",
        (step(c.members, words="night operator"),),
        "Dagny Silvertree is in Dome A and Jessamy Duquesne-Ito in Dome B; both sleep until 13:00.",
        says=("Dome A", "Dome B", ("13:00", "1 pm", "1:00")),
    ),
    Template(
        "aux-cm-03",
        "information retrieval",
        "sum up a matter that was discussed",
        "Of the frames that lost their headers, how many are still without one?",
        (step(c.search_posts, words="headers"), step(c.history, room="pipeline-leaks")),
        "1,204 frames had lost their headers and 1,150 were rebuilt, so 54 are still without one.",
        says=("54",),
    ),
    Template(
        "aux-cm-04",
        "information retrieval",
        "find a rule on a shared page",
        "Above which wind do we close the domes, and where is the spare key of B?",
        (step(c.pages), step(c.read_page, page="pg-72")),
        "The domes close above 54 km/h; the spare key of dome B hangs behind the barometer.",
        says=("54", "barometer"),
    ),
    Template(
        "aux-cm-05",
        "information retrieval",
        "count votes",
        "How do the votes on the name of the camera stand? Which name leads?",
        (step(c.polls),),
        "Moth leads with two votes; Lynx and Owl have one each.",
        says=("Moth", ("two", "2")),
    ),
    Template(
        "aux-cm-06",
        "state change",
        "say something to everybody in a room",
        "Let the people in soup-of-the-day know that the coffee machine is being descaled until noon.",
        (step(c.speak, room="soup-of-the-day", words="The coffee machine is being descaled until noon."),),
        "The room soup-of-the-day knows about the coffee machine.",
        effects=(
            added(
                "posts",
                room="soup-of-the-day",
                author=_ME,
                words=lambda value: all(part in str(value).casefold() for part in ("coffee", "descal", "noon")),
            ),
        ),
    ),
    Template(
        "aux-cm-07",
        "state change",
        "say something to one person",
        "Tell Cassius in private that the tank is his from the 18th on.",
        (step(c.whisper, recipient="Cassius Okwuosa", body="The tank is yours from the 18th on."),),
        "Cassius knows that the tank is his from the 18th on.",
        effects=(
            added(
                "whispers",
                author=_ME,
                to="Cassius Okwuosa",
                words=lambda value: all(part in str(value) for part in ("tank", "18")),
            ),
        ),
    ),
    Template(
        "aux-cm-08",
        "state change",
        "open a room and bring people in",
        "The funding board comes in April. Open a room 'board-day' with the topic 'visit of 2 April', and bring the "
        "director in.",
        (
            step(c.members, words="director"),
            step(c.open_room, room="board-day", topic="visit of 2 April"),
            step(c.let_in, room="board-day", name="Hyacinth Rosenkranz"),
        ),
        "The room board-day is open, with Hyacinth Rosenkranz in it.",
        effects=(
            added(
                "rooms",
                room="board-day",
                topic=matching.containing("2 April"),
                members=[_ME, "Hyacinth Rosenkranz"],
            ),
        ),
    ),
    Template(
        "aux-cm-09",
        "state change",
        "show others where one is",
        "I am at the coast with the survey crew until 2031-03-15. Have the chat say 'at the coast'.",
        (step(c.presence, words="at the coast", until="2031-03-15"),),
        "Others see 'at the coast' until 2031-03-15.",
        effects=(changed("presence", "me", words=matching.containing("at the coast"), until="2031-03-15"),),
    ),
    Template(
        "aux-cm-10",
        "combination",
        "answer a private question after looking it up",
        "The director wants the best seeing of the week. Look for the question and for the number, and answer in "
        "private with the number and the hour.",
        (
            step(c.whispers, name="Hyacinth"),
            step(c.history, room="dome-talk"),
            step(c.whisper, recipient="Hyacinth Rosenkranz", body="It was 0.48 arcseconds at 03:15 on 11 March."),
        ),
        "Hyacinth Rosenkranz has the number: 0.48 arcseconds at 03:15.",
        effects=(
            added(
                "whispers",
                author=_ME,
                to="Hyacinth Rosenkranz",
                words=lambda value: all(part in str(value) for part in ("0.48", "3:15")),
            ),
        ),
    ),
    Template(
        "aux-cm-11",
        "combination",
        "bring a shared page up to date from a room",
        "Is there a result of a coating run in mirror-shop that the coating log lacks? If a run is only announced, put "
        "'Run 90: planned for 20 March' on the page.",
        (
            step(c.history, room="mirror-shop"),
            step(c.pages),
            step(c.read_page, page="pg-73"),
            step(c.extend_page, page="pg-73", line="Run 90: planned for 20 March"),
        ),
        "The log holds all results; run 90 is only announced and now on the page.",
        effects=(
            changed(
                "pages",
                "pg-73",
                words=lambda value: str(value).startswith("Run 86: 90.1") and "90: planned for 20 March" in str(value),
            ),
        ),
    ),
    Template(
        "aux-cm-12",
        "combination",
        "find the time for a request and note a reminder",
        "Ghislaine asks for half a night when her grating arrives. Which half is free then? Remind me of it on that "
        "day at 09:00 with the word 'grating'.",
        (
            step(c.whispers, name="Ghislaine"),
            step(c.read_page, page="pg-71"),
            step(c.remind, day="2031-03-27", at="09:00", about="grating"),
        ),
        "On 27 March the second half is free; you will be reminded at 09:00.",
        says=("second",),
        effects=(added("reminders", day="2031-03-27", at="09:00", about=matching.containing("grating")),),
    ),
    Template(
        "aux-cm-13",
        "combination",
        "settle a vote",
        "Two soups are level in the poll for board day. Give my vote to the one of them that has nothing to do with "
        "cabbage, and tell me which.",
        (step(c.polls), step(c.vote, poll="pl-81", choice="Chestnut")),
        "Your vote went to Chestnut, which leads with three votes now.",
        says=("Chestnut",),
        effects=(
            changed(
                "polls",
                "pl-81",
                votes={
                    "Kale": ["Cassius Okwuosa", "Ignatius Pellworm"],
                    "Fennel": ["Dagny Silvertree"],
                    "Chestnut": ["Jessamy Duquesne-Ito", "Hyacinth Rosenkranz", _ME],
                },
            ),
        ),
    ),
    Template(
        "aux-cm-14",
        "combination",
        "find a post and keep it in view",
        "Somebody wrote down which classes visit us. Keep that post on top of its room, and tell me how many pupils "
        "come on the 19th.",
        (step(c.history, room="school-visits"), step(c.pin, post="p-41")),
        "The post is pinned; 26 pupils come on 19 March.",
        says=("26",),
        effects=(changed("posts", "p-41", pinned=True),),
    ),
    Template(
        "aux-cm-15",
        "state change",
        "keep a room in order",
        "Emeric has moved on to other things: take him out of pipeline-leaks, and make the topic 'headers and clocks'.",
        (
            step(c.rooms),
            step(c.put_out, room="pipeline-leaks", name="Emeric Valdottir"),
            step(c.set_topic, room="pipeline-leaks", topic="headers and clocks"),
        ),
        "Emeric is out of pipeline-leaks, whose topic is 'headers and clocks' now.",
        effects=(
            changed(
                "rooms",
                "pipeline-leaks",
                members=[_ME, "Ghislaine Tamboura"],
                topic="headers and clocks",
            ),
        ),
    ),
)
