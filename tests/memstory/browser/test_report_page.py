"""report.html in a real Chromium: from disk, without a network, by mouse and by keyboard."""

import os
import random
import sys
from dataclasses import replace

import pytest

from memstory.reporting.page.html import PageInput, StoryLines, render_page
from memstory.results.outcomes import Score
from memstory.results.runs import NamedRun

HOSTILE = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>\"'`${7*7} javascript:window.hurt=1"
)
LINES = StoryLines(first=1, lines=["story: S5", f"title: {HOSTILE}"])


@pytest.fixture
def opened(chromium, tmp_path, run_of):
    """Opens the page of a run; at the end nothing may have failed, and only the file itself was asked for."""
    complaints, asked, contexts = [], [], []

    def opening(results, *, dark=False, size=(1280, 900), **more):
        path = tmp_path / "report.html"
        given = PageInput(title="t", facts={"When": HOSTILE}, lines_of=lambda _: LINES, **more)
        runs = results if isinstance(results[0], NamedRun) else [NamedRun(name="latest", run=run_of(results))]
        path.write_text(render_page(runs, given), encoding="utf-8")
        viewport = {"width": size[0], "height": size[1]}
        context = chromium.new_context(viewport=viewport, offline=True, color_scheme="dark" if dark else "light")
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        if shots := os.environ.get("MEMSTORY_SCREENSHOTS"):
            page.screenshot(path=f"{shots}/{'dark' if dark else 'light'}-{size[0]}.png")
        return page

    yield opening
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url == (tmp_path / "report.html").as_uri() for url in asked)


@pytest.fixture
def six(make_case):
    return [
        make_case("S5", target="good", title="Colours are found"),
        make_case("S5", target="bad", outcome="failed", title="Colours are found", tags=("ranking",), harm="rank"),
        make_case("S6", target="good", title="Forgetting works", tags=("forget",)),
        make_case("S6", target="bad", title="Forgetting works", tags=("forget",)),
        make_case("S7", target="good", outcome="unsupported", title="It counts"),
        make_case("S7", target="bad", outcome="error", title="It counts"),
    ]


def shown(page):
    return page.locator("#matrix tbody tr:not([hidden]) th b").all_inner_texts()


def test_filters_leave_the_rows_that_fit_all_of_them(opened, six):
    page = opened(six)
    assert shown(page) == ["S5", "S7", "S6"]
    page.fill("#f-text", "found col")
    assert shown(page) == ["S5"]
    assert page.inner_text("#f-count") == "1 story"
    page.fill("#f-text", "")
    page.select_option("#f-group", label="forget")
    assert shown(page) == ["S6"]
    page.select_option("#f-group", "")
    page.select_option("#f-outcome", "error")
    assert shown(page) == ["S7"]
    page.select_option("#f-outcome", "")
    page.select_option("#f-harm", "rank")
    assert shown(page) == ["S5"]
    page.click("text=Clear filters")
    page.locator("#matrix tbody tr:not([hidden])").nth(2).wait_for()
    page.check("#f-differ")
    assert shown(page) == ["S5", "S7"]
    page.uncheck("[name=column][value='0']")
    assert shown(page) == []
    assert page.locator("#matrix thead th").nth(1).is_hidden()


def test_a_comparison_folds_what_all_pass_and_says_how_many(opened, six, run_of):
    page = opened([NamedRun(name="a", run=run_of(six)), NamedRun(name="b", run=run_of(six[2:4]))])
    assert shown(page) == ["S5", "S7"]
    assert page.inner_text("#f-count") == "2 stories, and 1 that all pass, folded"
    page.check("#f-alike")
    assert shown(page) == ["S5", "S7", "S6"]


