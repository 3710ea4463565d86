from dataclasses import replace

from memstory.reporting.document import Section, Table
from memstory.reporting.page.html import TEXT_LIMIT, as_html
from memstory.reporting.sections.case_steps import LIST_LIMIT, case_steps, failed_lines


def sections(case):
    return [part for part in case_steps(case) if isinstance(part, Section)]


def test_long_texts_and_lists_are_cut_and_say_so(make_case):
    trial = make_case.trial()
    step = replace(trial.recording.steps[0], op="search", result=[{"text": "a" * 9000}] * 50)
    case = make_case(trials=[replace(trial, recording=replace(trial.recording, steps=(step,)))])
    (shown,) = sections(case)
    (hits,) = (part for part in shown.parts if isinstance(part, Table))
    assert len(hits.rows) == LIST_LIMIT
    html = as_html(case_steps(case))
    assert "… and 20 more" in html
    assert "a" * TEXT_LIMIT + "… (+" in html


def test_a_check_that_failed_is_shown_however_many_held_before_it(make_case):
    trial = make_case.trial()
    (held,) = trial.verdicts[:1]
    failed = replace(held, passed=False, reason="the one that failed")
    html = as_html(case_steps(make_case(trials=[replace(trial, verdicts=(*[held] * 50, failed))])))
    assert html.index("the one that failed") < html.index('<span class="passed">passed</span> the answer')
    assert "… and 20 more that held" in html


def test_what_took_another_time_is_the_same(make_case):
    slow = make_case(seconds=9.0)
    assert case_steps(slow) != case_steps(make_case())
    assert case_steps(slow, with_times=False) == case_steps(make_case(), with_times=False)


def test_invisible_characters_are_shown_as_their_codes(make_case):
    assert "a\\u202eb" in as_html(case_steps(make_case(reason="a\u202eb")))


def test_of_the_questions_those_that_missed_are_shown(run):
    *_, asked = sections(run.retrieval([1, 0, 2, 0]))
    assert "2 of 4 questions" in asked.title
    (table,) = asked.parts
    assert [row[0] for row in table.rows] == ["q1", "q3"]


def test_without_recordings_the_steps_that_results_have_are_shown(make_case, run_of):
    (case,) = run_of([make_case(outcome="failed")]).cases
    assert not case.trials[0].recording.steps
    (step,) = sections(case)
    assert step.title == "1 say"
    assert case.trials[0].agent[0].said in as_html(step.parts)


def test_arguments_that_are_only_texts_are_shown_as_texts(make_case):
    trial = make_case.trial()
    items = [{"text": "tea"}, {"text": "milk"}]
    shown = {}
    for args in ({"items": items}, {"items": items, "user": "ann"}):
        step = replace(trial.recording.steps[0], op="add", args=args, result=None)
        case = make_case(trials=[replace(trial, verdicts=(), recording=replace(trial.recording, steps=(step,)))])
        shown[len(args)] = as_html(case_steps(case))
    assert "<pre>tea\nmilk</pre>" in shown[1]
    assert "&quot;user&quot;: &quot;ann&quot;" in shown[2]


def test_the_lines_whose_expectations_failed_are_known(make_case):
    assert failed_lines(make_case(outcome="failed")) == [9]
    assert failed_lines(make_case()) == []
