"""The verdict on a suite, from a run on the controls."""

import pytest

from memstory.controls import CONTROLS, MUTANTS
from memstory.reporting.discrimination import controls_document, judge_controls, main
from memstory.reporting.markdown import as_markdown
from memstory.results.folder.results_file import write_results

KILLED_BY = {"nothing": "failed", "random": "failed", "grep": "failed", "everything": "failed", "oracle": "passed"}


@pytest.fixture
def judge(make_case, run_of):
    """Return a function: story -> {control: outcome}, and what stories say of controls, to findings."""

    def go(stories, said=None):
        cases = [
            make_case(story, target=f"control:{name}", outcome=outcome, **(said or {}).get(story, {}))
            for story, outcomes in stories.items()
            for name, outcome in outcomes.items()
        ]
        return judge_controls(run_of(cases))

    return go


def good(**changes):
    return {**KILLED_BY, **dict.fromkeys(MUTANTS, "failed"), **changes}


def three(**changes):
    return {"A1": good(**changes), "A2": good(), "A3": good(), "A4": good()}


def meaning(**control):
    return {"A1": {"control": control, "control_because": "so it is"}}


def test_a_suite_that_tells_good_from_bad_breaks_no_rule(judge):
    found = judge(three())
    assert (found.broken, found.weak, found.unseen) == ([], {}, [])
    assert "**Every rule holds**" in as_markdown(controls_document(found))


def test_a_mutant_that_too_few_stories_kill_is_named(judge):
    stories = {name: good(stale="passed") for name in ("A1", "A2", "A3")}
    stories |= {"A4": good(stale="unsupported"), "A5": good()}
    found = judge(stories)
    assert found.broken == ["control:stale: only 1 of the stories find its fault; 3 are needed"]
    assert found.kills["stale"] == ["A5"]


def test_a_story_that_the_oracle_fails_kills_nothing_and_is_wrong_itself(judge):
    found = judge(three(oracle="failed"))
    assert found.broken == ["A1: the oracle fails it, so no memory can be asked to pass; correct what it expects"]
    assert found.kills["leaky"] == ["A2", "A3", "A4"]


def test_a_story_that_the_oracle_cannot_do_is_no_fault(judge):
    assert judge(three(oracle="unsupported")).broken == []


def test_an_oracle_that_broke_is_told(judge):
    assert judge(three(oracle="error")).broken == ["A1: the oracle broke on it"]


def test_a_story_that_nothing_passes_must_say_that_it_is_meant_so(judge):
    assert "A1: a memory that remembers nothing passes it" in judge(three(nothing="passed")).broken[0]
    found = judge(three(nothing="passed"), meaning(nothing="passed"))
    assert (found.broken, found.weak) == ([], {})
    assert {name: case.control for name, case in found.expectations.items()} == {"A1": {"nothing": "passed"}}
    assert "so it is" in as_markdown(controls_document(found))


def test_what_a_story_means_must_be_so(judge):
    found = judge(three(), meaning(nothing="passed"))
    assert found.broken == ["A1 means control:nothing to have passed, but it is failed"]


@pytest.mark.parametrize("baseline", ["random", "grep", "everything"])
def test_a_story_that_a_baseline_passes_is_reported_and_no_fault(judge, baseline):
    found = judge(three(**{baseline: "passed"}))
    assert (found.broken, found.weak) == ([], {"A1": [baseline]})
    assert f"| A1 | {baseline} |" in as_markdown(controls_document(found))


def test_a_story_that_no_control_can_run_is_listed(judge):
    found = judge({**three(), "X": dict.fromkeys(CONTROLS, "unsupported")})
    assert (found.broken, found.unseen) == ([], ["X"])


def test_a_control_that_was_not_run_leaves_the_suite_unjudged(judge):
    stories = three()
    for outcomes in stories.values():
        del outcomes["grep"]
    assert judge(stories).broken == ["control:grep was not run: name it with --target"]


def test_an_invalid_story_is_a_broken_rule(judge):
    assert "A1 cannot be run as written" in judge(three(random="invalid")).broken


def test_the_command_writes_the_page_and_exits_by_the_rules(make_case, run_of, tmp_path, capsys):
    def write(stories):
        cases = [
            make_case(story, target=f"control:{name}", outcome=outcome)
            for story, outcomes in stories.items()
            for name, outcome in outcomes.items()
        ]
        write_results(tmp_path / "results.json", run_of(cases))
        return main([str(tmp_path)])

    assert write(three()) == 0
    assert "stale: killed by 4 stories" in capsys.readouterr().out
    assert (tmp_path / "report.md").read_text("utf-8").startswith("# What the controls say of 4 stories")
    assert write(three(nothing="passed")) == 1


def test_a_folder_without_results_cannot_be_judged(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "holds neither" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("control", "ranks", "message"),
    [
        ("nothing", [0, 0], None),
        ("nothing", [1, 0], "a memory that remembers nothing has recall@10 0.500, not 0"),
        ("oracle", [1, 1], None),
        ("oracle", [1, 0], "the oracle has recall@10 0.500, not 1"),
        ("random", [0, 0], None),
        ("random", [1, 0], "chance alone has recall@10 0.500"),
    ],
)
def test_a_story_that_only_measures_gives_the_controls_the_scores_that_they_must_have(run, control, ranks, message):
    case = run.retrieval(ranks, outcome="measured", target=f"control:{control}")
    broken = [line for line in judge_controls(run("one", case).run).broken if line.startswith("Q1: ")]
    assert [message in line for line in broken] == ([True] if message else [])
