"""The block above all others: who passes the stories that matter first, and who talked in them."""

from dataclasses import replace

from memstory.reporting.markdown import as_markdown
from memstory.reporting.page.html import PageInput, render_page
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.comparison import compare, comparison_document
from memstory.reporting.sections.outcomes import essential_section
from memstory.reporting.writing import first_screen, run_document
from memstory.results.runs import NamedRun


def case(make_case, target, chat=None, **more):
    trial = make_case.trial(outcome=more.get("outcome", "passed"))
    about = {"chat": chat} if chat else {}
    trials = (
        []
        if more.get("outcome") == "unsupported"
        else [replace(trial, recording=replace(trial.recording, about=about))]
    )
    return make_case("S5", target=target, tags=("essential",), trials=trials, **more)


def rows(run):
    (table,) = essential_section(columns_of([NamedRun(name="", run=run)])).parts
    return [list(map(str, table.header)), *(list(map(str, row)) for row in table.rows)]


def test_an_essential_story_names_who_passed_who_failed_and_who_talked(make_case, run_of):
    run = run_of(
        [
            case(make_case, "a", "shim: offline"),
            case(make_case, "b", "qwen3", outcome="failed"),
            case(make_case, "c", "qwen3"),
            case(make_case, "d", outcome="unsupported"),
        ]
    )
    header, row = rows(run)
    found = dict(zip(header, row, strict=True))
    assert (found["Story"], found["Who talks"]) == ("S5", "offline, qwen3")
    assert (found["passed"], found["failed"], found["unsupported"]) == ("a, c", "b", "d")
    assert "error" not in header


def test_it_stands_above_the_causes_in_every_report(make_case, run_of):
    run = run_of([case(make_case, "a"), make_case("F", target="a", outcome="failed", reason="f.yaml:1:1: no")])
    named = [NamedRun(name="", run=run)]
    texts = [
        as_markdown(run_document(run)),
        as_markdown(first_screen(run)),
        as_markdown(comparison_document(compare(named), columns_of(named))),
        render_page(named, PageInput(title="t", lines_of=lambda _: None, facts={})),
    ]
    for text in texts:
        assert 0 < text.index("The essential stories") < text.index("by cause")


def test_a_run_without_essential_stories_has_no_such_block(make_case, run_of):
    assert "essential" not in as_markdown(run_document(run_of([make_case()])))
