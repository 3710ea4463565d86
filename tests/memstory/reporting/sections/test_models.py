"""Language models in reports: what they were asked beside the score, which story each passed, and their tool calls."""

from dataclasses import replace

from memstory.contract.codec import encode
from memstory.contract.target import ModelUse
from memstory.reporting.markdown import as_markdown
from memstory.reporting.page.html import PageInput, render_page
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.comparison import compare, comparison_tables
from memstory.reporting.sections.costs import model_calls
from memstory.reporting.sections.outcomes import models_by_story
from memstory.reporting.terminal import as_text, terminal_summary
from memstory.reporting.writing import model_sections, run_document
from memstory.results.folder.results_file import with_extract
from memstory.results.outcomes import Verdict
from memstory.results.runs import NamedRun

STAND_IN = "offline rules (deterministic stand-in)"


def trial(make_case, model, *, passed, tools=()):
    verdicts = [Verdict(passed=one, field="tool_calls", check="in_order", where="x:1:1", reason="r") for one in tools]
    made = make_case.trial(outcome="passed" if passed else "failed", verdicts=verdicts)
    return replace(made, recording=replace(made.recording, about={"chat": model}))


def asking(make_case, op, use, *, outcome="passed", about):
    made = make_case.trial(outcome=outcome)
    (step,) = made.recording.steps
    steps = [replace(step, op=op, result=None, model=use), replace(step, op="list", result=None)]
    return replace(made, recording=replace(made.recording, about=about, steps=steps))


def rows(text, title):
    lines = text.split(title)[1].split("\n\n##")[0].splitlines()
    return [
        " ".join(line.split()).replace("\\-", "-") for line in lines if line.startswith("| ") and "---" not in line
    ][1:]


def named(run, name="one"):
    return columns_of([NamedRun(name=name, run=run)])


def test_each_model_has_its_passed_trials_and_right_calls(make_case, run_of):
    good = [trial(make_case, "big", passed=True, tools=[True, True]) for _ in range(3)]
    weak = [trial(make_case, "shim: small", passed=False, tools=[True, False])]
    rule = [trial(make_case, STAND_IN, passed=True, tools=[True])]
    run = run_of([make_case("S5", trials=good), make_case("S5", trials=weak, target="b"), make_case("S6", trials=rule)])
    (row,) = rows(as_markdown(run_document(run)), "## Language models by story")
    assert row == "| S5 | 3 of 3 | 6 of 6 | 0 of 1 | 1 of 2 |"


def test_runs_with_different_models_are_compared_by_story(make_case, run_of):
    runs = [
        NamedRun(name=model, run=run_of([make_case("S5", trials=[trial(make_case, model, passed=held, tools=[held])])]))
        for model, held in (("big", True), ("small", False))
    ]
    comparison = compare(runs)
    assert [(one.model, one.tools) for one in comparison.models] == [("big", [True]), ("small", [False])]
    assert "Language models by story" in as_text(comparison_tables(comparison))
    assert encode(comparison)["models"][0]["story"] == "S5"


def test_a_run_of_stand_ins_has_no_such_table(make_case, run_of):
    rule = [trial(make_case, STAND_IN, passed=True, tools=[True])]
    run = run_of([make_case("S6", trials=rule)])
    assert [one.parts for one in model_sections(named(run))] == [(), ()]
    assert models_by_story(named(run)) == []


def test_calls_are_summed_by_target_and_step_beside_the_score(make_case, run_of):
    use = ModelUse(calls=2, failed=1, prompt_tokens=1000, answer_tokens=20, seconds=0.5)
    silent = ModelUse(calls=1, seconds=0.25)
    about = {"infer": "openai:m", "chat": f"shim: {STAND_IN}"}
    cases = [
        make_case("INF1", trials=[asking(make_case, "add", use, about=about)] * 2),
        make_case("INF2", outcome="failed", trials=[asking(make_case, "add", use, outcome="failed", about=about)]),
        make_case("INF3", trials=[asking(make_case, "search", silent, about=about)]),
        make_case("INF4", trials=[asking(make_case, "add", silent, about={"infer": "scripted"})], target="other"),
        make_case("S5"),
    ]
    run = run_of([with_extract(case) for case in cases])
    assert rows(as_markdown(run_document(run)), "## Calls of language models") == [
        "| other | scripted | 1 of 1 | add | 1 | 1 | 0 | - | - | 0.25 |",
        "| topics | openai:m | 2 of 3 | add | 3 | 6 | 3 | 3,000 | 60 | 1.50 |",
        "| topics | openai:m | 2 of 3 | search | 1 | 1 | 0 | - | - | 0.25 |",
    ]
    page = PageInput(title="t", facts={}, lines_of=lambda _: None, sections=model_sections(named(run)))
    assert "<td>openai:m</td>" in render_page([NamedRun(name="one", run=run)], page)
    assert len(compare([NamedRun(name="one", run=run)]).model_calls) == 3


def test_calls_of_a_retrieval_task_are_counted_by_remembering_and_asking(make_case, run_of):
    case = make_case.retrieval()
    (done,) = case.trials
    (record,) = done.recording.retrieval
    use = ModelUse(calls=1, prompt_tokens=5, answer_tokens=1, seconds=1.0)
    questions = [replace(one, model=use) for one in record.questions]
    record = replace(record, model=use + use, questions=questions)
    done = replace(done, recording=replace(done.recording, retrieval=(record,), about={"infer": "openai:m"}))
    found = model_calls(named(run_of([replace(case, trials=(done,))])))
    assert [(one.step, one.steps, one.use.calls) for one in found] == [
        ("add (retrieval)", 1, 2), ("search (retrieval)", 3, 3),
    ]  # fmt: skip


def test_the_terminal_says_that_adds_kept_nothing(make_case, run_of):
    lost = replace(make_case.trial(), warnings=["x:1:1 step 1 (add): nothing was kept of it; its model answered: Hm"])
    said = terminal_summary(run_of([make_case("INF1", trials=[lost])]))
    assert "Adds of which nothing was kept after the memory had asked its model: 1." in " ".join(said.split())
