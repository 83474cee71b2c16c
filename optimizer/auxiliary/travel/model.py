"""The state of the travel environment, and the functions that read and change it."""

from pydantic import Field

from memorydojo.optimizer.auxiliary._base import Record, State, find


class Inn(Record):
    """A place to sleep, in a list."""

    inn: str
    town: str
    night: float
    score: float
    quarter: str


class FullInn(Inn):
    """A place to sleep with everything that is known about it."""

    breakfast: bool
    pets: bool
    free_until_days: int
    said: list[str]


class Connection(Record):
    """A boat, train or coach."""

    code: str
    kind: str
    origin: str
    goal: str
    day: str
    leaves: str
    arrives: str
    fare: float
    bikes: bool


class Eatery(Record):
    """A place to eat, in a list."""

    eatery: str
    town: str
    kitchen: str
    main_course: float
    score: float


class FullEatery(Eatery):
    """A place to eat with everything that is known about it."""

    hours: str
    closed_on: str
    diets: list[str]
    said: list[str]


class Sight(Record):
    """Something to see."""

    sight: str
    town: str
    hours: str
    entry: float
    note: str


class Forecast(Record):
    """The weather of a day."""

    town: str
    day: str
    sky: str
    high: int
    rain_percent: int


class Stay(Record):
    """Nights that are booked."""

    stay: str
    inn: str
    arrival: str
    departure: str
    guests: int


class Ticket(Record):
    """A passage that is booked."""

    ticket: str
    code: str
    travellers: int
    bikes: int


class Table(Record):
    """A table that is kept."""

    table: str
    eatery: str
    day: str
    at: str
    seats: int


class Stop(Record):
    """A line of the traveller's plan."""

    stop: str
    day: str
    what: str


class Traveller(Record):
    """What is known about the traveller."""

    name: str
    diet: str
    seat: str
    budget_a_night: float
    companions: list[str]


class TravelState(State):
    """The state of the travel environment."""

    inns: dict[str, FullInn] = Field(default_factory=dict)
    connections: dict[str, Connection] = Field(default_factory=dict)
    eateries: dict[str, FullEatery] = Field(default_factory=dict)
    sights: dict[str, Sight] = Field(default_factory=dict)
    weather: dict[str, Forecast] = Field(default_factory=dict)
    stays: dict[str, Stay] = Field(default_factory=dict)
    tickets: dict[str, Ticket] = Field(default_factory=dict)
    tables: dict[str, Table] = Field(default_factory=dict)
    plan: dict[str, Stop] = Field(default_factory=dict)
    traveller: dict[str, Traveller] = Field(default_factory=dict)
    today: str = "2031-06-30"


def _in_town(place: str, town: str) -> bool:
    return place.casefold() == town.strip().casefold()


def inns(state: TravelState, town: str, at_most: float = 0) -> list[Inn]:
    """The inns of a town, up to a price if it is given."""
    found = [i for i in state.inns.values() if _in_town(i.town, town) and (not at_most or i.night <= at_most)]
    return [Inn.model_validate({name: getattr(inn, name) for name in Inn.model_fields}) for inn in found]


def inn(state: TravelState, inn: str) -> FullInn:
    """Everything about one inn."""
    return find(state.inns, inn, "inn")


def connections(state: TravelState, origin: str, goal: str, day: str = "") -> list[Connection]:
    """Boats, trains and coaches from one town to another."""
    return [
        c
        for c in state.connections.values()
        if _in_town(c.origin, origin) and _in_town(c.goal, goal) and c.day.startswith(day)
    ]


def eateries(state: TravelState, town: str) -> list[Eatery]:
    """The places to eat in a town."""
    found = [e for e in state.eateries.values() if _in_town(e.town, town)]
    return [Eatery.model_validate({name: getattr(e, name) for name in Eatery.model_fields}) for e in found]


def eatery(state: TravelState, eatery: str) -> FullEatery:
    """Everything about one place to eat."""
    return find(state.eateries, eatery, "place to eat")


def sights(state: TravelState, town: str) -> list[Sight]:
    """What there is to see in a town."""
    return [s for s in state.sights.values() if _in_town(s.town, town)]


def forecast(state: TravelState, town: str) -> list[Forecast]:
    """The weather in a town on the coming days."""
    return [w for w in state.weather.values() if _in_town(w.town, town)]


def stays(state: TravelState) -> list[Stay]:
    """The nights that are booked."""
    return list(state.stays.values())


def take_room(state: TravelState, inn: str, arrival: str, departure: str, guests: int = 1) -> Stay:
    """Books nights in an inn."""
    name = find(state.inns, inn, "inn").inn
    if not arrival < departure:
        raise ValueError("the departure must be after the arrival")
    key = state.number("st-")
    state.stays[key] = Stay(stay=key, inn=name, arrival=arrival, departure=departure, guests=guests)
    return state.stays[key]


def give_up_room(state: TravelState, stay: str) -> str:
    """Gives up booked nights."""
    found = find(state.stays, stay, "stay")
    del state.stays[found.stay]
    return f"The stay {found.stay} at {found.inn} is given up."


def tickets(state: TravelState) -> list[Ticket]:
    """The passages that are booked."""
    return list(state.tickets.values())


def take_passage(state: TravelState, code: str, travellers: int, bikes: int = 0) -> Ticket:
    """Books seats on a boat, train or coach."""
    found = find(state.connections, code, "connection")
    if bikes and not found.bikes:
        raise ValueError(f"{found.code} takes no bikes")
    key = state.number("tk-")
    state.tickets[key] = Ticket(ticket=key, code=found.code, travellers=travellers, bikes=bikes)
    return state.tickets[key]


def hold_table(state: TravelState, eatery: str, day: str, at: str, seats: int) -> Table:
    """Keeps a table."""
    name = find(state.eateries, eatery, "place to eat").eatery
    key = state.number("tb-")
    state.tables[key] = Table(table=key, eatery=name, day=day, at=at, seats=seats)
    return state.tables[key]


def plan(state: TravelState) -> list[Stop]:
    """The traveller's plan."""
    return sorted(state.plan.values(), key=lambda stop: stop.day)


def add_stop(state: TravelState, day: str, what: str) -> Stop:
    """Puts a line into the plan."""
    key = state.number("sp-")
    state.plan[key] = Stop(stop=key, day=day, what=what)
    return state.plan[key]


def drop_stop(state: TravelState, stop: str) -> str:
    """Takes a line out of the plan."""
    found = find(state.plan, stop, "line of the plan")
    del state.plan[found.stop]
    return f"{found.what} on {found.day} is no longer planned."


def traveller(state: TravelState) -> Traveller:
    """What is known about the traveller."""
    return state.traveller["traveller"]


def set_budget(state: TravelState, night: float) -> Traveller:
    """Says how much a night may cost."""
    state.traveller["traveller"].budget_a_night = round(night, 2)
    return state.traveller["traveller"]
