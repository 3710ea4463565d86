"""What unsupported stories need of their target, and what its author can do."""

import pytest

from memstory.reporting.sections.cases import untried_parts, untried_stories
from memstory.reporting.terminal import terminal_summary


@pytest.fixture
def lacking(make_case):
    def make(*names, target="mine", shared=False, needs=None, story="S1"):
        reason = f"'{target}'{', which other cases use too,' if shared else ''} does not support {', '.join(names)}"
        return make_case(story, target=target, outcome="unsupported", reason=reason, needs=needs or names)

    return make


def test_each_number_counts_stories_that_run_once_what_stands_before_is_there(lacking, run_of):
    cases = [
        *[lacking("add.verbatim")] * 3,
        *[lacking("list")] * 2,
        lacking("add.verbatim", "list"),
        *[lacking("add.verbatim", "update")] * 2,
        lacking("clock", "restart"),
    ]
    assert untried_stories(run_of(cases)) == {
        "mine": "3 stories need `add.verbatim` (declare it if it holds), 3 more `list` (add the operation), "
        "2 more `update` (add the operation), 1 more `clock` and `restart` (declare it if it holds)"
    }


def test_of_an_object_the_parameter_that_promises_is_named(run, lacking, run_of):
    played = run.case("S2", about={"object": "mine", "place": "its own"})
    said = untried_stories(
        run_of([played, lacking("scope.user"), lacking("add.metadata", "search.where"), lacking("list")])
    )["mine"]
    assert "`list` (add a method)" in said
    assert "`scope.user` (add a parameter user_id)" in said
    assert "`add.metadata` and `search.where` (add a parameter metadata, add a parameter where)" in said
    assert "`scope.user` (declare it if it holds)" in untried_stories(run_of([lacking("scope.user")]))["mine"]


def test_what_a_server_of_many_cases_can_never_do_is_not_offered(lacking, run_of):
    cases = [lacking("get.id", shared=True), lacking("scope.names", shared=True), lacking("list", "crash", shared=True)]
    said = untried_stories(run_of(cases))["mine"]
    assert said == "1 story needs `get.id` (add the operation), 2 cannot be tried on a server that other cases use too"


def test_the_parts_of_another_memory_are_not_offered(lacking, run_of):
    cases = [lacking("option.page_size"), lacking("job.export", "list"), lacking("llm.scripted")]
    assert untried_stories(run_of(cases)) == {"mine": "3 speak of parts that only some memories have"}


def test_beyond_five_steps_the_rest_is_counted(lacking, run_of):
    names = ["list", "update", "delete", "get.id", "context", "clock", "restart"]
    said = untried_stories(run_of([lacking(name) for name in names]))["mine"]
    assert said.count("more `") == 4
    assert said.endswith(", 2 more something else")


def test_a_refusal_while_a_case_runs_and_a_control_need_nothing(make_case, lacking, run_of):
    refused = make_case("S1", outcome="unsupported", reason="a.yaml:1:1 step 1 (add): it does not support emoji")
    run = run_of([refused, lacking("list", target="control:grep")])
    assert untried_stories(run) == {}
    assert not untried_parts(run)


def test_the_terminal_says_it_of_each_target_unless_they_are_many(lacking, run_of):
    few = run_of([lacking("list"), lacking("list", target="other")])
    assert "mine, not tried: 1 story needs `list` (add the operation).\nother, not tried: " in terminal_summary(few)
    many = run_of([lacking("list", target=f"t{number}") for number in range(9)])
    assert "not tried" not in terminal_summary(many)
    assert len(untried_parts(many)[0].rows) == 9
