"""The groups of stories: what is written of them in the documents is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from memstory.language.capabilities import FEATURES, families, operations
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.outcomes import GROUPS, capability_scores, capability_table, totals_table

PAGE = Path(__file__).parents[4] / "docs/how-to/compare.md"


def words(cell):
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_table_in_the_documents_is_the_definition():
    rows = re.findall(r"^\| ([^|]+) \|([^|]*)\|([^|]*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    written = {name: (words(tags), words(needs)) for name, tags, needs in rows if name in GROUPS}
    defined = {
        name: (set(group.tags), {f"{one}*" if one.endswith(".") else one for one in group.needs})
        for name, group in GROUPS.items()
    }
    assert written == defined


def test_every_need_of_a_group_is_a_capability_that_stories_use():
    known = {*operations(), *FEATURES}
    prefixes = {f"{one.partition('.')[0]}." for one in known} | {f"{one}." for one in families()}
    assert {need for group in GROUPS.values() for need in group.needs} <= known | prefixes


def tables_of(run, *cases):
    columns = columns_of([run("one", *cases)])
    return totals_table(columns, {}), capability_table(
        capability_scores(columns), ["mine"], "Capability", in_full=False
    )


def test_a_group_of_which_nothing_was_judged_has_no_row(run):
    cases = [run.case("S1", tags=["recall"]), run.case("S2", "unsupported", tags=["update"])]
    _, shares = tables_of(run, *cases)
    assert [row[0] for row in shares.rows] == ["all shared stories", "recall"]


def test_a_run_that_only_measured_counts_nothing_that_passed_or_failed(run):
    totals, shares = tables_of(run, run.retrieval([1], outcome="measured"), run.case("S2", "unsupported"))
    assert list(totals.header) == ["Target", "measured", "unsupported"]
    assert shares.rows == []
    assert list(tables_of(run, run.case("S1"))[0].header) == ["Target", "passed", "failed"]
