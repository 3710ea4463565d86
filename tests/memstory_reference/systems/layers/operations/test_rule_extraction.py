"""What the rules take from plain sentences: what is said, or nothing, and never a wrong value."""

import pytest

from memstory_reference.systems.layers.operations.rule_extraction import facts_by_rules, rules_by_rules

ME = "User"
SAID = {
    "I live in Łódź.": [(ME, "LIVES_IN", "Łódź")],
    "I moved from Graz to Linz.": [(ME, "LIVES_IN", "Linz")],
    "I've moved to Oslo.": [(ME, "LIVES_IN", "Oslo")],
    "I don't live in Oslo any more, I live in Bergen now.": [(ME, "LIVES_IN", "Bergen")],
    "I no longer work at Acme, I'm at Birch now.": [(ME, "WORKS_AT", "Birch")],
    "I work at Acme and live in Oslo with my cat Tom.": [(ME, "WORKS_AT", "Acme"), (ME, "LIVES_IN", "Oslo")],
    "My name is Inês, and I live in Porto.": [(ME, "IS_NAMED", "Inês"), (ME, "LIVES_IN", "Porto")],
    "I live in Graz, Austria.": [(ME, "LIVES_IN", "Graz")],
    "I live in Oslo. [left out: a secret]": [(ME, "LIVES_IN", "Oslo")],
    "I was born in 1980.": [(ME, "BORN_IN", "1980")],
    "Call me Bee, please.": [(ME, "IS_NAMED", "Bee")],
    "My manager is Ben now.": [("User's manager", "IS_NAMED", "Ben")],
    "My son is called Tim and he lives in Kiel.": [("User's son", "IS", "called Tim")],
    "My friend is 30 years old and works at Siemens.": [("User's friend", "IS", "30 years old")],
    "My sister Ana is a nurse and my brother Leo is a chef.": [
        ("My sister Ana", "IS", "a nurse"),
        ("my brother Leo", "IS", "a chef"),
    ],
    "I have two cats named Tom and Jerry.": [(ME, "HAS", "two cats named Tom and Jerry")],
    "I am allergic to peanuts but not to walnuts.": [(ME, "IS_ALLERGIC_TO", "peanuts")],
    "I take ibuprofen daily, but I don't take aspirin.": [(ME, "USES", "ibuprofen")],
    "I prefer tea to coffee.": [(ME, "PREFERS", "tea to coffee")],
}
NOTHING = [
    "My name is not Bob.",
    "My manager is not Ann.",
    "I'm not allergic to nuts.",
    "I no longer like coffee.",
    "I used to live in Rome.",
    "I might move to Berlin next year.",
    "I'd love to live in Lisbon.",
    "If I lived in Paris I would be happy.",
    "I live in constant fear of deadlines.",
    "I work at night.",
    "Just kidding, I live on the Moon, and I work at Nasa.",
    'My boss said "I live in a castle".',
    "She told me, I live in Rome.",
    "I hate to say it, but I like him.",
    "I love that song!",
    "Call me tomorrow.",
    "Call me a taxi, please.",
    "Do I live in Rome?",
    "Nobody calls me Bob.",
    "I have never been to Canada.",
]


@pytest.mark.parametrize("sentence", SAID)
def test_what_is_said_is_taken_and_no_more(sentence):
    assert [(fact.subject, fact.predicate, fact.object) for fact in facts_by_rules(sentence)] == SAID[sentence]


@pytest.mark.parametrize("sentence", NOTHING)
def test_of_what_is_denied_doubted_quoted_asked_or_a_joke_nothing_is_taken(sentence):
    assert facts_by_rules(sentence) == []
    assert rules_by_rules(sentence) == []


def test_the_evidence_of_each_fact_is_its_clause_so_that_it_tells_nothing_of_the_other():
    quotes = [fact.evidence_quote for fact in facts_by_rules("I work at Acme and live in Oslo.")]
    assert quotes == ["I work at Acme", "live in Oslo."]
