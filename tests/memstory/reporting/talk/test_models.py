"""Language models by story: how often each passed, and how often its tool calls were right."""

from dataclasses import replace

from memstory.reporting.markdown import render
from memstory.reporting.talk.models import models
from memstory.results.outcomes import Verdict


def trial(make_case, model, *, passed, tools):
    verdicts = [Verdict(passed=one, field="tool_calls", check="in_order", where="x:1:1", reason="r") for one in tools]
    made = make_case.trial(outcome="passed" if passed else "failed", verdicts=verdicts)
    return replace(made, recording=replace(made.recording, about={"chat": model}))


def test_each_model_has_its_passed_trials_and_right_calls(make_case, run_of):
    good = [trial(make_case, "big", passed=True, tools=[True, True]) for _ in range(3)]
    weak = [trial(make_case, "small", passed=False, tools=[True, False])]
    rule = [trial(make_case, "offline rules (deterministic stand-in)", passed=True, tools=[True])]
    run = run_of([make_case("S5", trials=good), make_case("S5", trials=weak), make_case("S6", trials=rule)])
    (row,) = [" ".join(line.split()) for line in models(run).splitlines() if line.startswith("| S")][1:]
    assert row == "| S5 | 3 of 3 | 6 of 6 | 0 of 1 | 1 of 2 |"
    assert "## Language models by story" in render(run)


def test_a_run_of_stand_ins_has_no_such_table(make_case, run_of):
    rule = [trial(make_case, "offline rules (deterministic stand-in)", passed=True, tools=[True])]
    assert models(run_of([make_case("S6", trials=rule)])) == ""
