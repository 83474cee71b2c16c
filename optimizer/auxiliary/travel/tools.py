"""What an agent can do in the travel environment, and how it may be called."""

from memorydojo.optimizer.auxiliary._base import Capability, named
from memorydojo.optimizer.auxiliary.travel import model

_TOWN = named("town", "where", "locality", text="The town")
_INN = named("inn", "lodging", "inn_name", text="The name of the inn")
_EATERY = named("eatery", "kitchen", "eatery_name", text="The name of the place to eat")
_DAY = named("day", "on_day", text="The day, as YYYY-MM-DD")

CAPABILITIES = (
    Capability(
        model.inns,
        ("inns_of_town", "list_inns", "lodgings_in", "find_lodging"),
        ("Lists places to sleep in a town with price and score.", "Where one can stay in a town, and for how much."),
        {"town": _TOWN, "at_most": named("at_most", "price_cap", text="The most that a night may cost; 0 for any")},
    ),
    Capability(
        model.inn,
        ("inn_details", "about_inn", "view_lodging", "inspect_inn"),
        ("Shows everything about a place to sleep, with what guests say.", "Breakfast, pets, terms, guests' words."),
        {"inn": _INN},
    ),
    Capability(
        model.connections,
        ("find_connections", "timetable", "list_passages", "journeys_between"),
        ("Lists boats, trains and coaches between two towns.", "When something goes from one town to another."),
        {
            "origin": named("origin", "departure_town", text="The town to start from"),
            "goal": named("goal", "arrival_town", text="The town to get to"),
            "day": named("day", "on_day", text="The day, as YYYY-MM-DD; empty for all"),
        },
    ),
    Capability(
        model.eateries,
        ("eateries_of_town", "list_eateries", "dining_places", "kitchens_in"),
        ("Lists places to eat in a town with price and score.", "Where one can eat in a town."),
        {"town": _TOWN},
    ),
    Capability(
        model.eatery,
        ("eatery_details", "about_eatery", "view_eatery", "inspect_kitchen"),
        ("Shows everything about a place to eat.", "Opening hours, diets and guests' words."),
        {"eatery": _EATERY},
    ),
    Capability(
        model.sights,
        ("list_sights", "sights_of_town", "what_to_see", "attractions_in"),
        ("Lists what there is to see in a town.", "Sights with opening hours and entry."),
        {"town": _TOWN},
    ),
    Capability(
        model.forecast,
        ("weather_outlook", "town_forecast", "coming_weather", "sky_report"),
        ("The weather in a town on the coming days.", "Sky, warmth and chance of rain, day by day."),
        {"town": _TOWN},
    ),
    Capability(
        model.stays,
        ("list_stays", "my_nights", "booked_nights", "show_stays"),
        ("Lists the nights that are booked.", "Which rooms the traveller has."),
        {},
    ),
    Capability(
        model.take_room,
        ("take_room", "secure_room", "claim_nights", "arrange_stay"),
        ("Books nights in an inn.", "Takes a room for one or more nights."),
        {
            "inn": _INN,
            "arrival": named("arrival", "first_night", text="The day of arrival, as YYYY-MM-DD"),
            "departure": named("departure", "leaving", text="The day of departure, as YYYY-MM-DD"),
            "guests": named("guests", "persons", text="How many people"),
        },
        changes=True,
    ),
    Capability(
        model.give_up_room,
        ("give_up_room", "release_room", "surrender_nights", "hand_back_room"),
        ("Gives up booked nights.", "Lets a booked room go."),
        {"stay": named("stay", "stay_key", text="The key of the stay")},
        changes=True,
    ),
    Capability(
        model.tickets,
        ("list_tickets", "my_passages", "show_tickets", "ticket_wallet"),
        ("Lists the passages that are booked.", "Which tickets the traveller has."),
        {},
    ),
    Capability(
        model.take_passage,
        ("take_passage", "buy_ticket", "obtain_ticket", "secure_seats"),
        ("Books seats on a boat, train or coach.", "Buys tickets for a connection."),
        {
            "code": named("code", "connection", text="The code of the connection"),
            "travellers": named("travellers", "persons", text="How many people"),
            "bikes": named("bikes", "bicycles", text="How many bikes come too"),
        },
        changes=True,
    ),
    Capability(
        model.hold_table,
        ("hold_table", "keep_table", "arrange_table", "request_table"),
        ("Keeps a table at a place to eat.", "Asks a place to eat for seats at a time."),
        {
            "eatery": _EATERY,
            "day": _DAY,
            "at": named("at", "hour", text="The time, as HH:MM"),
            "seats": named("seats", "persons", text="How many seats"),
        },
        changes=True,
    ),
    Capability(
        model.plan,
        ("show_plan", "itinerary", "trip_outline", "view_plan"),
        ("Shows the traveller's plan.", "What is planned, day by day."),
        {},
    ),
    Capability(
        model.add_stop,
        ("extend_plan", "plan_stop", "put_in_plan", "pencil_stop"),
        ("Puts a line into the traveller's plan.", "Plans something for a day."),
        {"day": _DAY, "what": named("what", "activity", text="What is planned")},
        changes=True,
    ),
    Capability(
        model.drop_stop,
        ("drop_stop", "strike_from_plan", "unplan_stop", "thin_plan"),
        ("Takes a line out of the traveller's plan.", "Calls something off that was planned."),
        {"stop": named("stop", "stop_key", text="The key of the line")},
        changes=True,
    ),
    Capability(
        model.traveller,
        ("traveller_profile", "who_travels", "profile_card", "travel_habits"),
        ("Shows what is known about the traveller.", "Diet, seat, budget and companions."),
        {},
    ),
    Capability(
        model.set_budget,
        ("set_night_budget", "cap_lodging", "night_allowance", "revise_budget"),
        ("Says how much a night may cost.", "Gives the traveller another budget for lodging."),
        {"night": named("night", "per_night", "allowance", text="Euros a night")},
        changes=True,
    ),
)
