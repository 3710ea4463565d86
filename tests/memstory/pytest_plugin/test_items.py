"""How each outcome looks: in the terminal, in JUnit, in the exit code."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

pytest_plugins = ["pytester"]

WRONG = """
story: W1
title: The answer names the language
steps:
  - say: What do I like?
  - say: Which language?
    expect:
      tool_calls: [recall]
      answer: {contains: Elixir}
  - list:
"""


def say(text, story="E1"):
    return f"story: {story}\ntitle: t\nsteps:\n  - add: x\n  - say: {text}\n"


def test_a_wrong_answer_shows_the_storys_lines_and_what_happened(project):
    # H-02, H-03
    project.story(WRONG)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "stories/a.yaml:8:*: say: answer does not contain*Elixir*",
            "story W1*: The answer names the language  (stories/a.yaml:1:1)",
            "step 2 (say) at stories/a.yaml:5:*",
            "*5 |   - say: Which language?",
            "*8 |       answer: {contains: Elixir}",
            "*  |                ^",
            "*answer: You said Which language?*",
            "*tool calls that happened:*",
            "*1. recall(*user.name*) -> *Ana*",
            "*expected: *Elixir*",
            "*actual: *You said*",
        ]
    )
    text = result.stdout.str()
    assert "9 |   - list" not in text
    assert "Traceback" not in text
    assert "items.py" not in text
    assert "\x1b[2J" not in text


def test_what_is_wrong_in_a_story_is_said_once_at_its_own_line(project):
    project.story(
        "story: Q1\ntitle: t\nretrieval: {corpus: a.jsonl, queries: b.jsonl, k: 3}\nexpect: {metrics: {mrr: {ge: 0}}}\n"
    )
    output = project.run("--tb=short").stdout.str()
    assert "stories/a.yaml:3:1: corpus: no file a.jsonl" in output
    assert "stories/a.yaml:1:1: stories/a.yaml:3:1" not in output
    told, _, _ = output.partition("short test summary")  # which pytest shortens, but not in CI
    assert [told.count(f"no file {name}.jsonl") for name in "ab"] == [1, 1]


def test_a_target_that_breaks_is_an_error_and_no_failure(project):
    project.story(say("break"))
    result = project.run("--junitxml=junit.xml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*RuntimeError: the backend fell over*", "step 2 (say) at stories/a.yaml:5:*"])
    assert "Traceback" not in result.stdout.str()
    case = ET.parse(project.path / "junit.xml").getroot().find(".//testcase")  # noqa: S314  (our own file)
    assert case.find("error") is not None
    assert case.find("failure") is None
    assert project.results() == {"E1": "error"}


def test_an_error_that_several_cases_share_is_told_in_full_once(project):
    project.story(say("break") + "---\n" + say("break", "E2"))
    output = project.run().stdout.str()
    assert output.count("(the traceback is shown with -v)") == 1
    assert "the same error as E1[toy_target:ToyFactory]: say: RuntimeError: the backend fell over" in output


STAND_IN = """
from toy_target import Toy, ToyFactory


class Talker(Toy):
    async def about(self):
        return {"chat": "rules (deterministic stand-in)"}


class TalkerFactory(ToyFactory):
    name, spec = "talker", "talker:TalkerFactory"

    def target(self):
        return Talker()
