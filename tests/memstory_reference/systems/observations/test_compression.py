import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.observations.compression import compression_prompt, parse_summary, summary_by_rules

GOOD = {"title": "Budgets", "narrative": "Covered budgets.", "facts": ["one", "two", "three", "four", "five"]}


def test_the_prompt_holds_the_first_two_thousand_characters_and_no_more():
    output = "a" * 1999 + "bc"
    prompt = compression_prompt("A task", output)
    assert ("a" * 1999 + "b" in prompt, "bc" in prompt) == (True, False)


def test_braces_and_placeholders_in_task_and_output_stay_as_they_are():
    prompt = compression_prompt("use {output} and {x}", "{task} {0}")
    assert prompt.startswith(
        "You have just completed the following task:\nTask: use {output} and {x}\nOutput:\n{task} {0}\n"
    )
    assert prompt.endswith('Output as JSON: {"title": ..., "narrative": ..., "facts": [...]}')


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```", "Sure! Here: {} Anything else?", '{{"thought": 1}} {}'])
def test_the_summary_is_found_bare_fenced_or_amid_prose(wrap):
    summary = parse_summary(wrap.format(json.dumps(GOOD)))
    assert summary is not None
    assert (summary.title, summary.narrative, summary.facts) == ("Budgets", "Covered budgets.", tuple(GOOD["facts"]))


@pytest.mark.parametrize(
    "reply", ["", "no json", "[1, 2]", '{"title": "x"}', '{"narrative": " "}', '{"narrative": 3}', "{" * 2000]
)
def test_a_reply_without_a_narrative_is_unusable(reply):
    assert parse_summary(reply) is None


def test_more_than_ten_facts_are_cut_and_few_are_told():
    many = parse_summary(json.dumps({**GOOD, "facts": [f"fact {number}" for number in range(14)]}))
    few = parse_summary(json.dumps({**GOOD, "facts": ["only one"]}))
    assert many is not None
    assert few is not None
    assert (len(many.facts), many.warnings) == (10, ("14 facts: the first 10 were kept",))
    assert few.warnings == ("only 1 facts",)


def test_facts_given_as_one_text_are_split_at_their_bullets():
    summary = parse_summary(json.dumps({**GOOD, "facts": "- one\n- two"}))
    assert summary is not None
    assert summary.facts == ("one", "two")


def test_without_a_model_bullets_become_the_facts():
    summary = summary_by_rules("Learn\nmore", "Intro one. Intro two. Intro three.\n- first\n* second")
    assert (summary.title, summary.narrative, summary.facts) == ("Learn", "Intro one. Intro two.", ("first", "second"))


@given(st.text())
def test_any_reply_is_parsed_or_unusable(reply):
    summary = parse_summary(reply)
    assert summary is None or summary.narrative.strip()
