"""The report of more cases than one page can hold: what it says, what it shows, and what is beside it."""

import base64
import json
import re
import zlib
from dataclasses import replace

import pytest

from memstory.reporting.large_runs import CASES_FOLDER, MOST_BYTES, SAMPLE, SHOWN_WRONG, Tally
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.outcomes import capability_scores, obligations_by_column
from memstory.reporting.writing import begin_reports, report_from_spool, write_reports
from memstory.results.folder.results_file import read_results
from memstory.results.outcomes import OUTCOMES
from memstory.results.runs import NamedRun, make_fingerprint, make_run

HOSTILE = "</script><script>alert(1)</script>\"' {{ 7*7 }}"


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr("memstory.reporting.writing.MOST_CASES", 100)
    monkeypatch.setattr("memstory.reporting.large_runs.PAGE_CASES", 40)
    monkeypatch.setattr("memstory.reporting.large_runs.SAMPLE", 20)
    monkeypatch.setattr("memstory.reporting.large_runs.SHOWN_WRONG", 12)


@pytest.fixture
def written(tmp_path, make_case):
    """Writes the reports of so many cases, every tenth of which failed; returns their names."""

    def write(count, **fields):
        cases = [make_case(f"S{n}", outcome="passed" if n % 10 else "failed", **fields) for n in range(count)]
        write_reports(tmp_path, make_run(cases, make_fingerprint(cases)))
        return [case.story for case in cases]

    return write


def rows(page):
    return re.findall(r'<th scope="row"><b>(\w+)</b>', page.read_text())


def details(page):
    """The stories whose steps are on a page, by the lines of text that say where they are."""
    found = re.findall(r'<script type="text/plain" id="d\d+">([^<]*)</script>', page.read_text())
    return [story for one in found for story in json.loads(zlib.decompress(base64.b64decode(one), -15))]


def case_pages(folder):
    return sorted((folder / CASES_FOLDER).iterdir())


@pytest.mark.usefixtures("small_limits")
def test_the_pages_beside_the_report_have_every_case_once_with_its_steps(tmp_path, written):
    names = written(101)
    pages = case_pages(tmp_path)
    assert [page.name for page in pages] == ["00001.html", "00002.html", "00003.html"]
    assert sorted(name for page in pages for name in rows(page)) == sorted(names)
    steps = [story["cases"]["topics"]["html"] for page in pages for story in details(page)]
    assert (len(steps), all("<h4>1 say" in one for one in steps)) == (101, True)


@pytest.mark.usefixtures("small_limits")
def test_the_page_says_what_of_all_cases_it_shows_and_where_the_others_are(tmp_path, written):
    written(201)
    html = (tmp_path / "report.html").read_text()
    shown = rows(tmp_path / "report.html")
    wrong = [name for name in shown if name.endswith("0")]
    assert wrong[:12] == [f"S{number}0" for number in ["", *range(1, 12)]]
    assert "These are 201 cases, more than one page can hold." in html
    assert (
        f"<b>Shown</b> are {len(wrong)} of the 21 that went wrong (at most about 12) and {len(shown) - len(wrong)}"
        in html
    )
    assert f"one of the 6 pages in <code>{CASES_FOLDER}</code>" in html
    assert re.findall(r'<a href="(report-cases/\d+.html)">', html) == [
        f"{CASES_FOLDER}/0000{n}.html" for n in range(1, 7)
    ]
    assert ">180<" in html  # The totals are of all.


@pytest.mark.usefixtures("small_limits")
def test_report_md_says_the_same_and_links_to_the_pages(tmp_path, written):
    written(201)
    text = (tmp_path / "report.md").read_text()
    assert text.startswith("# memstory: 180 passed, 21 failed\n")
    assert "**Shown** are" in text
    assert re.findall(r"\]\((report-cases/\d+.html)\)", text) == [f"{CASES_FOLDER}/0000{n}.html" for n in range(1, 7)]
    for place in re.findall(r"\((report\.html|report-cases/[^)#]+)", text):
        assert (tmp_path / place).is_file()


@pytest.mark.usefixtures("small_limits")
def test_hostile_texts_are_never_markup_on_a_page_beside(tmp_path, written):
    written(101, title=HOSTILE, tags=(HOSTILE,), reason=HOSTILE)
    for page in (tmp_path / "report.html", *case_pages(tmp_path)):
        html = page.read_text()
        assert "<script>alert" not in html
        assert "{{ 7*7 }}" in html
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy


@pytest.mark.usefixtures("small_limits")
def test_the_report_is_made_again_from_the_files_of_the_run(tmp_path, written):
    written(201)
    files = [tmp_path / "report.md", tmp_path / "report.html", *case_pages(tmp_path)]
    before = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    assert "made from results.json, 201 cases" in report_from_spool(tmp_path)
    assert [file.read_bytes() for file in files] == before


@pytest.mark.usefixtures("small_limits")
def test_the_next_run_takes_the_pages_away(tmp_path, written):
    written(101)
    begin_reports(tmp_path).release()
    assert not (tmp_path / CASES_FOLDER).exists()
    written(101)
    written(99)
    assert not (tmp_path / CASES_FOLDER).exists()


