"""The two scores of what a memory owes, on runs of the controls: never pooled, and seen in report, compare, gate."""

from dataclasses import replace

import pytest

from memstory.controls import CONTROLS
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.reporting.gate import gate
from memstory.reporting.markdown import as_markdown
from memstory.reporting.page.html import PageInput, render_page
from memstory.reporting.sections.comparison import compare, comparison_tables
from memstory.reporting.sections.outcomes import obligation_changes, obligations_of
from memstory.reporting.terminal import as_text
from memstory.reporting.writing import run_document
from memstory.results.runs import NamedRun

STORIES = parse_stories(
    """
story: W1
title: What is deleted is gone
tags: [owed]
steps:
  - add:
      - {text: The code is kestrel., save: code}
      - {text: The alarm is loud., twin: true}
  - delete: {id: "${code}"}
    forbid: [kestrel]
---
story: W2
title: What is corrected is told alone
tags: [owed]
steps:
  - add: {text: I live in Porto., save: home}
  - update: {id: "${home}", text: I live in Lisbon.}
  - search: I live in
    expect: {hits: {corrected: {now: Lisbon, was: Porto}}}
---
story: W3
title: It chats
tags: [owed]
steps: [{say: Hello., expect: {answer: {contains: hello}}}]
---
story: W4
title: Nobody owes this
steps: [{add: {text: a, save: a}}, {get: {id: "${a}"}, expect: {hits: {count: 1}}}]
""",
    "f.yaml",
)


@pytest.fixture
async def cases():
    names = ("oracle", "nothing", "undeleting", "stale_search")
    return {
        name: [
            await play(story, CONTROLS[name](), target=name)
            for story in STORIES
            if name != "nothing" or story.id != "W3"
        ]
        for name in names
    }


@pytest.fixture
def whole(cases, run_of):
    return run_of([case for found in cases.values() for case in found])


async def test_a_memory_that_remembers_nothing_avoids_every_leak_and_meets_no_obligation(cases):
    found = obligations_of(cases["nothing"])
    assert (found.met, found.judged, found.avoided, found.looked) == (0, 2, 1, 1)
    assert found.kept["nothing"] == 1


async def test_leaks_and_obligations_are_counted_apart(cases):
    perfect, leaking, stale = (obligations_of(cases[name]) for name in ("oracle", "undeleting", "stale_search"))
    assert (perfect.met, perfect.judged, perfect.avoided, perfect.looked, perfect.unable) == (2, 2, 1, 1, 1)
    assert (leaking.met, leaking.leaks) == (1, 1)
    assert (stale.met, stale.leaks, stale.kept["old only"]) == (1, 0, 1)


async def test_a_target_that_no_such_story_was_asked_of_has_no_scores(cases):
    assert obligations_of([case for case in cases["oracle"] if case.story == "W4"]) is None


async def test_report_and_comparison_show_both_scores_the_best_first(whole):
    rows = [
        line
        for line in as_markdown(run_document(whole)).splitlines()
        if line.startswith("| oracle | 2 of 2 | 1 of 1 | 1 |")
    ]
    assert len(rows) == 1
    compared = compare([NamedRun(name="a", run=whole)])
    page = as_text(comparison_tables(compared))
    section = page[page.index("What a memory owes") :]
    assert section.index("\noracle ") < section.index("\nundeleting ") < section.index("\nnothing ")
    row = next(line for line in section.splitlines() if line.startswith("undeleting ")).split("  ")
    assert [cell.strip() for cell in row if cell.strip()][1:3] == ["1 of 2", "0 of 1"]


async def test_the_page_shows_both_scores_before_the_capabilities_the_best_first(whole):
    given = PageInput(title="t", facts={}, lines_of=lambda _: None)
    page = render_page([NamedRun(name="a", run=whole)], given)
    table = page[page.index("<h2>What a memory owes</h2>") : page.index("<h2>By capability</h2>")]
    rows = [line for line in table.splitlines() if '<th scope="row">' in line]
    assert [row.split("</th>")[0].rpartition(">")[2] for row in rows] == [
        "oracle", "stale_search", "undeleting", "nothing"
    ]  # fmt: skip
    assert 'undeleting</th><td class="n">1 of 2</td><td class="n">0 of 1</td>' in rows[2]
    unasked = [case for case in whole.cases if case.story == "W4"]
    assert 'id="what-a-memory-owes"' not in render_page([NamedRun(name="a", run=replace(whole, cases=unasked))], given)


async def test_a_gate_tells_both_scores_and_calls_a_new_leak_a_regression(cases, run_of):
    before = run_of([*cases["oracle"]])
    now = run_of([*await _as("oracle", "undeleting")])
    assert list(obligation_changes(before, now)) == [
        "oracle: obligations met 1 of 2 (before 2 of 2), leaks avoided 0 of 1 (before 1 of 1)"
    ]
    assert list(obligation_changes(before, run_of([*cases["oracle"]]))) == []
    forgetful, leaking = [run_of(await _as("m", name)) for name in ("nothing", "undeleting")]
    found = gate(NamedRun(name="old", run=forgetful), NamedRun(name="new", run=leaking))
    assert any(
        "W1[m]: failed before, and now something is left that must be gone" in line for line in found.regressions
    )


async def _as(target, name):
    return [await play(story, CONTROLS[name](), target=target) for story in STORIES[:2]]