"""


def test_what_a_stand_in_did_not_use_is_an_error_that_shows_what_happened(project):
    (project.path / "talker.py").write_text(STAND_IN)
    project.story(WRONG.replace("Elixir", "Ana"))
    result = project.run("--target", "talker:TalkerFactory")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "the memory returned it; the stand-in did not use it: stories/a.yaml:8:* step 2 (say): answer does not *",
            "*8 |       answer: {contains: Ana}",
            "*tool calls that happened:*",
            "*1. recall(*user.name*) -> *Ana*",
        ]
    )


def test_what_a_hook_of_the_project_says_is_not_replaced_by_a_story_that_passed(project):
    hook = (
        "@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item):\n    yield\n    raise ValueError('disk full')\n"
    )
    (project.path / "conftest.py").write_text(f"import pytest\n\n{hook}")
    project.story(say("fine"))
    assert "E1[toy_target:ToyFactory] - ValueError: disk full" in project.run().stdout.str()


@pytest.mark.parametrize("argument", ["-v", "--tb=short"])
def test_the_traceback_of_a_broken_target_is_shown_on_demand(project, argument):
    project.story(say("break"))
    project.run(argument).stdout.fnmatch_lines(["*Traceback (most recent call last)*", "*in say*"])


def test_a_case_that_hangs_ends_by_its_timeout(project):
    # H-07
    project.story(say("hang") + "---\n" + say("fine", "E2"))
    result = project.run("--case-timeout", "0.2")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*timed out after 0.2 s in step 2*"])


def test_a_step_in_a_loop_has_one_number_in_the_reason_and_above_its_lines(project):
    project.story("story: L1\ntitle: t\nsteps:\n  - repeat: {times: 2, steps: [{say: fine}, {say: break}]}\n")
    text = project.run().stdout.str()
    assert "stories/a.yaml:4:46 step 1.2, pass 1 (say): RuntimeError" in text
    assert "\nstep 1.2, pass 1 (say) at stories/a.yaml:4:46\n" in text


def test_what_the_target_lacks_is_skipped_with_the_reason(project):
    # H-05
    project.story("story: U1\ntitle: t\nsteps: [{add: x}, {advance: 1d}]\n")
    project.story(name="stories/b.yaml")
    result = project.run("-rs")
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED*U1*does not support clock*"])
    assert result.ret == 0


def test_a_run_in_which_no_story_ran_fails_and_says_so(project):
    # H-05
    project.story("story: U1\ntitle: t\nsteps: [{add: x}, {advance: 1d}]\n")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["No story ran*", "1 unsupported: *does not support clock*"])


def test_every_trial_runs_and_the_case_passes_if_enough_do(project):
    project.story()
    project.run("--trials", "3").assert_outcomes(passed=1)
    text = (project.path / "reports/latest/results.json").read_text("utf-8")
    assert '"trial":2' in text


def test_an_isolated_case_runs_in_a_process_of_its_own_and_its_death_costs_one_case(project):
    project.story(say("break") + "---\n" + say("fine", "E2"))
    result = project.run("--isolate")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*RuntimeError: the backend fell over*"])


def test_a_vendor_that_is_missing_is_one_line_in_every_case(project):
    project.story(say("fine"))
    result = project.run("--target", "toy_target:Broken")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs the package 'a_vendor_that_is_not_there', which is not installed*"])
    assert "Traceback" not in result.stdout.str()


def test_setup_only_runs_no_story(project):
    project.story(say("break"))
    assert project.run("--setup-plan").ret == 0


def test_a_failure_shows_control_characters_as_their_codes_and_no_emoji_torn(project):
    project.story(WRONG.replace("language", "👩\u200d🚀"))
    text = project.run().stdout.str()
    assert "answer: You said Which 👩\u200d🚀?" in text
    assert r"\u001b[2J" in text


MEASURED = """
story: M1
title: Only measured
measure: true
retrieval: {corpus: c.jsonl, queries: q.jsonl, k: 2}
"""


def measured(project):
    rows = "".join(f'{{"id": "d{number}", "text": "text number {number}"}}\n' for number in range(30))
    project.story(rows, "stories/c.jsonl")
    project.story('{"id": "q", "text": "text number 7", "relevant": ["d7"]}', "stories/q.jsonl")
    project.story(MEASURED)


def test_what_is_only_measured_counts_apart_from_what_passed_and_was_skipped(project):
    measured(project)
    project.story(name="stories/b.yaml")
    result = project.run("-v", "--junit-xml", "j.xml")
    result.stdout.fnmatch_lines(["*M1*MEASURED*", "*1 passed, 1 measured in*"])
    assert result.ret == 0
    assert project.results() == {"M1": "measured", "G1": "passed"}
    junit = (project.path / "j.xml").read_text("utf-8")
    assert 'tests="2"' in junit
    assert 'skipped="1"' in junit
    assert "measured, recall@2 1.000" in junit


def test_a_task_that_scores_too_low_shows_questions_that_were_missed(project):
    measured(project)
    project.story('{"id": "q", "text": "text number 7", "relevant": ["d7", "d99"]}', "stories/q.jsonl")
    project.story(
        '{"id": "d99", "text": "nothing of the kind"}\n{"id": "d7", "text": "text number 7"}', "stories/c.jsonl"
    )
    project.story(MEASURED.replace("measure: true", "expect: {metrics: {recall@2: {ge: 0.9}}}"))
    project.run("--target", "control:grep").stdout.fnmatch_lines(
        ["*recall@2*is 0.5*", "*missed 1 of 1 questions; `memstory show` has more:", "*q: wanted d7, d99; got d7"]
    )


def test_a_result_is_let_go_once_it_is_written_down(project):
    project.story()
    (project.path / "conftest.py").write_text(
        "def pytest_sessionfinish(session):\n    print('held', [item.result for item in session.items])\n"
    )
    result = project.run("-s")
    assert "held [None]" in result.stdout.str()
    assert project.results() == {"G1": "passed"}
