import json

import pytest

from memstory.commands.results.timeline import timeline

FAILING = """\
story: drinks
title: T
steps:
  - add: {text: Ana drinks tea, key: drink}
  - search: what does Ana drink
    expect: {hits: {count: 2}}
  - search: zebra
    expect: {hits: {empty: true}}
  - get: nothing-here
  - update: {key: unknown, text: x}
    expect: {error: true}
"""


def test_every_step_is_shown_with_its_result_and_verdicts(terminal):
    terminal.save(FAILING)
    terminal.record()
    said = terminal.type("show", "out", "drinks")
    assert said.code == 0
    lines = [line for line in said.out.splitlines() if not line.strip().startswith("by ")]
    assert lines[0] == "drinks[control:oracle]: T"
    assert lines[1].startswith("a.story.yaml:1:1  failed in ")
    assert lines[2].startswith("a.story.yaml:6:21 step 2 (search): hits count 1")
    text = "\n".join(lines[4:])
    for wanted in (
        '1    add {"items": [{"text": "Ana drinks tea", "key": "drink"}]}\n     stored: drink: Ana drinks tea',
        "     1 found\n     1. drink (0.250): Ana drinks tea\n     FAILED a.story.yaml:6:21: hits count 1",
        "     nothing found\n     held   a.story.yaml:8:21: hits are none",
        '4    get {"key": "nothing-here"}\n     nothing found\n',
        "     refused: no memory has the key 'unknown'\n     held   a.story.yaml:11:14: was refused",
    ):
        assert wanted in text, said.out


def test_a_case_a_file_and_json_can_be_asked_for(terminal):
    terminal.save()
    terminal.record()
    case = json.loads(terminal.type("show", "out/results.json", "tea[control:oracle]", "--json").out)
    assert (case["story"], case["outcome"]) == ("tea", "passed")


def test_each_trial_can_be_shown(terminal):
    terminal.save()
    terminal.record(trials=3)
    assert "trial 1 of 3: passed, seed 0" in terminal.type("show", "out", "tea").out
    assert "trial 3 of 3: passed, seed 2" in terminal.type("show", "out", "tea", "--trial", "3").out
    said = terminal.type("show", "out", "tea", "--trial", "4")
    assert (said.code, said.err) == (2, "memstory show: tea[control:oracle] has no trial 4; it ran 3 times\n")


def test_long_values_are_shortened_unless_full(terminal):
    text = "word " * 100
    terminal.save(f"story: long\ntitle: T\nsteps: [{{add: {text}}}]\n")
    terminal.record()
    assert text.strip() not in terminal.type("show", "out", "long").out
    assert text.strip() in terminal.type("show", "out", "long", "--full").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out", "tae"], "unknown case 'tae'."),
        (["nowhere", "tea"], "no file or folder nowhere: name the folder of a run, such as reports/latest"),
        (["empty", "tea"], "empty holds neither spool.jsonl nor results.json"),
        (
            ["killed", "tea"],
            "killed holds a run that was killed: 'memstory report killed' first writes what it had done",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(terminal, words, message):
    terminal.save()
    terminal.record()
    for name in ("empty", "killed"):
        (terminal.folder / name).mkdir()
    terminal.save("", "killed/spool.jsonl")
    said = terminal.type("show", *words)
    assert said.code == 2
    assert message in said.err
    assert said.err.count("\n") == 1


def test_of_many_cases_only_a_near_one_is_named(terminal):
    terminal.save("---\n".join(f"story: tea{n}\ntitle: T\nsteps: [{{add: x}}]\n" for n in range(21)))
    terminal.record()
    said = terminal.type("show", "out", "tae7")
    assert said.err.startswith("memstory show: unknown case 'tae7'. Did you mean 'tea7'? The run has 21 cases;")


def test_a_story_with_several_cases_asks_for_one(terminal):
    terminal.save("story: tea\ntitle: T\nparametrize: [{x: a}, {x: b}]\nsteps: [{add: '${x}'}]\n")
    terminal.record()
    said = terminal.type("show", "out", "tea")
    assert said.code == 2
    assert "several cases; name one: tea[control:oracle-a], tea[control:oracle-b]" in said.err


def recorded(op, result, **more):
    step = {"path": [0], "op": op, "args": {"text": "hello"}, "user": "ann", "session": "session-1", "at": "noon",
            "result": result, "error": None, "seconds": 0.5}  # fmt: skip
    case = {"id": "A[t]", "title": "T", "where": "a:1:1", "outcome": "passed", "seconds": 0.5, "reason": None,
            "options": {}, "trials": [], "shown": 0, "steps": [step], "verdicts": [], "retrieval": [],
            **more}  # fmt: skip
    return "\n".join(timeline(case, 0))


def test_a_turn_shows_its_tool_calls_and_the_answer():
    calls = [
        {"name": "recall", "args": {"topic": "a"}, "result": "Ana", "error": None},
        {"name": "save", "args": {}, "result": None, "error": "no topic"},
    ]
    text = recorded("say", {"answer": "You are Ana", "tool_calls": calls})
    assert text.endswith(
        "1    say hello\n"
        "     by ann, session-1, at noon, 500 ms\n"
        '     called recall({"topic": "a"}) -> "Ana"\n'
        "     called save({}) -> error: no topic\n"
        "     answered: You are Ana"
    )


def test_control_characters_of_a_memory_do_not_reach_the_terminal():
    assert "\x1b" not in recorded("say", {"answer": "a\x1b[2Jb", "tool_calls": []}, title="\x1b[31mT")


def test_a_case_that_broke_says_where():
    failure = {"kind": "error", "message": "it fell over", "step": [0], "detail": None}
    assert recorded("restart", None, failure=failure).endswith("ended in step 1: error: it fell over")


def test_missed_questions_of_a_retrieval_are_listed():
    questions = [
        {"id": "q1", "relevant": ["a"], "retrieved": ["a"], "judged": True},
        {"id": "q2", "relevant": ["b"], "retrieved": [], "judged": True},
    ]
    record = {"name": "facts", "level": {}, "documents": 9, "k": 3, "questions": questions}
    text = recorded("settle", None, retrieval=[record])
    assert "facts: 9 documents, 2 questions, the first 3 hits of each\n     1 found all that they should\n" in text
    assert text.endswith("     q2: wanted b; got nothing")
