import json
from dataclasses import replace

import pytest

from memstory.commands.results.show import timeline
from memstory.reporting.writing import write_reports
from memstory.results.outcomes import TrialResult, Verdict
from memstory.results.recording import Failure, QuestionRecord, Recording, RetrievalRecord, StepRecord
from memstory.results.redaction import redact
from memstory.results.runs import make_fingerprint, make_run
from memstory.results.secret_values import Secrets

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
        "     nothing found\n     ok     a.story.yaml:8:21: hits are none",
        '4    get {"key": "nothing-here"}\n     nothing found\n',
        "     refused: no memory has the key 'unknown'\n     ok     a.story.yaml:11:14: was refused",
    ):
        assert wanted in text, said.out


def test_a_case_a_file_and_json_can_be_asked_for(terminal):
    terminal.save()
    terminal.record()
    case = json.loads(terminal.type("show", "out/results.json", "tea[control:oracle]", "--json").out)
    assert (case["story"], case["outcome"]) == ("tea", "passed")


def test_a_story_is_shown_by_its_slug(terminal):
    terminal.save(FAILING.replace("title:", "slug: what-ana-drinks\ntitle:"))
    terminal.record()
    assert terminal.type("show", "out", "what-ana-drinks").out.startswith("drinks[control:oracle]: T\n")


@pytest.mark.parametrize(
    ("screen", "setting", "is_coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_failed_is_red_and_ok_is_green_where_pytest_would_colour(terminal, monkeypatch, screen, setting, is_coloured):
    terminal.save(FAILING)
    terminal.record()
    for name, value in {"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm", **setting}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: screen, raising=False)
    lines = terminal.type("show", "out", "drinks").out.splitlines()
    coloured = {line[5:].split()[0]: line[:5] for line in lines if line.startswith("\x1b[")}
    assert coloured == ({"FAILED": "\x1b[31m", "ok": "\x1b[32m", "a.story.yaml:1:1": "\x1b[31m"} if is_coloured else {})


def test_the_difference_of_two_structures_is_shown_where_they_differ(make_case):
    verdict = Verdict(passed=False, field="data", check="equals", where="a:1:1", reason="no", difference="x: 1, not 2")
    trial = TrialResult(outcome="failed", reason=None, verdicts=(verdict, replace(verdict, passed=True)), scores=(),
                        recording=Recording(story="A", target="t"))  # fmt: skip
    lines = list(timeline(make_case(trials=[trial]), 0))
    assert [line.strip() for line in lines if "difference" in line] == ["difference: x: 1, not 2"]


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


@pytest.fixture
def recorded(make_case):
    """Return a function: one step of a case, and other parts of its recording, to how it is shown."""

    def shown(op, result, *, title="T", requests=(), **more):
        step = StepRecord(path=(0,), op=op, args={"text": "hello"}, user="ann", session="session-1", at="noon",
                          result=result, requests=requests, seconds=0.5)  # fmt: skip
        recording = Recording(story="A", target="t", steps=(step,), **more)
        trial = TrialResult(outcome="passed", reason=None, verdicts=(), scores=(), recording=recording)
        return "\n".join(timeline(make_case(title=title, trials=[trial]), 0))

    return shown


def test_a_turn_shows_its_tool_calls_and_the_answer(recorded):
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


def test_a_result_that_lost_its_form_is_shown_as_it_is(recorded):
    assert recorded("say", {"[text 1, 6 characters]": 1}).endswith('     returned {"[text 1, 6 characters]": 1}')


def test_what_a_server_was_sent_is_shown_before_what_it_answered(recorded):
    text = recorded("search", [], requests=["GET /notes?user=ann", 'POST /search {"q": "tea"}'])
    assert text.endswith('     sent: GET /notes?user=ann\n     sent: POST /search {"q": "tea"}\n     nothing found')


def test_control_characters_of_a_memory_do_not_reach_the_terminal(recorded):
    assert "\x1b" not in recorded("say", {"answer": "a\x1b[2Jb", "tool_calls": []}, title="\x1b[31mT")


def test_a_case_that_broke_says_where(recorded):
    failure = Failure(kind="error", message="it fell over", step=(0,))
    assert recorded("restart", None, failure=failure).endswith("ended in step 1: error: it fell over")


def test_missed_questions_of_a_retrieval_are_listed(recorded):
    questions = (
        QuestionRecord(id="q1", relevant=("a",), retrieved=("a",)),
        QuestionRecord(id="q2", relevant=("b",), retrieved=()),
    )
    record = RetrievalRecord(name="facts", digest="d", documents=9, smallest=9, k=3, questions=questions)
    text = recorded("settle", None, retrieval=(record,))
    assert "facts: 9 documents, 2 questions, the first 3 hits of each\n     1 found all that they should\n" in text
    assert text.endswith("     q2: wanted b; got nothing")


def test_without_recordings_the_verdicts_are_shown_and_what_is_missing_is_told(terminal):
    terminal.save(FAILING)
    terminal.record()
    (terminal.folder / "out/recordings.jsonl").unlink()
    said = terminal.type("show", "out", "drinks")
    assert (said.code, "FAILED a.story.yaml:6:21: hits count 1" in said.out) == (0, True)
    assert "there is no recordings.jsonl beside these results, so the steps are not shown" in said.err
    assert "\n1    add" not in said.out


def test_what_was_redacted_is_told(terminal):
    terminal.save("story: secret\ntitle: T\nsteps:\n  - add: My password is hunter2\n", "c.story.yaml")
    safe = [redact(result, "secrets", Secrets()) for result in terminal.record("c.story.yaml")]
    write_reports(terminal.folder / "out", make_run(safe, make_fingerprint(safe)))
    said = terminal.type("show", "out", "secret")
    assert "My password is [redacted]" in said.out
    assert "secrets were redacted before anything was written" in said.err
