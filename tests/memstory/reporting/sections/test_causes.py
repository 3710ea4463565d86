"""Failures by cause: one fault of a memory is counted once, and two faults are not called one."""

from dataclasses import replace

from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.outcomes import causes
from memstory.results.outcomes import Verdict


def causes_of(run, *cases):
    return causes(columns_of([run("one", *cases)]))


def failed(run, story, check="includes", *, op="search", tags=(), **more):
    """Return a case that failed in its only step, by one check of its hits."""
    case = run.case(story, "failed", **{"harm": "loss", **more})
    verdict = Verdict(passed=False, field="hits", check=check, where="", reason="", step=(0,))
    recording = case.trials[0].recording
    steps = [replace(one, op=op) for one in recording.steps]
    trial = replace(case.trials[0], verdicts=[verdict], recording=replace(recording, steps=steps))
    return replace(case, tags=tags, trials=[trial])


def depends(case, story):
    return replace(case, precondition=story)


def test_what_fails_where_its_precondition_fails_is_one_cause_with_it_and_counted_once(run):
    first = failed(run, "G1", "first", harm="wrong", reason="hits do not have 'allergy' first")
    others = [depends(failed(run, f"F{n}", harm=harm), "G1") for n, harm in enumerate(("wrong", "loss", "rank"))]
    (cause,) = causes_of(run, *others, first)
    assert (cause.harm, cause.reason) == ("wrong", "hits do not have 'allergy' first")
    assert [case.story for case in cause.cases] == ["G1", "F0", "F1", "F2"]
    assert {case.outcome for case in cause.cases} == {"failed"}


def test_a_leak_is_put_under_no_milder_cause_and_an_error_under_none(run):
    weak, broken = failed(run, "G1", "first", harm="wrong"), depends(run.case("F2", "error"), "G1")
    leaks = [depends(failed(run, "G30", "excludes", harm="leak"), "G1"), depends(failed(run, "F1", harm="leak"), "G30")]
    found = [(one.harm, [case.story for case in one.cases]) for one in causes_of(run, weak, *leaks, broken)]
    assert found == [("leak", ["G30", "F1"]), ("wrong", ["G1"]), ("error", ["F2"])]


def test_a_precondition_of_a_precondition_explains_too_and_a_circle_ends(run):
    chain = [failed(run, "A1"), depends(failed(run, "B1", "count"), "A1"), depends(failed(run, "C1", "first"), "B1")]
    assert [one.cases[0].story for one in causes_of(run, *chain)] == ["A1"]
    circle = [depends(failed(run, "A1"), "B1"), depends(failed(run, "B1"), "A1")]
    assert sum(len(one.cases) for one in causes_of(run, *circle)) == 2


def test_a_precondition_that_passed_or_was_not_run_or_broke_explains_nothing(run):
    found = [depends(failed(run, "F1"), "G1"), depends(failed(run, "F2", "count"), "G9")]
    for outcome in ("passed", "error", "unsupported"):
        shown = [one for one in causes_of(run, run.case("G1", outcome), *found) if one.outcome == "failed"]
        assert len(shown) == 2


def test_the_same_check_of_another_operation_or_of_another_kind_of_story_is_another_cause(run):
    by_story = [failed(run, "S1", "count", tags=["concurrency"]), failed(run, "S2", "count", tags=["forget"])]
    assert len(causes_of(run, *by_story)) == 2
    assert len(causes_of(run, failed(run, "S1", op="search"), failed(run, "S2", op="list"))) == 2


def test_what_differs_in_its_values_alone_is_one_cause(run):
    alike = [failed(run, f"S{n}", reason=f"hits lack 'note {n}', which has {n} words") for n in range(3)]
    assert [len(one.cases) for one in causes_of(run, *alike)] == [3]
