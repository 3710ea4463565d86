"""A badge is green only for what was judged and found whole."""

import json

import pytest

from memstory.commands.results.badge import badge
from memstory.reporting.writing import write_reports


@pytest.fixture
def sound(make_case):
    """A case of each grave kind that passed."""
    return [make_case("L1", harm="leak"), make_case("L2", harm="loss")]


def drawn(run_of, cases, **about):
    (target,) = {case.target for case in cases}
    made = badge(run_of(cases, **about), target)
    assert (made["schemaVersion"], made["label"]) == (1, "memory")
    return made["message"], made["color"]


def test_what_leaked_and_was_lost_in_no_case_is_green(run_of, sound, make_case):
    others = [make_case("S5", harm="wrong"), make_case("S9", outcome="unsupported")]
    assert drawn(run_of, [*sound, *others]) == ("leaks 0, losses 0", "brightgreen")


@pytest.mark.parametrize(("harm", "said"), [("leak", "leaks 1, losses 0"), ("loss", "leaks 0, losses 1")])
def test_one_leak_or_one_loss_is_red(run_of, sound, make_case, harm, said):
    assert drawn(run_of, [*sound, make_case("S6", outcome="failed", harm=harm)]) == (said, "red")


def test_another_failure_is_orange_and_counted(run_of, sound, make_case):
    cases = [*sound, make_case("S6", outcome="failed", harm="rank"), make_case("S7", outcome="failed")]
    assert drawn(run_of, cases) == ("leaks 0, losses 0, 2 failed otherwise", "orange")


@pytest.mark.parametrize("outcome", ["error", "invalid"])
def test_what_broke_is_not_green(run_of, sound, make_case, outcome):
    cases = [*sound, make_case("S6", outcome=outcome)]
    assert drawn(run_of, cases) == ("leaks 0, losses 0, 1 error", "yellow")


def test_a_run_that_was_cut_short_is_not_green(run_of, sound):
    assert drawn(run_of, sound, complete=False) == ("leaks 0, losses 0, cut short", "yellow")


@pytest.mark.parametrize("outcome", ["unsupported", "measured", "error"])
def test_a_run_that_judged_nothing_is_grey_and_says_so(run_of, make_case, outcome):
    assert drawn(run_of, [make_case("S6", outcome=outcome, harm="leak")]) == ("nothing judged", "lightgrey")


def test_a_case_that_passed_without_a_check_was_not_judged(run_of, make_case):
    case = make_case("S6", harm="leak", trials=[make_case.trial(verdicts=())])
    assert drawn(run_of, [case]) == ("nothing judged", "lightgrey")


def test_a_kind_of_which_no_case_was_judged_is_not_counted_as_nought(run_of, make_case):
    assert drawn(run_of, [make_case("S6", harm="loss")]) == ("leaks not tested, losses 0", "yellow")


@pytest.fixture
def _reported(terminal, run_of, sound, make_case):
    where = terminal.folder / "reports"
    where.mkdir()
    write_reports(where, run_of([*sound, make_case("S6", target="layers", outcome="failed", harm="leak")]))


@pytest.mark.usefixtures("_reported")
def test_the_command_prints_the_badge_of_the_named_target_or_writes_it(terminal):
    said = terminal.type("badge", "reports", "--target", "layers")
    assert said.code == 0
    assert json.loads(said.out)["color"] == "red"
    assert terminal.type("badge", "reports", "--target", "topics", "--output", "badges/memory.json").code == 0
    assert json.loads((terminal.folder / "badges/memory.json").read_text("utf-8"))["color"] == "brightgreen"


@pytest.mark.usefixtures("_reported")
def test_a_run_of_several_targets_needs_the_name_of_one(terminal):
    said = terminal.type("badge", "reports")
    assert (said.code, said.out) == (2, "")
    assert "layers, topics" in said.err
    said = terminal.type("badge", "reports", "--target", "mem0")
    assert said.code == 2
    assert "no target 'mem0'" in said.err
