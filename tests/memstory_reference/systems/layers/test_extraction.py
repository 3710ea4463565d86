"""What the rules take from plain sentences: what is said, or nothing, and never a wrong value."""

import pytest

from memstory_reference.systems.layers.extraction import facts_by_rules, rules_by_rules

ME = "User"
SAID = {
    "I live in Łódź.": [(ME, "LIVES_IN", "Łódź")],
    "I moved from Graz to Linz.": [(ME, "LIVES_IN", "Linz")],
    "I've moved to Oslo.": [(ME, "LIVES_IN", "Oslo")],
    "I don't live in Oslo any more, I live in Bergen now.": [(ME, "LIVES_IN", "Bergen")],
    "I no longer work at Acme, I'm at Birch now.": [(ME, "WORKS_AT", "Birch")],
    "I work at Acme and live in Oslo with my cat Tom.": [(ME, "WORKS_AT", "Acme"), (ME, "LIVES_IN", "Oslo")],
    "My name is Inês, and I live in Porto.": [(ME, "IS_NAMED", "Inês"), (ME, "LIVES_IN", "Porto")],
    "I live in Graz, Austria.": [(ME, "LIVES_IN", "Graz, Austria")],
    "I live in Oslo. [left out: a secret]": [(ME, "LIVES_IN", "Oslo")],
    "I was born in 1980.": [(ME, "BORN_IN", "1980")],
    "Call me Bee, please.": [(ME, "IS_NAMED", "Bee")],
    "Please remember that I live in Vienna.": [(ME, "LIVES_IN", "Vienna")],
    "Since yesterday my desk number is D-31.": [(ME, "DESK_NUMBER_IS", "D-31")],
    "My manager is Ben now.": [(ME, "MANAGER_IS", "Ben")],
    "My son is called Tim and he lives in Kiel.": [(ME, "SON_IS", "Tim"), ("User's son", "LIVES_IN", "Kiel")],
    "My friend is 30 years old and works at Siemens.": [
        ("User's friend", "IS_AGED", "30"),
        ("User's friend", "WORKS_AT", "Siemens"),
    ],
    "My sister Ana is a nurse and my brother Leo is a chef.": [
        ("User's sister Ana", "WORKS_AS", "nurse"),
        ("User's brother Leo", "WORKS_AS", "chef"),
    ],
    "I have two cats named Tom and Jerry.": [(ME, "HAS", "two cats named Tom and Jerry")],
    "I am allergic to peanuts but not to walnuts.": [(ME, "IS_ALLERGIC_TO", "peanuts")],
    "I take ibuprofen daily, but I don't take aspirin.": [
        (ME, "USES", "ibuprofen daily"),
        (ME, "NOT_TAKES", "aspirin"),
    ],
    "I prefer tea to coffee.": [(ME, "PREFERS", "tea to coffee")],
    "I work at night.": [(ME, "WORKS", "at night")],
    "I live in constant fear of deadlines.": [(ME, "LIVES", "in constant fear of deadlines")],
    "My sister plays the harp.": [("User's sister", "PLAYS", "the harp")],
    "My parents live near the sea.": [("User's parent", "LIVES", "near the sea")],
    "My office is in room B-110.": [(ME, "OFFICE_IS", "in room B-110")],
    "I'm flying to Lisbon on Friday.": [(ME, "IS_FLYING", "to Lisbon on Friday")],
}
DENIED = {
    "My name is not Bob.": [(ME, "NOT_IS_NAMED", "Bob")],
    "My manager is not Ann.": [(ME, "NOT_MANAGER_IS", "Ann")],
    "I'm not allergic to nuts.": [(ME, "NOT_IS_ALLERGIC_TO", "nuts")],
    "I no longer like coffee.": [(ME, "NOT_LIKES", "coffee")],
    "I used to live in Rome.": [(ME, "NOT_LIVES_IN", "Rome")],
    "I have never been to Canada.": [(ME, "NOT_HAS", "been to Canada")],
    "My brother doesn't eat fish.": [("User's brother", "NOT_EATS", "fish")],
    "I can't stand coriander.": [(ME, "DISLIKES", "coriander")],
}
NOTHING = [
    "I might move to Berlin next year.",
    "I'd love to live in Lisbon.",
    "If I lived in Paris I would be happy.",
    "Just kidding, I live on the Moon, and I work at Nasa.",
    'My boss said "I live in a castle".',
    "She told me, I live in Rome.",
    "I hate to say it, but I like him.",
    "I love that song!",
    "Call me tomorrow.",
    "Call me a taxi, please.",
    "Do I live in Rome?",
    "I have a question.",
]
CORRECTED = [
    (["My desk number is D-31."], "It's E-12 now.", "DESK_NUMBER_IS", "E-12", "D-31"),
    (
        ["My office is in room B-110."],
        "Sorry, my mistake: it is room B-112.",
        "OFFICE_IS",
        "room B-112",
        "in room B-110",
    ),
    (["I prefer tea.", "I live in Oslo."], "Wait, I said that wrong: I prefer coffee.", "PREFERS", "coffee", "tea"),
    (["I live in Rotterdam."], "Correction: I live in Delft.", "LIVES_IN", "Delft", "Rotterdam"),
    (["Meera starts on the 4th."], "Sorry, Meera starts on the 11th.", "STARTS", "on the 11th", "on the 4th"),
    (
        ["Meera starts on the 4th.", "Where do I live?"],
        "Meera actually starts on the 11th.",
        "STARTS",
        "on the 11th",
        "on the 4th",
    ),
    (
        ["Meera starts on the 4th.", "Meera starts at Acme."],
        "Sorry, Meera starts on the 11th.",
        "STARTS",
        "on the 11th",
        "on the 4th",
    ),
]


@pytest.mark.parametrize("sentence", SAID)
def test_what_is_said_is_taken_and_no_more(sentence):
    assert [(fact.subject, fact.predicate, fact.object) for fact in facts_by_rules(sentence)] == SAID[sentence]


@pytest.mark.parametrize("sentence", DENIED)
def test_what_is_not_so_is_kept_as_a_denial(sentence):
    assert [(fact.subject, fact.predicate, fact.object) for fact in facts_by_rules(sentence)] == DENIED[sentence]


@pytest.mark.parametrize(("before", "said", "predicate", "value", "old"), CORRECTED)
def test_a_correction_has_the_predicate_of_the_old_value_and_names_it(before, said, predicate, value, old):
    (fact,) = facts_by_rules(said, before)
    assert (fact.predicate, fact.object, fact.corrects, fact.evidence_quote) == (predicate, value, old, said)


@pytest.mark.parametrize("sentence", NOTHING)
def test_of_what_is_doubted_quoted_asked_or_a_joke_nothing_is_taken(sentence):
    assert facts_by_rules(sentence) == []
    assert rules_by_rules(sentence) == []


def test_the_evidence_of_each_fact_is_its_clause_so_that_it_tells_nothing_of_the_other():
    quotes = [fact.evidence_quote for fact in facts_by_rules("I work at Acme and live in Oslo.")]
    assert quotes == ["I work at Acme", "live in Oslo."]


def test_how_answers_were_is_an_implied_rule_whatever_mark_ends_it():
    for sentence in ("Your answer was too long.", "Your answer was too long!"):
        (rule,) = rules_by_rules(sentence)
        assert (rule.rule, rule.explicit) == ("The user finds answers too long.", False)