def test_the_plots_draw_the_targets_that_the_reader_picks(opened, make_case):
    page = opened([make_case("S1", target=f"t{number:02}") for number in range(14)])
    drawn = page.locator("#plots .plot [data-column]:visible")
    assert (drawn.count(), page.locator("#picks :disabled[name=drawn]").count()) == (12, 2)
    whole = drawn.first.bounding_box()["width"]
    for number in range(11):
        page.uncheck(f"#picks [value='{number}']")
    page.check("#picks [value='13']")
    assert [one.get_attribute("data-column") for one in drawn.all()] == ["11", "13"]
    assert [one.get_attribute("class") for one in drawn.all()] == ["color-0", "color-1"]
    assert drawn.first.bounding_box()["width"] > 5 * whole


def test_a_click_shows_lines_steps_expected_and_actual_and_another_target_beside_it(opened, six):
    page = opened(six)
    page.locator("#matrix td.failed").click()
    dialog = page.locator("dialog[open]")
    dialog.wait_for()
    assert "S5 Colours are found" in dialog.inner_text()
    assert dialog.locator(".line").first.inner_text().split("\n")[0].startswith("1")
    inner = dialog.locator(".shown li li").all_inner_texts()
    assert [text.partition(":")[0] for text in inner] == ["expected", "actual"]
    assert dialog.locator(".shown").count() == 1
    page.select_option("dialog select", "good")
    assert dialog.locator(".shown").count() == 2
    assert dialog.locator(".side").nth(1).locator("section .passed").count() == 1
    assert dialog.locator(".side .differs").count() == 2
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_the_keyboard_reaches_and_opens_every_cell(opened, six):
    page = opened(six)
    page.locator("#matrix td.o").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.ariaLabel") == "S6 Forgetting works on good: passed"
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    assert "Forgetting works" in page.inner_text("#c-title")
    page.keyboard.press("Escape")
    page.locator("#matrix td:focus").wait_for()
    assert page.locator("#matrix td[tabindex='0']").count() == 1


def test_a_link_opens_its_case(opened, six):
    page = opened(six)
    page.goto(f"{page.url.partition('#')[0]}#case=S5%40bad")
    page.locator("dialog[open]").wait_for()
    assert "Colours are found" in page.inner_text("#c-title")


def test_the_last_run_is_shown_beside_a_case_that_changed(opened, run_of, six):
    last = run_of([replace(six[1], outcome="passed", reason="all was well")])
    page = opened(six, last=last)
    assert "passed → failed" in page.inner_text("#changes-since-the-last-run")
    page.locator("#matrix td.failed").click()
    page.locator("dialog[open]").wait_for()
    assert "all was well" in page.locator(".side").nth(1).inner_text()


def test_hostile_texts_do_nothing(opened, make_case):
    trial = make_case.trial("failed", answer=HOSTILE)
    hostile = {"title": HOSTILE, "reason": HOSTILE, "tags": (HOSTILE,), "covers": (HOSTILE,), "warnings": (HOSTILE,)}
    case = make_case("S5", target=HOSTILE, outcome="failed", trials=[trial], **hostile)
    page = opened([case, make_case("S5", target="other")])
    page.locator("#matrix td.failed").click()
    page.locator("dialog[open]").wait_for()
    page.select_option("dialog select", "other")
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0
    assert HOSTILE in page.inner_text("#c-title")


OUTSIDE = """() => [...document.querySelectorAll('main *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('.wide'))
  .map((one) => one.outerHTML.slice(0, 80))"""
TOO_SMALL = """() => [...document.querySelectorAll('nav a, td a, button, select, input:not([type=checkbox]), td.o')]
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
  .filter(([_, box]) => box.width && (box.width < 24 || box.height < 24)).map(([text]) => text)"""

HIGHEST_ROW = "() => Math.max(...[...document.querySelectorAll('#matrix tr')].map((row) => row.offsetHeight))"


