from dataclasses import replace

from memstory.reporting.page.html import LIST_LIMIT, TEXT_LIMIT, details, without_times


def test_long_texts_and_lists_are_cut_and_say_so(make_case):
    trial = make_case.trial()
    step = replace(trial.recording.steps[0], op="search", result=[{"text": "a" * 9000}] * 50)
    case = make_case(trials=[replace(trial, recording=replace(trial.recording, steps=(step,)))])
    (shown,) = details(case)["steps"]
    assert len(shown["result"]) == LIST_LIMIT + 1
    assert shown["result"][-1] == "… and 20 more"
    assert shown["result"][0]["text"].startswith("a" * TEXT_LIMIT + "… (+")


def test_a_check_that_failed_is_shown_however_many_held_before_it(make_case):
    trial = make_case.trial()
    (held,) = trial.verdicts[:1]
    failed = replace(held, passed=False, reason="the one that failed")
    case = make_case(trials=[replace(trial, verdicts=(*[held] * 50, failed))])
    checks = details(case)["checks"]
    assert checks[0]["reason"] == "the one that failed"
    assert len(checks) == LIST_LIMIT + 1


def test_what_took_another_time_is_the_same(make_case):
    slow = make_case(seconds=9.0)
    assert details(slow) != details(make_case())
    assert without_times(details(slow)) == without_times(details(make_case()))


def test_invisible_characters_are_shown_as_their_codes(make_case):
    assert details(make_case(reason="a\u202eb"))["reason"] == "a\\u202eb"


def test_of_the_questions_those_that_missed_are_shown(run):
    (asked,) = details(run.retrieval([1, 0, 2, 0]))["asked"]
    assert (asked["questions"], asked["missed"]) == (4, 2)
    assert [one["id"] for one in asked["examples"]] == ["q1", "q3"]


def test_without_recordings_the_steps_that_results_have_are_shown(make_case, run_of):
    (case,) = run_of([make_case(outcome="failed")]).cases
    assert not case.trials[0].recording.steps
    (step,) = details(case)["steps"]
    assert (step["op"], step["args"]) == ("say", {"text": case.trials[0].agent[0].said})
