"""What the travel environment begins with. Towns are real or not; everything in them is invented."""

from memorydojo.optimizer.auxiliary.travel.model import (
    Connection,
    Forecast,
    FullEatery,
    FullInn,
    Sight,
    Stay,
    Stop,
    Table,
    Ticket,
    Traveller,
    TravelState,
)

_INNS = (
    ("Stork & Anchor", "Tallinn", 88.0, 4.3, "Kalamaja", True, False, 3, ["Thin walls, but the porridge was divine."]),
    ("Limewash Yard", "Tallinn", 124.0, 4.7, "old town", True, True, 1, ["Our terrier got a bowl of his own."]),
    ("Hostelry Nine Bells", "Tallinn", 52.0, 3.8, "harbour", False, False, 7, ["Bunks creak. The sauna is hot."]),
    ("Pilot's Loft", "Tallinn", 109.0, 4.5, "harbour", False, True, 2, ["We watched the boats from bed."]),
    ("Marzipan Court", "Riga", 97.0, 4.4, "old town", True, False, 2, ["Quiet at night, five minutes to the tram."]),
    ("Amber Stairs", "Riga", 143.0, 4.8, "Art Nouveau quarter", True, True, 5, ["The stairwell alone was a joy."]),
    ("Brewer's Rest", "Riga", 61.0, 4.0, "Agenskalns", False, True, 1, ["Smells of hops. Cheap and clean."]),
    ("Juniper Barn", "Kuressaare", 79.0, 4.6, "castle road", True, True, 4, ["Juniper everywhere, even in the bread."]),
    ("Windmill Rooms", "Kuressaare", 68.0, 4.1, "meadows", False, True, 2, ["No blinds; we rose with the larks."]),
)

_CONNECTIONS = (
    ("TR-210", "coach", "Tallinn", "Riga", "2031-07-08", "07:00", "11:25", 19.0, False),
    ("TR-214", "coach", "Tallinn", "Riga", "2031-07-08", "10:30", "14:50", 16.5, True),
    ("TR-218", "train", "Tallinn", "Riga", "2031-07-08", "15:22", "19:40", 34.0, True),
    ("TR-310", "coach", "Tallinn", "Riga", "2031-07-09", "07:00", "11:25", 22.0, False),
    ("TK-51", "coach and boat", "Tallinn", "Kuressaare", "2031-07-05", "08:15", "12:30", 24.0, True),
    ("TK-55", "coach and boat", "Tallinn", "Kuressaare", "2031-07-05", "13:40", "17:50", 21.0, False),
    ("KT-62", "coach and boat", "Kuressaare", "Tallinn", "2031-07-07", "09:05", "13:20", 24.0, True),
    ("KT-66", "coach and boat", "Kuressaare", "Tallinn", "2031-07-07", "16:30", "20:45", 18.0, True),
    ("RT-401", "train", "Riga", "Tallinn", "2031-07-12", "08:20", "12:41", 36.0, True),
    ("RT-409", "coach", "Riga", "Tallinn", "2031-07-12", "18:00", "22:25", 15.0, False),
)

_EATERIES: tuple[tuple[str, str, str, float, float, str, str, list[str], list[str]], ...] = (
    ("Smokehouse Pall", "Tallinn", "smoked fish", 17.5, 4.6, "12:00-22:00", "Sunday", ["no gluten"], ["The eel!"]),
    ("Beetroot & Daughters", "Tallinn", "plants only", 14.0, 4.4, "11:00-21:00", "Monday", ["vegan"], ["Filling."]),
    ("Cellar Forty", "Tallinn", "game", 26.0, 4.7, "17:00-23:30", "Tuesday", [], ["Boar as tender as butter."]),
    ("Dumpling Wharf", "Tallinn", "dumplings", 11.5, 4.2, "10:00-20:00", "none", ["vegan"], ["Queue at noon."]),
    ("Rye Republic", "Riga", "bakery lunch", 9.5, 4.3, "08:00-16:00", "Sunday", ["vegan"], ["Black bread, warm."]),
    ("Daugava Grill", "Riga", "grill", 21.0, 4.0, "12:00-23:00", "none", ["no gluten"], ["Ask for the corner."]),
    ("Sorrel Soup House", "Riga", "soups", 10.5, 4.8, "11:00-19:00", "Saturday", ["vegan", "no gluten"], ["Green!"]),
    ("Castle Moat Kitchen", "Kuressaare", "island food", 18.0, 4.5, "12:00-21:30", "Wednesday", [], ["Perch, fresh."]),
)

