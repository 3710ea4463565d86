"""Who is blamed where a stand-in talks: never the memory for what it returned and the stand-in did not use."""

import json

import pytest

from memstory.case import Case
from memstory.judging.evaluation import evaluate
from memstory.judging.stand_in import UNUSED
from memstory.language.stories import parse_stories
from memstory.results.recording import Failure, Probe, Recording, StepRecord
from memstory.results.recording import Forbidden as Found

STAND_IN = "shim: offline rules (deterministic stand-in)"
UNKNOWN = "I don't know: I have no memory of that."


def case(expect, *, answer=UNKNOWN, chat=STAND_IN, calls=(), **more):
    steps = f"  - add: Faro\n    save: {{town: items.0.text}}\n  - say: What now?\n    expect: {expect}\n"
    (story,) = parse_stories(f"story: A\ntitle: T\nsteps:\n{steps}", "x.yaml")
    probe, failure = more.pop("probe", None), more.pop("failure", None)
    turn = {"answer": answer, "tool_calls": list(calls), "thinking": None, "context": None}
    usual = {"user": "u", "session": None, "at": "", "names": {"town": "Faro"}}
    added = StepRecord(path=(0,), op="add", args={"text": "Faro"}, result={"items": []}, **usual)
    said = StepRecord(path=(1,), op="say", args={"text": "What now?"}, result=turn, probe=probe, **usual)
    recording = Recording(story="A", target="toy", steps=(added, said), about={"chat": chat}, failure=failure)
    return evaluate(Case(story=story, target="toy"), [recording])


def call(result, *, name="search_memory", error=None):
    return {"name": name, "args": {"query": "What now"}, "result": result, "error": error}


def hits(*texts):
    return call(json.dumps({"memories": [{"text": text, "score": 0.5} for text in texts]}))


FARO = "{answer: {contains: Faro}}"
RETURNED = hits("It rains.", "I live in Faro.")


def test_what_the_memory_returned_and_the_stand_in_did_not_use_is_no_failure_of_the_memory():
    found = case(FARO, calls=[RETURNED])
    assert found.outcome == "error"
    assert found.reason.startswith(f"{UNUSED}: x.yaml:7:")
    assert "(say): answer does not contain 'Faro'" in found.reason


@pytest.mark.parametrize(
    "result",
    [
        json.dumps([{"id": "7", "content": "I live in Faro."}]),
        json.dumps({"memories": [{"metadata": {}, "memory": {"text": "I live in Faro."}}]}),
        json.dumps(["I live in Faro."]),
        json.dumps({"text": "I live in Faro."}),
        "[Memory recall]\n1. (relevance: 0.36) 2026-01-01 It rains.\n2. (relevance: 0.2) 2026-01-01 Q: I live in Faro.",
        "Found 3 memories:\n\n- It rains.\n- It snows.\n- I live in Faro.",
        "[Memory: user.town] Faro",
    ],
)
def test_hits_are_read_from_what_any_tool_returns(result):
    assert case(FARO, calls=[call("No memories found."), call(result)]).outcome == "error"


@pytest.mark.parametrize(
    "expect",
    [
        "{answer: Faro}",
        "{answer: {icontains: FARO}}",
        "{answer: {contains_any: [Porto, Faro]}}",
        "{answer: {regex: 'F.ro'}}",
        "{answer: {contains: '${town}'}}",
        "{answer: {contains: Faro, not: {contains: Porto}}}",
        "{answer: {contains_all: [Faro, rain]}}",
    ],
)
def test_every_check_that_says_what_an_answer_has_to_hold_is_looked_for_in_the_hits(expect):
    assert case(expect, calls=[hits("rain", "Faro")]).outcome == "error"


@pytest.mark.parametrize(
    ("expect", "calls"),
    [
        (FARO, []),
        (FARO, [hits("one", "two", "three", "I live in Faro.")]),
        (FARO, [call(None, error="refused: I live in Faro.")]),
        (FARO, [call('{"memories": [{"id": "Faro", "created_at": "Faro", "text": "It rains."}]}')]),
        ("{answer: {contains_all: [Faro, Porto]}}", [RETURNED]),
        ("{answer: {contains: Faro}, tool_calls: {none: [search_memory]}}", [RETURNED]),
        ("{answer: {contains: Faro, length: {ge: 1000}}}", [RETURNED]),
        ("{tool_calls: [recall_topic]}", [RETURNED]),
        ("{answer: {not: {contains: know}}}", [hits("It rains.")]),
        ("{answer: {any: [{contains: Faro}]}}", [RETURNED]),
    ],
)
def test_whatever_else_failed_is_a_failure(expect, calls):
    assert case(expect, calls=calls).outcome == "failed"


def test_a_language_model_that_does_not_use_what_it_got_fails_the_story():
    assert case(FARO, calls=[RETURNED], chat="ollama:qwen3:4b").outcome == "failed"
    assert case(FARO, calls=[RETURNED], chat="scripted by the story").outcome == "failed"


STALE = "{answer: {contains: Faro, not: {contains: Porto}}}"


def test_a_hit_that_holds_what_the_answer_must_not_is_a_failure_though_another_holds_the_right_one():
    assert case(STALE, calls=[hits("I live in Porto.", "I live in Faro.")]).outcome == "failed"
    assert case(STALE, calls=[hits("I live in Faro.", "I live in Porto.")]).outcome == "failed"


def test_a_hit_that_tells_of_the_change_is_not_stale():
    assert case(STALE, calls=[hits("I moved from Porto to Faro.")]).outcome == "error"


def test_a_leak_in_the_same_step_stays_a_leak():
    probe = Probe(forbidden=[Found(text="secret", found=["files"])], looked=["files"], twins=[])
    assert case(FARO, calls=[RETURNED], probe=probe).outcome == "failed"


def test_a_target_that_broke_off_later_is_said_behind_it():
    failure = Failure(kind="error", message="it is gone", step=(1,))
    assert case(FARO, calls=[RETURNED], failure=failure).reason.endswith("(say): it is gone")
