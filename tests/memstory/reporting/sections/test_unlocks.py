from memstory.reporting.sections.cases import unlocks, unlocks_in_words, unlocks_parts


def lacking(make_case, story, *names, target="topics", needs=None):
    reason = f"'{target}' does not support {', '.join(names)}"
    return make_case(story, target=target, outcome="unsupported", reason=reason, needs=needs or names)


def test_a_capability_counts_where_it_alone_is_lacking(make_case, run_of):
    run = run_of([
        lacking(make_case, "S1", "add.verbatim"),
        lacking(make_case, "S2", "add.verbatim"),
        lacking(make_case, "S3", "list"),
        lacking(make_case, "S4", "list", "update"),
        make_case("S5"),
    ])  # fmt: skip
    assert unlocks(run) == {"topics": [("add.verbatim", 2), ("list", 1)]}
    said = unlocks_in_words(run)
    assert said == "What topics would run if it could and said so: 2 more with 'add.verbatim', 1 more with 'list'."
    assert unlocks_parts(run)[0].rows == [["topics", "2 with `add.verbatim`, 1 with `list`"]]


def test_a_refusal_while_a_case_runs_promises_nothing(make_case, run_of):
    refused = make_case("S1", outcome="unsupported", reason="a.yaml:1:1 step 1 (add): it does not support emoji")
    assert unlocks(run_of([refused])) == {}
    assert not unlocks_parts(run_of([refused]))


def test_an_option_of_another_library_is_no_advice(make_case, run_of):
    assert unlocks(run_of([lacking(make_case, "S1", "option.page_size")])) == {}


def test_of_several_targets_only_the_report_says_it(make_case, run_of):
    run = run_of([lacking(make_case, "S1", "list"), lacking(make_case, "S1", "list", target="layers")])
    assert unlocks_in_words(run) == ""
    assert set(unlocks(run)) == {"topics", "layers"}
