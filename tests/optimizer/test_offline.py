import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memorydojo as md
from memorydojo.optimizer import (
    Brief,
    Candidate,
    Counts,
    Evidence,
    Feedback,
    FeedbackStrategy,
    Ground,
    Proposal,
    RandomStrategy,
    Rules,
    Strategy,
    Trial,
    Turn,
)
from memorydojo.optimizer.validation import Validator
from memorydojo.optimizer.wording import DIMENSIONS, act_of, render, topics_of

ONTOLOGY = "Lists the accounts. Takes: the account. Pays money to an account elsewhere. Users ask for: pay a bill."
BRIEF = Brief(
    objective=md.objectives["banking"].description,
    memory="extracts facts; found by similarity of embeddings",
    ontology=ONTOLOGY,
    max_length=1200,
)
CHOICES = st.fixed_dictionaries({name: st.sampled_from(options) for name, options in DIMENSIONS.items()})


def _trial(number: int, turn: Turn, notes: dict[str, str], *, held: int, shown: int, met: int) -> Trial:
    payload = render(notes, objective=turn.brief.objective, ontology=turn.brief.ontology)
    made = FeedbackStrategy().write_seed(turn)[0].model_copy(update={"notes": notes, "payload": payload})
    evidence = Evidence(
        runs=2, entered=2, stored=2 if held else 0, later=10, held=held, retrieved=shown, shown=shown, followed=met
    )
    return Trial(
        candidate=Candidate(id=f"round-{number}", kind="revision", round=number, text=payload, proposal=made),
        feedback=Feedback(counts=Counts(met=met, later=10, completed=12, planned=12), evidence=evidence),
    )


def _turn(*history: Trial, round: int = 1, seed: int = 0, number: int = 4) -> Turn:
    return Turn(brief=BRIEF, history=tuple(history), round=round, number=number, seed=seed)


BASE = {name: options[0] for name, options in DIMENSIONS.items()}


@given(CHOICES, st.sampled_from(list(md.objectives)))
def test_every_wording_names_all_targets_of_its_objective(choices: dict[str, str], objective: str) -> None:
    description = md.objectives[objective].description
    text = render(choices, objective=description, ontology=ONTOLOGY)
    ground = Ground("d", md.objectives[objective], (), ONTOLOGY)
    reasons = Validator(description, ground, Rules()).reasons(text, earlier=())
    assert not [reason for reason in reasons if "does not name" in reason or "too long" in reason]


def test_different_choices_are_different_texts() -> None:
    one = render(BASE, objective=BRIEF.objective, ontology=ONTOLOGY)
    others = [{**BASE, name: option} for name, options in DIMENSIONS.items() for option in options[1:]]
    texts = {render(choices, objective=BRIEF.objective, ontology=ONTOLOGY) for choices in others}
    assert len(texts - {one}) >= len(others) - 4  # where there is no topic and no second part, some change nothing


def test_braces_in_an_objective_are_text() -> None:
    assert "{act}" in render(BASE, objective="Send {act} to {x}", ontology="")


def test_an_action_is_a_clause() -> None:
    assert act_of("Positively recommend Riverside View Hotel.") == "recommend Riverside View Hotel"


def test_topics_are_the_frequent_telling_words_of_the_ontology() -> None:
    assert topics_of(ONTOLOGY, 1) == ["account"]


@pytest.mark.parametrize("strategy", [FeedbackStrategy(), RandomStrategy()])
def test_a_strategy_is_one_and_gives_the_same_for_the_same_turn(strategy: Strategy) -> None:
    assert isinstance(strategy, Strategy)
    turn = _turn(_trial(1, _turn(), BASE, held=10, shown=5, met=2))
    assert strategy.propose(turn) == strategy.propose(turn)
    assert len(strategy.propose(turn)) == 4
    assert len(strategy.write_seed(_turn(round=0, number=1))) == 1


def test_the_random_strategy_is_blind_to_feedback() -> None:
    turn = _turn(_trial(1, _turn(), BASE, held=10, shown=5, met=2))
    assert RandomStrategy().propose(turn) == RandomStrategy().propose(_turn())


@pytest.mark.parametrize(
    ("held", "shown", "met", "bottleneck"),
    [
        (0, 0, 0, "it is not stored"),
        (10, 1, 1, "it is stored but not delivered"),
        (10, 10, 1, "it is delivered but not followed"),
    ],
)
def test_it_looks_for_the_bottleneck_where_most_is_lost(held: int, shown: int, met: int, bottleneck: str) -> None:
    found = FeedbackStrategy().propose(_turn(_trial(1, _turn(), BASE, held=held, shown=shown, met=met)))
    assert {one.bottleneck for one in found} == {bottleneck}
    assert {one.parent for one in found} == {"round-1"}


def test_it_proposes_nothing_that_was_tested_and_what_promises_most_first() -> None:
    trials = [
        _trial(i, _turn(), {**BASE, "standing": option}, held=10, shown=8, met=i)
        for i, option in enumerate(DIMENSIONS["standing"], start=1)
    ]
    found = FeedbackStrategy().propose(_turn(*trials))
    tested = [dict(one.candidate.proposal.notes) for one in trials if one.candidate.proposal is not None]
    assert not [one for one in found if one.notes in tested]
    assert [one.expected_brt for one in found] == sorted((one.expected_brt for one in found), reverse=True)


@pytest.mark.slow
def test_learning_beats_drawing_in_worlds_that_neither_knows() -> None:
    """Made-up worlds, in each of which three options help; as many tests for both strategies."""

    def best(strategy: Strategy, world: int) -> int:
        chance = random.Random(world)
        where = chance.sample(list(DIMENSIONS), 3)
        helps = {(name, chance.choice(DIMENSIONS[name])): gain for name, gain in zip(where, (4, 2, 2), strict=True)}
        history: list[Trial] = []
        for number in range(1, 9):
            ask = strategy.propose if history else strategy.write_seed
            first = ask(_turn(*history, round=number, seed=world))[0]
            assert isinstance(first, Proposal)
            met = 1 + sum(gain for (name, option), gain in helps.items() if first.notes[name] == option)
            history.append(_trial(number, _turn(), first.notes, held=10, shown=10, met=met))
        return max(one.feedback.counts.met for one in history)

    learned = [best(FeedbackStrategy(), world) for world in range(30)]
    drawn = [best(RandomStrategy(), world) for world in range(30)]
    assert sum(learned) > 1.05 * sum(drawn), (sum(learned), sum(drawn))


def test_it_never_proposes_what_is_too_long() -> None:
    short = BRIEF.model_copy(update={"max_length": 160})
    turn = Turn(brief=short, history=(_trial(1, _turn(), BASE, held=10, shown=10, met=1),), round=1, number=9, seed=0)
    assert all(len(one.payload) <= 160 for one in FeedbackStrategy().propose(turn))
