"""The report of a run that one page cannot hold, in a real Chromium: from disk, without a network."""

import pytest

from memstory.reporting.writing import write_reports
from memstory.results.runs import make_fingerprint, make_run

HURT = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"


@pytest.fixture
def page(chromium, tmp_path, make_case, monkeypatch):
    """The report of 201 cases, every tenth of which failed, with pages of 40; nothing may have failed at the end."""
    monkeypatch.setattr("memstory.reporting.writing.MOST_CASES", 100)
    monkeypatch.setattr("memstory.reporting.large_runs.PAGE_CASES", 40)
    monkeypatch.setattr("memstory.reporting.large_runs.SAMPLE", 20)
    cases = [
        make_case(f"S{number}", outcome="passed" if number % 10 else "failed", title=HURT) for number in range(201)
    ]
    write_reports(tmp_path, make_run(cases, make_fingerprint(cases)))
    complaints, asked = [], []
    context = chromium.new_context(offline=True)
    shown = context.new_page()
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto((tmp_path / "report.html").as_uri())
    yield shown
    context.close()
    assert complaints == []
    assert all(url.startswith(tmp_path.as_uri()) for url in asked)


def test_a_case_that_is_not_shown_is_found_by_a_link_and_opened_with_its_steps(page):
    row = "#matrix tbody tr:has(th b:text-is('S199'))"
    assert page.locator(row).count() == 0
    page.click("#all-cases >> text=00005.html")
    page.wait_for_url("**/report-cases/00005.html")
    page.click(f"{row} td.o")
    assert page.inner_text("#c-title").startswith("S199")
    assert "1 say" in page.inner_text("#c-body .shown h4")
    page.click("#c-close")
    page.click("text=report.html")
    page.wait_for_url("**/report.html")
    assert page.evaluate("window.hurt") is None


def test_a_failure_opens_on_the_report_itself_and_others_in_the_same_pack_are_told_apart(page):
    for name in ("S0", "S100", "S200"):
        page.click(f"#matrix tbody tr:has(th b:text-is('{name}')) td.o")
        assert page.inner_text("#c-title").startswith(name)
        assert f"stories/{name.lower()}.yaml:1:1" in page.inner_text("#c-body")
        page.click("#c-close")


def test_a_link_to_a_case_on_a_page_beside_opens_it(page):
    page.goto(page.url.replace("report.html", "report-cases/00002.html#case=S45%40topics"))
    assert page.inner_text("#c-title").startswith("S45")
