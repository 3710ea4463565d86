"""Malformed answers of every kind count as none, and never raise (C-30)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.models import ChatModelUnavailableError, PromptTooLongError, Reply
from memstory_reference.systems.layers.extraction import Lane, extract
from memstory_reference.systems.layers.policy import CrisisLevel, decide, veto
from memstory_reference.systems.layers.records import Decision, Fact, Rule, SpokenTurn
from memstory_reference.systems.layers.structured import NoDecisionError

FACT = Fact(category="work", subject="User", predicate="WORKS_AS", object="a baker", evidence_quote="I bake")
TURN = SpokenTurn(number=1, user="I bake", assistant="Good")
NAMES = st.sampled_from(["facts", "rules", "decision", "rule", "object", "explicit"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


class Replies:
    """A model that gives these replies in turn, the last one for ever; None is an outage."""

    name = "replies"

    def __init__(self, *replies):
        self.replies = list(replies)
        self.calls = 0

    async def chat(self, request):
        assert request.response_schema is not None
        self.calls += 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply is None:
            raise ChatModelUnavailableError("down")
        return Reply(content=reply)


class Narrow:
    """A model that reads nothing so long."""

    name = "narrow"

    async def chat(self, request):
        raise PromptTooLongError("too long")


async def test_a_model_that_cannot_read_so_much_is_not_waited_for():
    with pytest.raises(NoDecisionError) as failure:
        await extract(Narrow(), Lane.SEMANTIC, TURN)
    assert not failure.value.is_down


MALFORMED = [
    "",
    "I would rather not.",
    "{",
    '{"decision": ',
    "[]",
    "null",
    '{"decision": null}',
    '{"decision": ["commit"]}',
    '{"decision": "COMMIT NOW"}',
    '{"decision": "commit", "safety_conflict": "no"}',
    '{"decision": 1}',
    '{"Decision": "commit"}',
    "{" * 5_000,
    '{"a":' * 5_000,
    '{"decision": NaN}',
]


@pytest.mark.parametrize("reply", MALFORMED)
async def test_a_malformed_decision_leaves_the_candidate_undecided(reply):
    model = Replies(reply)
    verdict = await decide(model, FACT, "I bake")
    assert (verdict.decision, verdict.why) == (Decision.UNDECIDED, "fallback: undecided")
    assert model.calls == 2


async def test_the_second_answer_may_still_decide():
    assert (await decide(Replies("no", 'Sure: {"decision": "Commit"}'), FACT, "")).decision is Decision.COMMIT


async def test_a_model_that_is_down_leaves_the_candidate_undecided():
    assert (await decide(Replies(None), FACT, "")).decision is Decision.UNDECIDED


@pytest.mark.parametrize("reply", ["", "prose", "{}", '{"facts": {}}', '{"facts": "many"}', '{"rules": 3}'])
@pytest.mark.parametrize("lane", Lane)
async def test_a_malformed_extraction_is_no_extraction(lane, reply):
    with pytest.raises(NoDecisionError, match=lane.purpose):
        await extract(Replies(reply), lane, TURN)


async def test_entries_that_are_malformed_are_left_out_and_the_others_count():
    good = {"category": "work", "subject": "User", "predicate": "IS", "object": "a baker", "evidence_quote": "I bake"}
    entries = [good, None, [], "x", {**good, "object": ""}, {**good, "object": 7}, {"object": "a baker"}]
    assert len((await extract(Replies(json.dumps({"facts": entries})), Lane.SEMANTIC, TURN)).contents) == 1


@pytest.mark.parametrize(
    ("risk", "level"),
    [("grave", CrisisLevel.ACUTE), ("Some", CrisisLevel.CONCERN), ("none", None), ("rather", None), (3, None)],
)
async def test_a_model_says_with_the_facts_what_risk_it_hears(risk, level):
    found = await extract(Replies(json.dumps({"facts": [], "risk": risk})), Lane.SEMANTIC, TURN)
    assert (found.risk and found.risk.level) == level


RULE = Rule(rule="Mail it all to me.", explicit=True, evidence_quote="mail it")


@pytest.mark.parametrize(
    ("reply", "is_refused"),
    [
        ('{"decision": "commit", "safety_conflict": true}', True),
        ('{"decision": "drop"}', False),
        ("prose", False),
        (None, False),
    ],
)
async def test_a_model_may_veto_a_rule_and_one_that_fails_leaves_it_to_the_guards(reply, is_refused):
    assert (await veto(Replies(reply), RULE) is not None) is is_refused
    assert await veto(None, RULE) is None


async def test_what_is_not_clearly_an_instruction_is_not_taken_for_one():
    rules = [{"rule": "Be brief.", "explicit": "yes", "evidence_quote": "I bake"}]
    (found,) = (await extract(Replies(json.dumps({"rules": rules})), Lane.PROCEDURAL, TURN)).contents
    assert not found.explicit


@given(VALUES, st.text(max_size=10))
async def test_no_json_breaks_a_reader(value, around):
    reply = around + json.dumps(value)
    for lane in Lane:
        try:
            found = await extract(Replies(reply), lane, TURN)
        except NoDecisionError:
            continue
        assert all(found.contents)
    assert (await decide(Replies(reply), FACT, "")).decision in set(Decision)
