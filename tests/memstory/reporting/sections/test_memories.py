"""The first table of a comparison: which memory, and what it loses."""

from dataclasses import replace

import pytest

from memstory.contract.values import MADE_BY
from memstory.reporting.document import DASH
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.costs import latencies
from memstory.reporting.sections.memories import memories_section
from memstory.reporting.sections.outcomes import causes
from memstory.results.outcomes import Score


def rows_of(*runs):
    """Return the table as a mapping for each memory, in its order."""
    columns = columns_of(runs)
    parts = memories_section(columns, causes(columns), latencies(columns)).parts
    (table,) = [one for one in parts if hasattr(one, "rows")]
    return [dict(zip(map(str, table.header), map(str, row), strict=True)) for row in table.rows]


def test_a_memory_that_leaks_is_below_one_that_only_ranks_badly(run):
    leaky = run.case(target="leaky", outcome="failed", harm="leak")
    weak = [run.case(f"S{number}", target="weak", outcome="failed", harm="rank", reason=f"{word} fails")
            for number, word in enumerate(["order", "scores"])]  # fmt: skip
    rows = rows_of(run("one", leaky, *weak))
    assert [(row["memory"], row["leak"], row["rank"]) for row in rows] == [("weak", "", "2"), ("leaky", "1", "")]


def test_cases_that_failed_alike_are_one_cause_and_a_harm_that_nobody_does_has_no_column(run):
    alike = [run.case(f"S{number}", target="a", outcome="failed", harm="loss", reason=f"hits lack 'n{number}'")
             for number in range(5)]  # fmt: skip
    first, second = rows_of(run("one", *alike, run.case(target="b")))
    assert (first["memory"], second["loss"]) == ("b", "1")
    assert "leak" not in first


def test_our_own_memories_are_marked_and_below_the_others_however_good(run):
    ours = run.case(target="turns", about={MADE_BY: "memstory"})
    theirs = run.case(target="theirs", outcome="failed", harm="leak")
    assert [row["memory"] for row in rows_of(run("one", ours, theirs))] == ["theirs", "turns (ours)"]


def test_what_cannot_be_done_is_named_by_the_capabilities_of_most_stories(run):
    cases = [
        run.case(f"S{number}", "unsupported", target="a", reason=f"'a' does not support {name}", needs=(name,))
        for number, name in enumerate(["list", "update", "update"])
    ]
    first, second = rows_of(run("one", *cases, run.case(target="b")))
    assert (first["memory"], first["cannot do"]) == ("a", "3 stories: `update`, `list`")
    assert second["cannot do"] == ""


@pytest.mark.parametrize(("low", "shown"), [(0.4, "0.500 [0.40, 0.60]"), (None, None)])
def test_recall_is_shown_with_its_interval_at_the_most_hits_and_only_with_one(run, low, shown):
    scores = (
        Score(metric="recall@5", value=0.3, questions=300, low=low, high=0.6),
        Score(metric="recall@10", value=0.5, questions=300, low=low, high=0.6),
        Score(metric="recall@10", value=0.9, questions=30, low=low, high=0.6, category="easy"),
    )
    one = run("one", run.case("L1", target="a"), run.case(target="b"))
    scored, other = one.run.cases
    first, second = rows_of(replace(one, run=replace(one.run, cases=(replace(scored, scores=scores), other))))
    assert first.get("L1 R@10") == shown
    assert second.get("L1 R@10") == (shown and str(DASH))


def test_what_a_memory_needs_is_what_it_runs_on_without_what_a_story_brings(run):
    about = {"store": "sqlite", "embedder": "fixed-2", "chat": "rules (deterministic stand-in)"}
    row, _ = rows_of(run("one", run.case(target="a", about=about), run.case(target="b")))
    assert row["needs"] == "store: sqlite"


def test_one_memory_alone_is_compared_with_nothing(run):
    columns = columns_of([run("one", run.case())])
    assert not memories_section(columns, [], []).parts
