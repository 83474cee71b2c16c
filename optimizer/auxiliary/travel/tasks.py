"""The tasks of the travel environment."""

from memorydojo import matching
from memorydojo.optimizer.auxiliary._base import step
from memorydojo.optimizer.auxiliary._tasks import Removed, Template, added, changed
from memorydojo.optimizer.auxiliary.travel import model as t

TEMPLATES = (
    Template(
        "aux-tr-01",
        "information retrieval",
        "find the best place to stay within a budget",
        "We arrive in Riga with a dog. Which inn with a score above 4.2 takes him, and what is a night there?",
        (step(t.inns, town="Riga"), step(t.inn, inn="Marzipan Court"), step(t.inn, inn="Amber Stairs")),
        "Amber Stairs takes dogs and has a score of 4.8; a night is 143 euros.",
        says=("Amber Stairs", "143"),
    ),
    Template(
        "aux-tr-02",
        "information retrieval",
        "compare connections",
        "What is the cheapest way from Tallinn to Riga on 8 July 2031 that also takes a bicycle? Give me the code and "
        "the fare.",
        (step(t.connections, origin="Tallinn", goal="Riga", day="2031-07-08"),),
        "The cheapest that takes bicycles is the coach TR-214 at 10:30 for 16.50 euros.",
        says=("TR-214", "16.5"),
    ),
    Template(
        "aux-tr-03",
        "information retrieval",
        "find a place to eat that suits a diet",
        "I eat what the profile says. Where in Riga do I get a warm lunch on a Sunday, and what does a main course "
        "cost?",
        (
            step(t.traveller),
            step(t.eateries, town="Riga"),
            step(t.eatery, eatery="Sorrel Soup House"),
            step(t.eatery, eatery="Rye Republic"),
        ),
        "The Sorrel Soup House is vegan and open on Sundays; a main course costs 10.50 euros.",
        says=("Sorrel Soup House", "10.5"),
    ),
    Template(
        "aux-tr-04",
        "information retrieval",
        "say when a sight can be visited",
        "When exactly can one hear the organ in Riga, for how long, and at what price?",
        (step(t.sights, town="Riga"),),
        "The organ plays on weekdays from 12:00 to 12:20, twenty minutes for 12 euros.",
        says=(
            ("12:00", "noon"),
            ("12:20", "twenty minutes", "20 minutes"),
            ("12 euros", "12 euro", "12 eur", "€12", "eur 12"),
        ),
    ),
    Template(
        "aux-tr-05",
        "information retrieval",
        "judge the weather of a day",
        "Is the sixth a good day for the bike ride to the crater, or is another day on the island drier? Name the "
        "driest day and its chance of rain if we may only choose between the sixth and the seventh.",
        (step(t.forecast, town="Kuressaare"),),
        "The seventh, 2031-07-07, is drier: 5 percent against 60 on the sixth.",
        says=(("2031-07-07", "seventh", "7 july", "july 7"), ("5 percent", "5 per cent", "5%", "5 %")),
    ),
    Template(
        "aux-tr-06",
        "state change",
        "book nights",
        "Take Amber Stairs for the two of us from 8 to 11 July 2031. Money is no object this time.",
        (step(t.take_room, inn="Amber Stairs", arrival="2031-07-08", departure="2031-07-11", guests=2),),
        "Amber Stairs is taken for two from 8 to 11 July.",
        effects=(added("stays", inn="Amber Stairs", arrival="2031-07-08", departure="2031-07-11", guests=2),),
    ),
    Template(
        "aux-tr-07",
        "state change",
        "buy tickets",
        "Two seats and two bicycles on KT-66, please.",
        (step(t.take_passage, code="KT-66", travellers=2, bikes=2),),
        "Two seats and two bicycles are booked on KT-66.",
        effects=(added("tickets", code="KT-66", travellers=2, bikes=2),),
    ),
    Template(
        "aux-tr-08",
        "state change",
        "keep a table",
        "See whether Cellar Forty opens on Thursday 3 July 2031, and if it does, keep a table for four at half past "
        "seven.",
        (
            step(t.eatery, eatery="Cellar Forty"),
            step(t.hold_table, eatery="Cellar Forty", day="2031-07-03", at="19:30", seats=4),
        ),
        "Cellar Forty is open on Thursdays; a table for four is kept at 19:30.",
        effects=(added("tables", eatery="Cellar Forty", day="2031-07-03", at="19:30", seats=4),),
    ),
    Template(
        "aux-tr-09",
        "state change",
        "change a preference",
        "I have had a raise: a night may cost 135 euros from now on. Change that for me.",
        (step(t.traveller), step(t.set_budget, night=135)),
        "A night may cost 135 euros now.",
        effects=(changed("traveller", "traveller", budget_a_night=135.0),),
    ),
    Template(
        "aux-tr-10",
        "combination",
        "rearrange a stay",
        "The Windmill Rooms have no blinds and Odalys wakes early. Give that stay up and take the other inn on the "
        "island for the same nights. What does a night cost there?",
        (
            step(t.stays),
            step(t.inns, town="Kuressaare"),
            step(t.give_up_room, stay="st-32"),
            step(t.take_room, inn="Juniper Barn", arrival="2031-07-05", departure="2031-07-07", guests=2),
        ),
        "The Windmill Rooms are given up; Juniper Barn is taken for the same nights at 79 euros a night.",
        says=("79",),
        effects=(
            Removed("stays", "st-32"),
            added("stays", inn="Juniper Barn", arrival="2031-07-05", departure="2031-07-07", guests=2),
        ),
    ),
    Template(
        "aux-tr-11",
        "combination",
        "rearrange a plan by the weather",
        "Have a look at the weather in Tallinn and at what I planned. If the day of the wall walk is dry enough "
        "(less than 50 percent), add 'Peat bog boardwalk' to the same day; otherwise tell me.",
        (
            step(t.forecast, town="Tallinn"),
            step(t.plan),
            step(t.add_stop, day="2031-07-04", what="Peat bog boardwalk"),
        ),
        "The chance of rain on 4 July is 35 percent, so the peat bog boardwalk is planned for that day.",
        says=("35",),
        effects=(added("plan", day="2031-07-04", what=matching.containing("peat bog")),),
    ),
    Template(
        "aux-tr-12",
        "combination",
        "pick and book a connection",
        "Get Odalys and me back from Riga to Tallinn on 12 July 2031, by rail, without bicycles. Tell me when we "
        "arrive.",
        (
            step(t.connections, origin="Riga", goal="Tallinn", day="2031-07-12"),
            step(t.take_passage, code="RT-401", travellers=2),
        ),
        "Two seats are booked on the train RT-401; it arrives at 12:41.",
        says=("12:41",),
        effects=(added("tickets", code="RT-401", travellers=2, bikes=0),),
    ),
    Template(
        "aux-tr-13",
        "combination",
        "choose a place by price and score and reserve",
        "Dinner on the island on 5 July 2031 at eight, for two: find what there is, check that it is open that "
        "Saturday, and keep a table. What kind of food is it?",
        (
            step(t.eateries, town="Kuressaare"),
            step(t.eatery, eatery="Castle Moat Kitchen"),
            step(t.hold_table, eatery="Castle Moat Kitchen", day="2031-07-05", at="20:00", seats=2),
        ),
        "A table for two is kept at the Castle Moat Kitchen at 20:00; it serves island food.",
        says=(("island food", "perch"),),
        effects=(added("tables", eatery="Castle Moat Kitchen", day="2031-07-05", at="20:00", seats=2),),
    ),
    Template(
        "aux-tr-14",
        "state change",
        "take something out of a plan",
        "I have seen enough submarines. Take the seaplane hangar out of the plan.",
        (step(t.plan), step(t.drop_stop, stop="sp-11")),
        "The seaplane hangar is no longer planned.",
        effects=(Removed("plan", "sp-11"),),
    ),
    Template(
        "aux-tr-15",
        "information retrieval",
        "work out what a stay costs",
        "What do our booked nights in Tallinn come to altogether, and until how many days before is giving them up "
        "free?",
        (step(t.stays), step(t.inn, inn="Stork & Anchor")),
        "Three nights at Stork & Anchor come to 264 euros; giving them up is free until 3 days before.",
        says=("264", ("3 days", "three days")),
    ),
    Template(
        "aux-tr-16",
        "information retrieval",
        "say what a ticket is good for",
        "At what hour does the passage to the island that we hold tickets for get in, and how many of our bicycles are "
        "on it?",
        (step(t.tickets), step(t.connections, origin="Tallinn", goal="Kuressaare", day="2031-07-05")),
        "TK-51 gets in at 12:30, with two bicycles on board.",
        says=("12:30", ("two", "2")),
    ),
)
