"""What an agent can do in the communication environment, and how it may be called."""

from memorydojo.optimizer.auxiliary._base import Capability, named
from memorydojo.optimizer.auxiliary.communication import model

WHISPER = Capability(
    model.whisper,
    ("message_member", "ping_person", "notify_person", "text_colleague", "deliver_dm", "dm_person"),
    (
        "Sends a direct message to one person, in private; guests outside the team are reached by name too.",
        "Says something to one person only. Names that are not in the team reach guests.",
    ),
    {
        "recipient": named("recipient", "user", text="The name of the person", also="Who gets it"),
        "body": named("body", "text", "message", "content", text="What to say", also="The words of the message"),
    },
    changes=True,
)

_ROOM = named("room", "room_name", "place", text="The name of the room")
_PAGE = named("page", "page_key", "sheet", text="The key of the page")
_MEMBER = named("member", "name", "who", text="The name of the member")

CAPABILITIES = (
    Capability(
        model.rooms,
        ("list_rooms", "room_directory", "show_rooms", "all_rooms"),
        ("Lists the rooms with topic and members.", "Which rooms there are and who is in them."),
        {},
    ),
    Capability(
        model.history,
        ("room_history", "open_room_log", "scroll_room", "view_room"),
        ("Shows what was said in a room.", "The posts of one room, oldest first."),
        {"room": _ROOM},
    ),
    Capability(
        model.search_posts,
        ("find_posts", "search_rooms", "scan_posts", "match_posts"),
        ("Finds posts in all rooms by a text.", "Searches what was said, or who said it."),
        {"words": named("words", "phrase", "needle", text="The text to look for")},
    ),
    Capability(
        model.speak,
        ("speak_in_room", "announce_in_room", "broadcast_to_room", "say_in_room"),
        ("Says something in a room, for all who are in it.", "Puts a post into a room."),
        {"room": _ROOM, "words": named("words", "utterance", "announcement", text="What to say")},
        changes=True,
    ),
    Capability(
        model.pin,
        ("pin_post", "stick_post", "keep_post_on_top", "fasten_post"),
        ("Pins a post in its room.", "Keeps a post on top of its room."),
        {"post": named("post", "post_key", text="The key of the post")},
        changes=True,
    ),
    Capability(
        model.whispers,
        ("private_threads", "list_private_threads", "show_whispers", "one_to_one_log"),
        ("Shows private messages, with one person or with all.", "What was said between the user and one other."),
        {"name": named("with_whom", "partner", "name_part", text="Part of a name; empty for all")},
    ),
    WHISPER,
    Capability(
        model.members,
        ("member_directory", "find_member", "list_members", "look_up_member"),
        ("Lists members with task, time zone, desk and absence.", "Who is in the team, or the part that matches."),
        {"words": named("words", "name_part", "filter", text="Part of a name or task; empty for all")},
    ),
    Capability(
        model.open_room,
        ("open_room", "start_room", "found_room", "launch_room"),
        ("Opens a new room.", "Makes a room with a topic; the user is its first member."),
        {"room": _ROOM, "topic": named("topic", "subject_line", text="What the room is for")},
        changes=True,
    ),
    Capability(
        model.let_in,
        ("let_into_room", "admit_to_room", "bring_into_room", "welcome_to_room"),
        ("Lets a member into a room.", "Makes somebody a member of a room."),
        {"room": _ROOM, "name": named("member", "newcomer", text="The full name of the member")},
        changes=True,
    ),
    Capability(
        model.put_out,
        ("take_out_of_room", "put_out_of_room", "dismiss_from_room", "unseat_from_room"),
        ("Takes a member out of a room.", "Ends somebody's membership of a room."),
        {"room": _ROOM, "name": _MEMBER},
        changes=True,
    ),
    Capability(
        model.set_topic,
        ("retitle_room", "give_room_topic", "rename_topic", "state_topic"),
        ("Gives a room another topic.", "Says what a room is for."),
        {"room": _ROOM, "topic": named("topic", "new_topic", text="The new topic")},
        changes=True,
    ),
    Capability(
        model.pages,
        ("list_pages", "page_index", "shared_pages", "browse_pages"),
        ("Lists the shared pages without their text.", "Which pages the team keeps."),
        {},
    ),
    Capability(
        model.read_page,
        ("open_page", "view_page", "page_text", "fetch_page"),
        ("Shows one shared page with its text.", "The whole text of a page."),
        {"page": _PAGE},
    ),
    Capability(
        model.extend_page,
        ("extend_page", "continue_page", "jot_on_page", "lengthen_page"),
        ("Adds a line to a shared page.", "Continues a page that the team keeps."),
        {"page": _PAGE, "line": named("line", "new_line", text="The line to add")},
        changes=True,
    ),
    Capability(
        model.polls,
        ("list_polls", "open_polls", "poll_standings", "show_polls"),
        ("Lists the polls with the votes so far.", "What is being voted on, and who voted how."),
        {},
    ),
    Capability(
        model.vote,
        ("cast_vote", "vote_in_poll", "choose_in_poll", "answer_poll"),
        ("Votes in a poll.", "Gives the user's voice to one of the choices."),
        {
            "poll": named("poll", "poll_key", text="The key of the poll"),
            "choice": named("choice", "option", text="The choice"),
        },
        changes=True,
    ),
    Capability(
        model.remind,
        ("remind_me", "jog_memory", "plan_reminder", "set_alarm_note"),
        ("Notes a reminder for the user.", "Reminds the user of something at a time."),
        {
            "day": named("day", "on_day", text="The day, as YYYY-MM-DD"),
            "at": named("at", "hour", text="The time, as HH:MM"),
            "about": named("about", "matter", text="What to be reminded of"),
        },
        changes=True,
    ),
    Capability(
        model.presence,
        ("declare_presence", "show_as", "state_presence", "signal_presence"),
        ("Says what others see about the user.", "Shows the team where the user is or what they do."),
        {
            "words": named("words", "line", text="What others see"),
            "until": named("until", "up_to", text="The last day, as YYYY-MM-DD"),
        },
        changes=True,
    ),
)
