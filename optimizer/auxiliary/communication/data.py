"""What the communication environment begins with: the team of an observatory. All of it is invented."""

from memorydojo.optimizer.auxiliary.communication.model import (
    CommunicationState,
    Member,
    Page,
    Poll,
    Post,
    Presence,
    Room,
    Whisper,
)

_ME = "Isaura Brightwater"

_MEMBERS = (
    (_ME, "schedules the telescopes", "Atlantic/Azores", "Ridge 2", ""),
    ("Cassius Okwuosa", "mirror coating", "Atlantic/Azores", "Workshop", ""),
    ("Dagny Silvertree", "night operator", "Atlantic/Azores", "Dome A", "sleeps until 13:00"),
    ("Emeric Valdottir", "data pipelines", "Europe/Ljubljana", "remote", ""),
    ("Fenella Achterberg", "visitors and schools", "Atlantic/Azores", "Gatehouse", "on leave until 2031-03-17"),
    ("Ghislaine Tamboura", "spectrograph", "Africa/Dakar", "remote", ""),
    ("Hyacinth Rosenkranz", "director", "Atlantic/Azores", "Ridge 1", ""),
    ("Ignatius Pellworm", "kitchen and stores", "Atlantic/Azores", "Canteen", ""),
    ("Jessamy Duquesne-Ito", "night operator", "Atlantic/Azores", "Dome B", "sleeps until 13:00"),
)

_ROOMS = (
    ("dome-talk", "what the domes are up to", (0, 1, 2, 5, 6, 8)),
    ("pipeline-leaks", "data that went missing", (0, 3, 5)),
    ("soup-of-the-day", "canteen", (0, 1, 2, 4, 6, 7, 8)),
    ("school-visits", "classes that come up the hill", (0, 4, 6)),
    ("mirror-shop", "coating runs", (0, 1, 6)),
)

_POSTS = (
    ("p-11", "dome-talk", "2031-03-09", 2, "Seeing was 0.62 arcseconds until two, then cirrus from the west."),
    ("p-12", "dome-talk", "2031-03-10", 8, "The shutter of B stuck at 40 percent. Grease helped. A new belt is due."),
    ("p-13", "dome-talk", "2031-03-10", 1, "The belt costs 215 euros and is six days away. I have one in the shop."),
    ("p-14", "dome-talk", "2031-03-11", 2, "Best night of the year: 0.48 arcseconds at 03:15. Goosebumps."),
    ("p-15", "dome-talk", "2031-03-12", 6, "The funding board visits on 2 April. Both domes are to be presentable."),
    ("p-21", "pipeline-leaks", "2031-03-08", 3, "1,204 frames of 6 March have no header. The clock card had died."),
    ("p-22", "pipeline-leaks", "2031-03-09", 5, "The spectra of that night are whole: 318 of them, all with headers."),
    ("p-23", "pipeline-leaks", "2031-03-11", 3, "The clock card is replaced; 1,150 headers could be rebuilt."),
    (
        "p-31",
        "soup-of-the-day",
        "2031-03-10",
        7,
        "Lentils with cumin. Wednesday: fish. Thursday: pumpkin, chestnut.",
    ),
    ("p-32", "soup-of-the-day", "2031-03-11", 8, "Could there be something without onions one day? My stomach thanks."),
    (
        "p-41",
        "school-visits",
        "2031-03-05",
        4,
        "19 March: Escola da Ribeira, 26 pupils, 10:00. 21 March: 14 scouts.",
    ),
    ("p-42", "school-visits", "2031-03-06", 6, "Nobody on the catwalk below the age of ten, as the insurer says."),
    (
        "p-51",
        "mirror-shop",
        "2031-03-07",
        1,
        "Run 88: reflectivity 91.2 percent. Run 89: 93.7 with new pumps.",
    ),
    ("p-52", "mirror-shop", "2031-03-11", 1, "Run 90 is on 20 March. The tank is booked from 08:00."),
)

_WHISPERS = (
    ("w-61", 5, 0, "2031-03-10", "Hello Isaura, my grating arrives on 27 March. Which half night could I have then?"),
    ("w-62", 6, 0, "2031-03-11", "The clearest number of the week for the board, please: what was it and when?"),
    ("w-63", 3, 0, "2031-03-11", "Between us: the clock card was my fault. I had left the heater on."),
    ("w-64", 0, 1, "2031-03-09", "Cassius, is the tank free in the third week of March?"),
    ("w-65", 1, 0, "2031-03-09", "It is, from the 18th on. The run itself takes five hours."),
)

_PAGES = (
    (
        "pg-71",
        "Half nights in March",
        0,
        "Who has which half of the night.\n25 March: first Okwuosa tests, second free.\n26 March: both Silvertree.\n"
        "27 March: first outreach, second free.\n28 March: closed for new moon maintenance.",
    ),
    (
        "pg-72",
        "Guide for new operators",
        8,
        "Dew point within two degrees: close. Wind above 54 km/h: close. Ring the director only for fire, a fall or "
        "a comet. The spare key of dome B hangs behind the barometer.",
    ),
    (
        "pg-73",
        "Coating log",
        1,
        "Run 86: 90.1\nRun 87: 90.8\nRun 88: 91.2\nRun 89: 93.7",
    ),
    (
        "pg-74",
        "What visitors ask",
        4,
        "How far can you see? Is it cold? May I touch it? The answer to the last one is no. Groups above 20 are split.",
    ),
)

_POLLS = (
    ("pl-81", "soup-of-the-day", "Which soup on board day?", {"Kale": (1, 7), "Fennel": (2,), "Chestnut": (8, 6)}),
    ("pl-82", "dome-talk", "Name of the new camera?", {"Moth": (2, 5), "Lynx": (1,), "Owl": (8,)}),
)


def _who(number: int) -> str:
    return _MEMBERS[number][0]


def initial_state() -> CommunicationState:
    """A new state."""
    return CommunicationState(
        rooms={
            name: Room(room=name, topic=topic, members=[_who(n) for n in members]) for name, topic, members in _ROOMS
        },
        posts={
            key: Post(post=key, room=room, day=day, author=_who(author), words=words, pinned=False)
            for key, room, day, author, words in _POSTS
        },
        whispers={
            key: Whisper(whisper=key, author=_who(author), to=_who(to), day=day, words=words)
            for key, author, to, day, words in _WHISPERS
        },
        members={
            name: Member(name=name, task=task, zone=zone, desk=desk, away=away)
            for name, task, zone, desk, away in _MEMBERS
        },
        pages={
            key: Page(page=key, heading=heading, keeper=_who(keeper), words=words)
            for key, heading, keeper, words in _PAGES
        },
        polls={
            key: Poll(
                poll=key,
                room=room,
                question=question,
                votes={choice: [_who(n) for n in voters] for choice, voters in votes.items()},
            )
            for key, room, question, votes in _POLLS
        },
        presence={"me": Presence(words="in the office", until="")},
    )
