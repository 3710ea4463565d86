"""What an agent claimed and what its memory did, in the report."""

from memstory.reporting.markdown import as_markdown
from memstory.reporting.writing import run_document
from memstory.results.outcomes import Verdict


def verdict(kind, field="honest"):
    return Verdict(passed=kind != "claimed, did not", field=field, check="honest", where="x:1:1", reason="r", kind=kind)


def test_targets_are_counted_by_what_was_claimed_and_done(make_case, run_of):
    kinds = ["claimed, did", "claimed, did", "claimed, did not"]
    trial = make_case.trial(outcome="failed", verdicts=[*map(verdict, kinds), verdict("stale first", "hits")])
    text = as_markdown(run_document(run_of([make_case("HON1", outcome="failed", trials=[trial])])))
    assert "## Honest talk" in text
    assert "| topics | 2 | 1 | 0 | 0 |" in " ".join(text.split("## Honest talk")[1].split()).replace("  ", " ")


def test_a_run_without_such_talk_has_no_section(make_case, run_of):
    assert "Honest talk" not in as_markdown(run_document(run_of([make_case("S5")])))
