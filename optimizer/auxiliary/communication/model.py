"""The state of the communication environment, and the functions that read and change it."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Record, State, find


class Room(Record):
    """A room of the chat."""

    room: str
    topic: str
    members: list[str]


class Post(Record):
    """Something that was said in a room."""

    post: str
    room: str
    day: str
    author: str
    words: str
    pinned: bool


class Whisper(Record):
    """Something that was said to one person."""

    whisper: str
    author: str
    to: str
    day: str
    words: str


class Member(Record):
    """Somebody in the chat."""

    name: str
    task: str
    zone: str
    desk: str
    away: str


class PageLine(Record):
    """A shared page in a list."""

    page: str
    heading: str
    keeper: str


class Page(PageLine):
    """A shared page with its text."""

    words: str


class Poll(Record):
    """A question with the votes so far."""

    poll: str
    room: str
    question: str
    votes: dict[str, list[str]]


class Reminder(Record):
    """A reminder."""

    reminder: str
    day: str
    at: str
    about: str


class Presence(Record):
    """What others see about the user."""

    words: str
    until: str


class CommunicationState(State):
    """The state of the communication environment."""

    rooms: dict[str, Room] = Field(default_factory=dict)
    posts: dict[str, Post] = Field(default_factory=dict)
    whispers: dict[str, Whisper] = Field(default_factory=dict)
    members: dict[str, Member] = Field(default_factory=dict)
    pages: dict[str, Page] = Field(default_factory=dict)
    polls: dict[str, Poll] = Field(default_factory=dict)
    reminders: dict[str, Reminder] = Field(default_factory=dict)
    presence: dict[str, Presence] = Field(default_factory=dict)
    today: str = "2031-03-12"
    me: str = "Isaura Brightwater"


def rooms(state: CommunicationState) -> list[Room]:
    """All rooms."""
    return list(state.rooms.values())


def history(state: CommunicationState, room: str) -> list[Post]:
    """What was said in a room."""
    name = find(state.rooms, room, "room").room
    return [post for post in state.posts.values() if post.room == name]


def search_posts(state: CommunicationState, words: str) -> list[Post]:
    """What was said in any room and holds a text."""
    return [p for p in state.posts.values() if words.casefold() in f"{p.author} {p.words}".casefold()]


def speak(state: CommunicationState, room: str, words: str) -> Post:
    """Says something in a room."""
    name = find(state.rooms, room, "room").room
    key = state.number("p-")
    state.posts[key] = Post(post=key, room=name, day=state.today, author=state.me, words=words, pinned=False)
    return state.posts[key]


def pin(state: CommunicationState, post: str) -> Post:
    """Pins something that was said."""
    found = find(state.posts, post, "post")
    found.pinned = True
    return found


def whispers(state: CommunicationState, name: str = "") -> list[Whisper]:
    """What was said in private, with one person or with all."""
    wanted = name.casefold()
    return [w for w in state.whispers.values() if wanted in f"{w.author} {w.to}".casefold()]


def whisper(state: CommunicationState, recipient: str, body: str) -> Whisper:
    """Says something to one person. People outside the team are reached as guests, under the name that is given."""
    wanted = recipient.strip().casefold()
    if not wanted:
        raise ValueError("a private thread needs somebody to go to")
    known = [m.name for m in state.members.values() if wanted in (m.name.casefold(), m.name.split()[0].casefold())]
    key = state.number("w-")
    state.whispers[key] = Whisper(
        whisper=key, author=state.me, to=known[0] if known else recipient.strip(), day=state.today, words=body
    )
    return state.whispers[key]


def members(state: CommunicationState, words: str = "") -> list[Member]:
    """The people in the chat whose name or task holds a text."""
    return [m for m in state.members.values() if words.casefold() in f"{m.name} {m.task}".casefold()]


def open_room(state: CommunicationState, room: str, topic: str) -> Room:
    """Opens a room, with the user in it."""
    if room.casefold() in (name.casefold() for name in state.rooms):
        raise ValueError(f"there is a room {room!r} already")
    state.rooms[room] = Room(room=room, topic=topic, members=[state.me])
    return state.rooms[room]


def let_in(state: CommunicationState, room: str, name: str) -> Room:
    """Lets a member into a room."""
    found, member = find(state.rooms, room, "room"), find(state.members, name, "member").name
    if member in found.members:
        raise ValueError(f"{member} is in {found.room} already")
    found.members = [*found.members, member]
    return found


def put_out(state: CommunicationState, room: str, name: str) -> Room:
    """Takes a member out of a room."""
    found, member = find(state.rooms, room, "room"), find(state.members, name, "member").name
    if member not in found.members:
        raise ValueError(f"{member} is not in {found.room}")
    found.members = [one for one in found.members if one != member]
    return found


def set_topic(state: CommunicationState, room: str, topic: str) -> Room:
    """Gives a room another topic."""
    found = find(state.rooms, room, "room")
    found.topic = topic
    return found


def pages(state: CommunicationState) -> list[PageLine]:
    """The shared pages, without their text."""
    return [PageLine.model_validate(page.model_dump(exclude={"words"})) for page in state.pages.values()]


def read_page(state: CommunicationState, page: str) -> Page:
    """One shared page with its text."""
    return find(state.pages, page, "page")


def extend_page(state: CommunicationState, page: str, line: str) -> Page:
    """Adds a line to a shared page."""
    found = find(state.pages, page, "page")
    found.words = f"{found.words}\n{line}"
    return found


def polls(state: CommunicationState) -> list[Poll]:
    """The polls with the votes so far."""
    return list(state.polls.values())


def vote(state: CommunicationState, poll: str, choice: str) -> Poll:
    """Votes in a poll; an earlier vote is taken back."""
    found = find(state.polls, poll, "poll")
    chosen = {name.casefold(): name for name in found.votes}.get(choice.strip().casefold())
    if chosen is None:
        raise ValueError(f"the choices are: {', '.join(found.votes)}")
    kept = {name: [one for one in voters if one != state.me] for name, voters in found.votes.items()}
    kept[chosen] = [*kept[chosen], state.me]
    found.votes = kept
    return found


def remind(state: CommunicationState, day: str, at: str, about: str) -> Reminder:
    """Notes a reminder."""
    key = state.number("r-")
    state.reminders[key] = Reminder(reminder=key, day=day, at=at, about=about)
    return state.reminders[key]


def presence(state: CommunicationState, words: str, until: str) -> Presence:
    """Says what others see about the user."""
    state.presence["me"] = Presence(words=words, until=until)
    return state.presence["me"]
