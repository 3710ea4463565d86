import base64
import json
import re
import zlib
from dataclasses import replace

import pytest

from memstory.reporting.page.html import PageInput, StoryLines, render_page
from memstory.reporting.sections.comparison import compare, comparison_sections
from memstory.results.runs import NamedRun

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' {{ 7*7 }} <!--"


@pytest.fixture
def page(run_of):
    def make(results, lines=None, **more):
        given = PageInput(title="1 passed", facts={"When": HOSTILE}, lines_of=lambda _: lines, **more)
        return render_page([NamedRun(name="latest", run=run_of(results))], given)

    return make


def chunks(html):
    """What is read on a click, story after story."""
    found = re.findall(r'<script type="text/plain" id="d\d+">([^<]*)</script>', html)
    return [story for one in found for story in json.loads(zlib.decompress(base64.b64decode(one), -15))]


def test_every_story_has_a_row_and_its_details_are_packed(page, results):
    html = page(results)
    stories = {case.name for case in results}
    assert len(re.findall(r"<tr data-g=", html)) == len(stories) == len(chunks(html))


def test_the_details_have_steps_checks_and_the_lines_of_the_story(page, make_case):
    case = make_case(outcome="failed")
    (story,) = chunks(page([case], lines=StoryLines(first=3, lines=["story: S5", "title: x"])))
    shown = story["cases"]["topics"]
    assert (story["first"], story["lines"]) == (3, ["story: S5", "title: x"])
    assert re.findall("<h4>(.*?)</h4>", shown["html"]) == ["1 say"]
    assert "<li>expected: &#x27;Elixir&#x27;</li>" in shown["html"]
    assert shown["bad"] == [9]


def test_hostile_texts_are_never_markup(page, make_case):
    case = make_case("S5", outcome="failed", title=HOSTILE, reason=HOSTILE, tags=(HOSTILE,), where=f"{HOSTILE}:1:1")
    evil = replace(case, target=HOSTILE, slug="a", trials=[make_case.trial("failed", answer=HOSTILE)])
    html = page([evil, case])
    assert html.count("<script") == html.count("</script") == 2
    assert "<img" not in html
    assert "{{ 7*7 }}" in html


def test_what_does_not_show_in_a_slug_or_a_tag_is_written_as_its_code(page, make_case):
    html = page([make_case("S5", slug="a\u202eb", tags=("c\u2066d",))])
    assert not {"\u202e", "\u2066"} & {*html}
    assert r"<i>a\u202eb</i>" in html
    assert r'data-t="c\u2066d"' in html


def test_without_scripts_the_page_says_how_a_case_is_seen(page, results):
    (said,) = re.findall(r"<noscript>(.*?)</noscript>", page(results), re.DOTALL)
    assert "memstory show" in said


def test_a_case_that_is_closed_leaves_the_reader_where_he_opened_it(page, results):
    closing = re.search(r'dialog\.addEventListener\("close", \(\) => \{(.*?)\n  \}\);', page(results), re.DOTALL)[1]
    assert "focus" not in closing, "the browser itself goes back to the link or the cell"


def test_only_the_scripts_and_styles_of_the_page_may_run(page, results):
    html = page(results)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", html)
    assert not re.search(r"<(?:link|img|iframe|object|embed|base)\b|<script[^>]+src", html)
    assert " style=" not in html


def test_a_case_that_did_something_else_than_the_last_time_has_both(page, run_of, make_case):
    now = make_case(outcome="failed")
    last = run_of([make_case()])
    html = page([now, make_case("S6")], last=replace(last, cases=(*last.cases, *run_of([make_case("S6")]).cases)))
    changed, same = chunks(html)
    assert '<span class="passed">passed</span> 0.5 s' in changed["cases"]["topics"]["last"]
    assert same["cases"]["topics"]["same"] is True
    assert '<span class="passed">passed</span> → <span class="failed">failed</span>' in html


