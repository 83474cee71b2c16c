"""The simulated agent's answer to the held-out question."""

from datetime import UTC, datetime

from memorydojo.simulator.answering import UNKNOWN, answer

TODAY = datetime(2024, 5, 14, tzinfo=UTC)
LESSONS = (
    "Session of 2024-01-23 18:55\n\nUser: My Spanish lesson is on Tuesday.\n\nAssistant: Noted.",
    "Session of 2024-04-02 21:10\n\nUser: My Spanish lesson is on Friday now.",
)


def asked(question: str, *memories: str) -> str:
    return answer(question, memories, today=TODAY)


def test_it_quotes_the_sentence_that_shares_most_with_the_question() -> None:
    memories = ("User likes tea. The boat's harbour is Kiel.", "User has a bicycle.")
    assert asked("In which harbour is my boat?", *memories) == "The boat's harbour is Kiel."


def test_of_equally_good_sentences_the_latest_is_quoted() -> None:
    question = "On which day is my Spanish lesson?"
    assert "Friday" in asked(question, *LESSONS)
    assert asked(question, *LESSONS) == asked(question, *LESSONS[::-1])


def test_undated_ones_are_quoted_in_the_order_of_delivery_and_so_it_can_be_wrong() -> None:
    undated = ("User's Spanish lesson is on Tuesday.", "User's Spanish lesson is on Friday.")
    assert "Tuesday" in asked("On which day is my Spanish lesson?", *undated)


def test_what_follows_in_the_same_passage_is_quoted_too() -> None:
    memory = "I signed up for a pottery class on Thursdays. The studio is called Kiln and Clover. It is near."
    assert "Kiln and Clover" in asked("Where is my pottery class?", memory)


def test_without_memories_it_is_not_known() -> None:
    assert asked("Where do I live?") == UNKNOWN


def test_what_no_memory_names_is_not_known() -> None:
    memories = ("User's sister has a dog.", "The dog is old.", "User likes tea.")
    assert asked("What is the name of my brother's dog?", *memories) == UNKNOWN


def test_days_between_two_dated_sentences_are_counted() -> None:
    memories = ("I planted the tomatoes today, on 2023-05-06.", "I picked a ripe tomato on 2023-07-12.")
    question = "How many days passed between planting the tomatoes and picking a ripe tomato?"
    assert asked(question, *memories) == "67 days"


def test_time_ago_counts_from_the_date_of_the_question() -> None:
    assert asked("How many weeks ago did I buy the kayak?", "User bought the kayak on 2024-04-30.") == "2 weeks"


def test_a_date_that_does_not_exist_is_passed_over() -> None:
    assert "kayak" in asked("How many weeks ago did I buy the kayak?", "User bought the kayak on 2024-02-31.")


def test_questions_about_several_things_get_several_quotes() -> None:
    memories = ("Odile will run the relay.", "Tobias will run the relay too.", "User likes tea.")
    found = asked("Who will run the relay together with me?", *memories)
    assert "Odile" in found
    assert "Tobias" in found
    assert "tea" not in found


def test_advice_is_given_from_what_the_user_prefers() -> None:
    memories = ("User prefers quiet lakes.", "It rained.", "User never flies.")
    found = asked("Can you suggest something for my weekend?", *memories)
    assert found == "User prefers quiet lakes. User never flies."


def test_a_question_about_past_advice_is_a_question_like_others() -> None:
    found = asked("Which plant did you recommend for the hallway?", "For the hallway the cast iron plant is best.")
    assert "cast iron" in found


def test_equal_inputs_give_equal_answers_whatever_the_memories_hold() -> None:
    odd = ("\x00{}%s<b>", "", "\u202e" * 50, "?" * 10_000)
    assert asked("What is it?", *odd) == asked("What is it?", *odd)