def test_a_phone_scrolls_only_tables_sideways(opened, six, make_case):
    kinds = [f"a kind of question {number}" for number in range(14)]
    scores = [Score(metric="recall@10", value=0.5, low=0.2, high=0.8, questions=9, category=kind) for kind in kinds]
    asked = [make_case.retrieval(target=f"target-{number}") for number in range(9)]
    long = [
        replace(one, title="many words " * 12, trials=[replace(one.trials[0], scores=scores)], scores=scores)
        for one in asked
    ]
    page = opened([*six, *long], size=(390, 800))
    assert page.locator("figure.several svg").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(TOO_SMALL) == []
    assert (
        page.evaluate("Math.max(...[...document.querySelectorAll('#matrix tr')].map((row) => row.offsetHeight))") < 450
    )
    page.locator("#matrix td.failed").click()
    page.locator("dialog[open]").wait_for()
    assert page.evaluate("document.getElementById('case').scrollWidth <= innerWidth")


def test_light_and_dark_follow_the_system(opened, six):
    backgrounds = {
        dark: opened(six, dark=dark).evaluate("getComputedStyle(document.body).backgroundColor")
        for dark in (False, True)
    }
    assert backgrounds == {False: "rgb(255, 255, 255)", True: "rgb(21, 24, 28)"}


WORDS = [f"word{number}" for number in range(3000)]


def large_run(make_case, count, targets):
    """Cases with texts that repeat little: each says something and finds five memories."""
    chance = random.Random(7)  # noqa: S311  (the same run each time)

    def text(length):
        return " ".join(chance.choices(WORDS, k=length))

    for number in range(count):
        trial = make_case.trial("failed" if number % 9 == 0 else "passed", answer=text(20))
        said = trial.recording.steps[0]
        hits = [{"id": f"m{chance.random()}", "text": text(10), "score": chance.random()} for _ in range(5)]
        found = replace(said, op="search", args={"text": text(8)}, result=hits)
        trial = replace(trial, recording=replace(trial.recording, steps=(said, found)))
        story = f"S{number // targets}"
        named = {"target": f"target{number % targets}", "title": f"{story} {text(5)}"}
        yield make_case(story, outcome=trial.outcome, trials=[trial], **named)


FILTERS = [["f-text", "word12"], ["f-text", ""], ["f-differ", True], ["f-differ", False], ["f-outcome", "failed"]]
FILTERED = """([id, value]) => new Promise((done) => {
  const start = performance.now(), field = document.getElementById(id);
  if (field.type === 'checkbox') field.checked = value; else field.value = value;
  document.getElementById('filters').dispatchEvent(new Event('input'));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""

PAINTED = """() => new Promise(done => {
  const look = () => {
    const [paint] = performance.getEntriesByType('paint');
    paint ? done(paint.startTime) : setTimeout(look, 10);
  };
  look();
})"""


@pytest.mark.slow
def test_of_very_many_stories_the_first_thousand_are_shown_until_all_are_asked_for(opened, make_case):
    page = opened([make_case(f"S{number}") for number in range(1200)])
    assert (len(shown(page)), page.inner_text("#f-count")) == (1000, "1200 stories, the first 1000 shown")
    page.fill("#f-text", "S1199")
    assert shown(page) == ["S1199"]
    page.fill("#f-text", "")
    page.click("text=Show all rows")
    assert len(shown(page)) == 1200


@pytest.mark.slow
@pytest.mark.parametrize(("count", "targets", "megabytes"), [(955, 5, 3), (10_000, 1, 15), (10_000, 20, 15)])
def test_large_runs_keep_within_their_size(opened, make_case, count, targets, megabytes):
    page = opened(list(large_run(make_case, count, targets)))
    size = page.evaluate("performance.getEntriesByType('navigation')[0].decodedBodySize")
    # Times depend on the machine, so they are shown, not judged: `nox -s browser -- -k large_runs -s`.
    paint, each = page.evaluate(PAINTED), [page.evaluate(FILTERED, one) for one in FILTERS]
    filters = ", ".join(f"{name} {spent:.0f}" for (name, _), spent in zip(FILTERS, each, strict=True))
    sys.stdout.write(f"\n{count} cases, {targets} targets: {size / 1e6:.1f} MB, paint {paint:.0f} ms; {filters} ms\n")
    assert 0 < size <= megabytes * 1_000_000
    assert 0 < len(shown(page)) < count
