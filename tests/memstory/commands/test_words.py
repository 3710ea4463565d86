"""`steps`, `matchers` and `schema`: the words of the language, with examples that are true."""

import json

import pytest
from jsonschema import Draft202012Validator

from memstory.language.matchers import CALL_CHECKS, HIT_CHECKS, MATCHERS, Context, judge
from memstory.language.stories import InvalidStory, parse_stories
from memstory.language.words import WORDS

SAVED = "story: A\ntitle: T\nsteps:\n  - add: {text: x, key: tea}\n    save: {ferry: id, first: id, tea: id}\n"


def story_of(text):
    (story,) = parse_stories(text, "f.yaml")
    assert not isinstance(story, InvalidStory), [str(error) for error in story.errors]
    return story


@pytest.mark.parametrize("name", WORDS)
def test_the_example_of_a_step_is_a_story_with_that_step(name):
    story = story_of(f"story: A\ntitle: T\nsteps:{WORDS[name].example}")
    assert name in {step.op for step in story.steps}


@pytest.mark.parametrize("name", [name for name in MATCHERS if name != "judged"])  # a model decides that one
def test_the_example_of_a_matcher_holds_for_one_value_and_not_for_the_other(name):
    check = MATCHERS[name]
    what = "files" if name == "none_contain" else "log"
    story = story_of(f"{SAVED}  - inspect: {what}\n    expect: {{data: {check.example}}}\n")
    (matcher,) = story.steps[1].expect[0].matchers
    assert matcher.name == name
    context = Context(names={"first": "m1"})
    assert judge("data", check.fits, matcher, context).holds
    assert not judge("data", check.misfits, matcher, context).holds


@pytest.mark.parametrize("name", HIT_CHECKS)
def test_the_example_of_a_hit_check_is_that_check(name):
    story = story_of(f"{SAVED}  - search: x\n    expect: {{hits: {HIT_CHECKS[name].example}}}\n")
    assert [matcher.name for matcher in story.steps[1].expect[0].matchers] == [name]


@pytest.mark.parametrize("name", CALL_CHECKS)
def test_the_example_of_a_call_check_is_that_check(name):
    story = story_of(f"{SAVED}  - say: x\n    expect: {{tool_calls: {CALL_CHECKS[name].example}}}\n")
    assert [matcher.name for matcher in story.steps[1].expect[0].matchers] == [name]


def test_steps_lists_every_step_with_the_fields_of_its_result(terminal):
    lines = [line.split() for line in terminal.type("steps").out.splitlines()]
    firsts = [words[0] for words in lines if words]
    assert set(WORDS) <= set(firsts)
    assert ["say", "one", "conversational", "turn", "answer,", "tool_calls,", "honest"] in lines


def test_one_step_is_shown_with_its_example(terminal):
    first, expect, *rest = terminal.type("steps", "settle").out.splitlines()
    assert (first.startswith("settle: "), expect) == (True, "expect: error, latency_ms, eventually, refusal")
    assert rest == ["", "- settle:"]


def test_one_step_is_shown_with_the_meanings_of_its_keys(terminal):
    lines = [line.split("  ")[0] for line in terminal.type("steps", "list").out.splitlines()]
    assert lines[lines.index("key") + 2 :][:2] == ["kinds", "limit"]
    (step,) = json.loads(terminal.type("steps", "list", "--json").out)
    assert list(step["keys"]) == ["kinds", "limit"]


def test_an_unknown_step_gets_the_nearest_name(terminal):
    said = terminal.type("steps", "serach")
    assert said.code == 2
    assert ("'serach'" in said.err, "Did you mean 'search'?" in said.err) == (True, True)


def test_steps_as_json_says_what_can_be_expected(terminal):
    (say,) = json.loads(terminal.type("steps", "say", "--json").out)
    assert say["expect"] == [
        "answer",
        "tool_calls",
        "honest",
        "error",
        "latency_ms",
        "context_tokens",
        "eventually",
        "refusal",
    ]


def test_matchers_lists_every_word_with_its_example(terminal):
    out = terminal.type("matchers").out
    for checks in (HIT_CHECKS, CALL_CHECKS):
        assert [check.example for check in checks.values() if check.example not in out] == []
    listed = json.loads(terminal.type("matchers", "--json").out)
    assert [one["name"] for one in listed["matchers"]] == list(MATCHERS)


def test_the_schema_is_printed_or_written_as_it_is_shipped(terminal):
    printed = terminal.type("schema").out
    Draft202012Validator.check_schema(json.loads(printed))
    said = terminal.type("schema", "--output", "s.json")
    assert (terminal.folder / "s.json").read_text("utf-8") == printed
    assert "# yaml-language-server: $schema=s.json" in said.out
    assert terminal.type("schema", "--output", "s.json").code == 0


def test_a_file_that_is_no_schema_is_not_overwritten(terminal):
    terminal.save("[1]", "mine.json")
    said = terminal.type("schema", "--output", "mine.json")
    assert said.code == 2
    assert said.err.startswith("memstory schema: mine.json ")
    assert (terminal.folder / "mine.json").read_text() == "[1]"