def test_texts_that_this_run_takes_out_are_not_shown_of_the_last(page, run_of, make_case):
    html = page([make_case(outcome="failed", redacted={"texts": 3})], last=run_of([make_case()]))
    assert "last" not in chunks(html)[0]["cases"]["topics"]


def test_secrets_are_taken_out_of_the_last_run(page, run_of, make_case):
    last = run_of([make_case(reason="hunter2")])
    html = page([make_case()], last=last, safe=lambda case: replace(case, reason="[redacted]"))
    assert "<pre>[redacted]</pre>" in chunks(html)[0]["cases"]["topics"]["last"]


def test_a_comparison_has_its_tables_on_the_page(run):
    runs = [run("a", run.retrieval([1, 0, 1, 2])), run("b", run.retrieval([1, 1, 1, 2], target="other"))]
    tables = comparison_sections(compare(runs))
    given = PageInput(title="comparison", facts={}, lines_of=lambda _: None, sections=tables)
    html = render_page(runs, given)
    assert "Differences in retrieval" in html
    assert html.count("<svg") == 2  # recall over k, latency


def test_the_first_screen_has_the_verdict_before_the_numbers_and_no_empty_column(page, make_case):
    html = page([make_case("A"), make_case("B", outcome="failed")], lead="**Not everything passed**: 1 failed.")
    order = ["<b>Not everything passed</b>: 1 failed.", "How it was run", '<section id="totals">']
    order += ['<section id="failures-by-cause">', '<section id="by-capability">', '<section id="stories">']
    assert [html.index(part) for part in order] == sorted(html.index(part) for part in order)
    totals = html[html.index('<section id="totals">') : html.index("</section>")]
    assert re.findall(r'<th scope="col" class="n \w+">(\w+)</th>', totals) == ["passed", "failed"]


def test_all_causes_are_listed_and_changes_beyond_those_that_are_listed_are_counted(page, make_case, run_of):
    words = ["".join(chr(97 + int(digit)) for digit in f"{number:03}") for number in range(230)]
    last = run_of([make_case(f"S{word}") for word in words])
    said = page([make_case(f"S{word}", outcome="error", reason=f"broke in {word}") for word in words], last=last)
    assert said.count('<span class="badge error">') == 230
    assert "and 30 more changes" in said


def test_rows_begin_with_what_went_wrong_and_then_with_what_most_targets_ran(page, make_case):
    cases = [make_case("A1"), make_case("B1"), make_case("B1", target="layers"), make_case("C1", outcome="failed")]
    assert re.findall(r'<th scope="row"><b>(\w+)</b>', page(cases)) == ["C1", "B1", "A1"]


def test_a_page_of_too_many_cases_has_what_went_wrong_and_a_sample_and_says_so(page, make_case, monkeypatch):
    monkeypatch.setattr("memstory.reporting.page.html.MOST_CASES", 100)
    monkeypatch.setattr("memstory.reporting.page.html.SHOWN_CASES", 20)
    cases = [make_case(f"S{n}", outcome="failed" if n % 10 == 0 else "passed") for n in range(100)]
    assert "more than a page can hold" not in page(cases)
    html = page([*cases, make_case("S100", outcome="error")])
    rows = re.findall(r'<th scope="row"><b>(\w+)</b>', html)
    assert len(rows) == len(chunks(html)) == 20
    assert rows[:11] == ["S0", "S10", "S20", "S30", "S40", "S50", "S60", "S70", "S80", "S90", "S100"]
    assert "Of 11 stories in which something went wrong 11 are here, of the 90 others a sample of 9." in html
    assert "<td>90</td>" in html or ">90<" in html  # the totals are of all cases


def test_characters_that_would_hide_or_reorder_a_cell_are_shown_as_their_codes(run):
    hidden = run.case("S1", "unsupported", target="one", reason="it\u202e does not")
    sections = comparison_sections(compare([run("a", hidden, run.case("S1", target="two"))]))
    html = render_page([run("a", hidden)], PageInput(title="t", facts={}, lines_of=lambda _: None, sections=sections))
    assert "<td>it\\u202e does not</td>" in html