_SIGHTS = (
    ("Seaplane hangar", "Tallinn", "10:00-18:00", 20.0, "submarine inside; closed on Mondays"),
    ("Town wall walk", "Tallinn", "11:00-19:00", 7.0, "steep stairs"),
    ("Peat bog boardwalk", "Tallinn", "always", 0.0, "an hour by bus, mosquitoes in July"),
    ("Zeppelin market halls", "Riga", "07:30-18:00", 0.0, "five halls, fish in the last"),
    ("Organ at noon", "Riga", "12:00-12:20", 12.0, "twenty minutes, weekdays only"),
    ("Bishop's castle", "Kuressaare", "10:00-18:00", 14.0, "museum in the keep"),
    ("Meteorite crater", "Kuressaare", "always", 0.0, "18 km out, flat by bike"),
)

_WEATHER = (
    ("Tallinn", "2031-07-03", "drizzle", 17, 70),
    ("Tallinn", "2031-07-04", "cloudy", 19, 35),
    ("Tallinn", "2031-07-05", "bright", 22, 10),
    ("Kuressaare", "2031-07-05", "bright", 23, 5),
    ("Kuressaare", "2031-07-06", "showers", 20, 60),
    ("Kuressaare", "2031-07-07", "bright", 24, 5),
    ("Riga", "2031-07-08", "thunder", 25, 80),
    ("Riga", "2031-07-09", "bright", 26, 10),
    ("Riga", "2031-07-10", "cloudy", 21, 30),
)

_PLAN = (
    ("sp-11", "2031-07-03", "Seaplane hangar"),
    ("sp-12", "2031-07-04", "Town wall walk with Odalys"),
    ("sp-13", "2031-07-06", "Meteorite crater by bike"),
    ("sp-14", "2031-07-09", "Zeppelin market halls"),
)


def initial_state() -> TravelState:
    """A new state."""
    return TravelState(
        inns={
            name: FullInn(
                inn=name,
                town=town,
                night=night,
                score=score,
                quarter=quarter,
                breakfast=breakfast,
                pets=pets,
                free_until_days=days,
                said=list(said),
            )
            for name, town, night, score, quarter, breakfast, pets, days, said in _INNS
        },
        connections={
            code: Connection(
                code=code,
                kind=kind,
                origin=origin,
                goal=goal,
                day=day,
                leaves=leaves,
                arrives=arrives,
                fare=fare,
                bikes=bikes,
            )
            for code, kind, origin, goal, day, leaves, arrives, fare, bikes in _CONNECTIONS
        },
        eateries={
            name: FullEatery(
                eatery=name,
                town=town,
                kitchen=kitchen,
                main_course=price,
                score=score,
                hours=hours,
                closed_on=closed,
                diets=list(diets),
                said=list(said),
            )
            for name, town, kitchen, price, score, hours, closed, diets, said in _EATERIES
        },
        sights={
            name: Sight(sight=name, town=town, hours=hours, entry=entry, note=note)
            for name, town, hours, entry, note in _SIGHTS
        },
        weather={
            f"{town} {day}": Forecast(town=town, day=day, sky=sky, high=high, rain_percent=rain)
            for town, day, sky, high, rain in _WEATHER
        },
        stays={
            "st-31": Stay(stay="st-31", inn="Stork & Anchor", arrival="2031-07-02", departure="2031-07-05", guests=2),
            "st-32": Stay(stay="st-32", inn="Windmill Rooms", arrival="2031-07-05", departure="2031-07-07", guests=2),
        },
        tickets={"tk-41": Ticket(ticket="tk-41", code="TK-51", travellers=2, bikes=2)},
        tables={"tb-51": Table(table="tb-51", eatery="Smokehouse Pall", day="2031-07-02", at="19:00", seats=2)},
        plan={key: Stop(stop=key, day=day, what=what) for key, day, what in _PLAN},
        traveller={
            "traveller": Traveller(
                name="Benedikta Oyelaran",
                diet="vegan",
                seat="window",
                budget_a_night=110.0,
                companions=["Odalys Prochazka"],
            )
        },
    )