@pytest.mark.usefixtures("small_limits")
def test_a_page_that_would_be_too_long_shows_fewer_rows_and_counts_them(tmp_path, written, monkeypatch):
    page = tmp_path / "report.html"
    written(201)
    monkeypatch.setattr("memstory.reporting.large_runs.MOST_BYTES", page.stat().st_size - 1)
    written(201)
    html, shown = page.read_text(), rows(page)
    assert len(shown) == 16
    assert page.stat().st_size < MOST_BYTES
    assert "<b>Shown</b> are 13 of the 21 that went wrong (at most about 12) and 3 of the 180 others" in html


@pytest.mark.usefixtures("small_limits")
def test_what_is_returned_is_the_run_as_it_was_written(tmp_path, make_case):
    cases = [make_case(f"S{number}") for number in range(101)]
    run = write_reports(tmp_path, make_run(cases, make_fingerprint(cases)))
    assert run == read_results(tmp_path / "results.json")
    assert len(run.cases) == 101


@pytest.mark.slow
def test_20001_cases_have_a_page_that_a_browser_opens_and_names_all_failures(tmp_path, make_case):
    cases = [make_case(f"S{number}", outcome="passed" if number % 10 else "failed") for number in range(20_001)]
    write_reports(tmp_path, make_run(cases, make_fingerprint(cases)))
    page = tmp_path / "report.html"
    assert page.stat().st_size < MOST_BYTES
    assert {f"S{number}" for number in range(0, 20_001, 10)} <= set(rows(page))
    assert "2,001 of the 2,001 that went wrong (all of them)" in page.read_text()
    names = [name for one in case_pages(tmp_path) for name in rows(one)]
    assert len(names) == 20_001
    assert set(names) == {case.story for case in cases}


@pytest.fixture
def mixed(make_case, run_of):
    """A run on two targets with every outcome, stories of one target, obligations, scores, and one unreadable story."""
    cases = [
        make_case(
            f"S{number}", target=target, outcome=OUTCOMES[(number * 3 + len(target)) % 7], tags=tags, leaked=leaked
        )
        for number, (tags, leaked) in enumerate(
            [(("forget", "owed"), True), (("ranking",), None), (("owed",), False)] * 4
        )
        for target in (("topics", "layers") if number % 3 else ("topics",))
    ]
    unreadable = make_case("", target="", outcome="invalid", trials=(), id="bad.yaml")
    return run_of([*cases, make_case.retrieval("Q1"), make_case.retrieval("Q2", target="layers"), unreadable])


def test_the_totals_are_those_of_the_columns(mixed):
    tally, columns = Tally.of(mixed.cases), columns_of([NamedRun(name="", run=mixed)])
    assert [(one.title, one.counts) for one in tally.columns] == [(one.title, one.counts) for one in columns]
    assert [one.recall for one in tally.columns] == pytest.approx([one.recall for one in columns])
    assert tally.owed == obligations_by_column(columns)
    assert (tally.cases, tally.lost) == (len(mixed.cases), 0)


def test_the_capabilities_are_those_of_the_columns(mixed):
    columns = columns_of([NamedRun(name="", run=mixed)])
    expected = {score.name: score for score in capability_scores(columns)}
    found = {score.name: score for score in Tally.of(mixed.cases).capability_scores()}
    assert found.keys() == expected.keys()
    for name, score in found.items():
        assert (name, len(score.stories)) == (name, len(expected[name].stories))
        assert (name, score.columns) == (name, expected[name].columns)


def test_all_rows_of_a_story_count_as_one(make_case, run_of):
    cases = [make_case("S1", row=str(row), id=f"S1[{row}][topics]", tags=("ranking",)) for row in range(5)]
    scores = {score.name: score for score in Tally.of(run_of(cases).cases).capability_scores()}
    assert (scores["ranking"].stories, scores["ranking"].columns["topics"]["passed"]) == (["S1"], 5)


def test_a_row_is_shown_on_all_targets_or_on_none(make_case, run_of):
    cases = [
        make_case(f"S{number}", target=target, outcome="failed" if (number, target) == (7, "b") else "passed")
        for number in range(2_000)
        for target in "ab"
    ]
    run = run_of([replace(case, trials=()) for case in cases])
    is_shown = Tally.of(run.cases).chooser()
    shown = {target: {case.story for case in run.cases if case.target == target and is_shown(case)} for target in "ab"}
    assert shown["a"] == shown["b"]
    assert "S7" in shown["a"]
    assert 0.7 * SAMPLE < 2 * len(shown["a"]) < 1.3 * SAMPLE


def test_of_very_many_failures_as_many_are_shown_as_the_report_says(make_case, run_of):
    run = run_of([make_case(f"S{number}", outcome="failed", trials=()) for number in range(SHOWN_WRONG + 200)])
    is_shown = Tally.of(run.cases).chooser()
    first = [case for case in run.cases if is_shown(case)][:SHOWN_WRONG]
    assert [case.story for case in first] == [f"S{number}" for number in range(SHOWN_WRONG)]
