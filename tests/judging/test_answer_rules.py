"""The offline judge of answers, on answers that were marked by hand."""

from typing import Any

import pytest

from memorydojo.errors import UnknownNameError
from memorydojo.judging import AnswerRules, HeldOutQuestion

TEMPORAL = "67 days. 68 days (including the last day) is also acceptable."
RUBRIC = (
    "The user would prefer suggestions of a quiet trip by train, with lake walks and a vegetarian breakfast. They "
    "might not prefer flights or nightlife."
)

#: type, question, reference, answer, right
MARKED: list[tuple[str, str, str | int, str, bool]] = [
    ("single-session-user", "Where is my class?", "Kiln and Clover", "At Kiln and Clover, behind the hall.", True),
    ("single-session-user", "Where is my class?", "Kiln and Clover", "At the studio called Kiln.", False),
    ("single-session-user", "Where is my class?", "Kiln and Clover", "I do not know where it is.", False),
    ("single-session-user", "Where is my class?", "Kiln and Clover", "", False),
    ("single-session-user", "How many pens do I have?", 7, "You have seven pens.", True),
    ("single-session-user", "How many pens do I have?", 7, "You have 17 pens.", False),
    ("single-session-user", "How many pens do I have?", "7", "You had 4, and now have 7.", True),
    ("single-session-user", "How much was it?", "$350,000", "It was 350000 dollars.", True),
    ("single-session-user", "How much was it?", "$350,000", "It was $400,000.", False),
    ("single-session-user", "What do I drink?", "green tea", "Green teas, mostly.", True),
    ("single-session-user", "What do I drink?", "green tea", "Black tea.", False),
    ("single-session-assistant", "Which plant?", "the cast iron plant (Aspidistra)", "The cast iron plant.", True),
    ("single-session-assistant", "Which plant?", "the cast iron plant (Aspidistra)", "An aspidistra.", True),
    ("single-session-assistant", "Which plant?", "the cast iron plant (Aspidistra)", "A fern.", False),
    ("multi-session", "Who runs?", "Odile and Tobias", "Tobias, and Odile as well.", True),
    ("multi-session", "Who runs?", "Odile and Tobias", "Odile runs.", False),
    ("multi-session", "How much together?", "$143", "$58 for the saddle and $85 for the jacket.", False),
    ("multi-session", "How much together?", "$143", "$58 + $85, which is $143.", True),
    ("temporal-reasoning", "How many days?", TEMPORAL, "67 days", True),
    ("temporal-reasoning", "How many days?", TEMPORAL, "It took 68 days.", True),
    ("temporal-reasoning", "How many days?", TEMPORAL, "66 days", True),
    ("temporal-reasoning", "How many days?", TEMPORAL, "70 days", False),
    ("temporal-reasoning", "How many days?", TEMPORAL, "67 weeks", False),
    ("temporal-reasoning", "How many weeks ago?", "4 weeks ago", "That was five weeks ago.", True),
    ("temporal-reasoning", "How many years?", "4 years", "5 years", False),
    ("temporal-reasoning", "Which came first?", "the kayak", "You bought the kayak first.", True),
    ("temporal-reasoning", "Which came first?", "the kayak", "You bought the tent first.", False),
    ("knowledge-update", "On which day?", "Friday", "It was on Tuesday, now it is on Friday.", True),
    ("knowledge-update", "On which day?", "Friday", "On Tuesday.", False),
    (
        "knowledge-update",
        "On which day?",
        "Friday",
        "It was once planned for Friday. But it is still on Tuesday.",
        False,
    ),
    ("knowledge-update", "How many chapters?", 7, "7 chapters by now.", True),
    ("knowledge-update", "How many chapters?", 7, "4 chapters.", False),
    ("single-session-preference", "Any ideas for a weekend?", RUBRIC, "Take the train to a quiet lake and walk.", True),
    ("single-session-preference", "Any ideas for a weekend?", RUBRIC, "Fly to Rome and enjoy the nightlife.", False),
    ("single-session-preference", "Any ideas for a weekend?", RUBRIC, "Go to the museum.", False),
    ("abs", "What is the dog's name?", "The user never told of a dog.", "I do not know; you did not tell me.", True),
    ("abs", "What is the dog's name?", "The user never told of a dog.", "You haven't mentioned a dog.", True),
    ("abs", "What is the dog's name?", "The user never told of a dog.", "There is no information about it.", True),
    ("abs", "What is the dog's name?", "The user never told of a dog.", "Its name is Pepper.", False),
    ("abs", "What is the dog's name?", "The user never told of a dog.", "No idea why you ask: Pepper.", False),
]


def question(type: str, text: str, reference: str | int) -> HeldOutQuestion:
    known = "single-session-user" if type == "abs" else type
    return HeldOutQuestion(id="q_abs" if type == "abs" else "q", type=known, text=text, reference=reference)


@pytest.mark.parametrize(("type", "text", "reference", "answer", "right"), MARKED)
def test_an_answer_is_marked_as_by_hand(type: str, text: str, reference: Any, answer: str, right: bool) -> None:
    assert AnswerRules().correct(question(type, text, reference), answer) is right


def test_no_answer_at_all_is_wrong_for_every_type() -> None:
    for type_, text, reference, _, _ in MARKED:
        assert AnswerRules().correct(question(type_, text, reference), " \n") is False


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="type of question"):
        AnswerRules().correct(HeldOutQuestion(id="q", type="odd", text="?", reference="x"), "x")


def test_a_long_hostile_answer_is_marked_in_no_time() -> None:
    hostile = "don't " * 50_000 + "know " * 50_000
    assert AnswerRules().correct(question("single-session-user", "?", "Kiln"), hostile) is False
