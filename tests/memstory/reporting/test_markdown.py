import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from memstory.reporting.markdown import Links, as_markdown
from memstory.reporting.writing import first_screen, run_document
from memstory.results.outcomes import Score

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OWN_TAGS = re.compile(r"<details><summary>.*</summary>|</details>")


@pytest.fixture
def report(run_of):
    about = {"started": "2026-11-20T10:00:00+00:00", "options": {"chat": "offline"}}
    return lambda results, **more: as_markdown(run_document(run_of(results, **about, **more)))


def section(markdown, title):
    return markdown.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_headline_counts_every_outcome_that_occurred(results, report):
    first = report(results).split("\n")[0]
    assert first == "# memstory: 2 passed, 1 failed, 1 unsupported, 1 error, 1 invalid"


def test_a_run_in_which_nothing_was_judged_is_not_called_a_success(make_case, report):
    markdown = report([make_case(outcome="unsupported")])
    assert "**Nothing was judged** in 1 case. 1 unsupported" in markdown
    assert "Every case that ran passed" not in markdown


def test_a_run_in_which_nothing_was_judged_says_what_went_wrong(make_case, report):
    markdown = report([make_case(outcome="error"), make_case("S6", outcome="measured")])
    assert "**Nothing was judged** in 2 cases: 1 ended in an error before a judgement. 1 measured" in markdown


def test_a_green_run_still_tells_what_could_not_run(make_case, report):
    markdown = report([make_case(), make_case("S6", outcome="unsupported")])
    assert (
        "**Every case that ran passed** (1 of 2). 1 unsupported: the target lacks something, and they prove nothing."
        in markdown
    )


def test_a_run_that_was_cut_short_says_so_at_the_top(results, report):
    assert "The run was cut short" in report(results, complete=False).split("## ")[0]


def test_a_stand_in_for_the_language_model_is_named_in_plain_words(results, report):
    markdown = report(results)
    assert "**Not a language model:** “offline rules (deterministic stand-in)”" in markdown.split("## ")[0]
    assert "| Embedder | all-MiniLM-L6-v2 |" in markdown


def test_a_real_language_model_brings_no_such_note(make_case, report):
    trial = make_case.trial()
    real = replace(trial, recording=replace(trial.recording, about={"chat": "qwen3:8b on Ollama"}))
    assert "No language model" not in report([make_case(trials=[real])])


def test_targets_that_answered_with_different_embedders_are_told_apart(make_case, report):
    trial = make_case.trial()
    other = replace(trial, recording=replace(trial.recording, about={"embedder": "nomic-embed-text"}))
    markdown = report([make_case(), make_case(target="layers", trials=[other])])
    assert "| Embedder | layers: nomic-embed-text; topics: all-MiniLM-L6-v2 |" in markdown


def test_the_matrix_shows_a_sign_for_each_outcome_and_stories_of_one_target_apart(results, report):
    matrix = section(report(results), "Stories on targets")
    assert "✅ passed, ❌ failed" in matrix
    assert "| S5 | Title of S5 | ⬜ | ✅ |" in matrix
    alone = matrix.split("<summary>topics only: ")[1]
    assert "| S6 | Title of S6 | ❌ |" in alone
    assert "| S9 | Title of S9 | ⚠️ |" in alone


def test_a_story_is_shown_with_its_slug(make_case, report):
    matrix = section(report([make_case("F", slug="tea-is-kept"), make_case("G")]), "Stories on targets")
    assert "| F tea-is-kept | Title of F | ✅ |" in matrix
    assert "| G | Title of G | ✅ |" in matrix


def test_rows_of_a_story_that_ended_alike_are_one_line(make_case, report):
    cases = [make_case("F", id=f"F[{row}]", row=row) for row in ("a", "b", "c")]
    matrix = section(report([*cases, make_case("F", outcome="failed", id="F[d]", row="d")]), "Stories on targets")
    assert "| F\\[a\\] and 2 more rows | Title of F | ✅ |" in matrix
    assert "| F\\[d\\] | Title of F | ❌ |" in matrix


def test_the_first_screen_has_totals_by_target_without_empty_columns(results, make_case, report):
    head = report(results).split("## ")[0]
    assert "| Target | passed | failed | unsupported | error | invalid | R@5 |" in head
    assert "| Target | passed | failed |\n" in report([make_case()]).split("## ")[0]


def test_totals_say_of_how_many_stories_a_recall_is_where_targets_were_judged_on_others(make_case, report):
    cases = [make_case.retrieval("Q1"), make_case.retrieval("Q1", "layers")]
    assert "R@5 is" not in report(cases).split("## ")[0]
    assert "not the same: layers 1, topics 2\n" in report([*cases, make_case.retrieval("Q2")]).split("## ")[0]


def test_failures_are_listed_by_harm_and_cause_the_worst_first(make_case, report):
    cases = [
        make_case(f"S{n}", outcome="failed", harm="rank", reason=f"a.yaml:{n}:1: hits count {n}, not 1")
        for n in (1, 2, 3)
    ]
    markdown = report([*cases, make_case("L", outcome="failed", harm="leak", reason="b.yaml:1:1: it was told")])
    assert "By harm: 1 leak, 3 rank (2 causes)." in markdown.split("## ")[0]
    rows = [line for line in section(markdown, "Failures by cause").split("\n") if line.startswith("| leak")]
    assert rows == ["| leak | topics | it was told | 1 | L |"]
    assert "| rank | topics | hits count 1, not 1 | 3 | S1, S2, S3 |" in markdown
    assert section(markdown, "Failures").count("### ") == 2
    assert "2 more failed for one of these causes" in markdown


def test_an_error_has_not_shown_its_harm(make_case, report):
    cases = [make_case("E", outcome="error", harm="leak"), make_case("F", outcome="failed", harm="leak")]
    assert "By harm: 1 leak, 1 error (2 causes)." in report(cases).split("## ")[0]


def test_what_changed_since_the_last_run_is_a_column(make_case, run_of):
    last = run_of([make_case(outcome="failed"), make_case("S6")])
    head = as_markdown(run_document(run_of([make_case(), make_case("S6")]), last=last)).split("## ")[0]
    assert "| topics | 2 |   | +1 |" in head


def test_links_open_the_line_of_the_story_and_the_case_on_the_page(make_case, run_of, tmp_path):
    (tmp_path / "stories").mkdir()
    (tmp_path / "stories/s5.yaml").touch()
    links = Links(folder=tmp_path / "reports/latest", page="report.html", roots=[tmp_path])
    markdown = as_markdown(run_document(run_of([make_case(outcome="failed")]), page="report.html"), links)
    assert "(report.html#case=S5%40topics)" in markdown
    assert "[stories/s5.yaml:9:14](../../stories/s5.yaml#L9)" in markdown


def test_targets_that_scored_alike_share_a_row(make_case, report):
    found = section(report([make_case.retrieval(), make_case.retrieval(target="layers")]), "Retrieval")
    assert "| Q1 | layers, topics | **total** |" in found


def test_a_story_that_could_not_be_read_is_invalid_everywhere_and_adds_no_target(make_case, report):
    unread = make_case("S1", target="", id="S1", title="", where="a.yaml:1:1", outcome="invalid", trials=[], covers=())
    markdown = report([unread, make_case("S2"), make_case("S2", target="layers")])
    assert "| Targets | layers, topics |" in markdown
    assert "| S1 | (could not be read) a.yaml:1:1 | ⚠️ | ⚠️ |" in markdown
    assert "| S1 | (could not be read) a.yaml:1:1 |\n" in report([unread])


def test_two_documents_that_could_not_be_read_are_two_rows(make_case, report):
    unread = [
        make_case(
            "document-1",
            target="",
            id=f"{name}::document-1",
            title="",
            where=f"{name}:1:1",
            outcome="invalid",
            trials=[],
        )
        for name in ("a.yaml", "b.yaml")
    ]
    matrix = section(report(unread), "Stories on targets")
    assert "a.yaml:1:1" in matrix
    assert "b.yaml:1:1" in matrix


def test_the_retrieval_table_has_total_categories_and_what_is_kept_apart_last(results, report):
    found = section(report(results), "Retrieval")
    rows = [line for line in found.split("\n") if line.startswith("| Q1")]
    assert rows == [
        "| Q1 | topics | **total** | 1 | 0.750 | 0.750 | 0.750 | 0.750 |",
        "| Q1 | topics | plain | 1 | 1.000 | 1.000 | 1.000 | 1.000 |",
        "| Q1 | topics | swapped *(apart)* | 1 | 0.500 | 0.500 | 0.500 | 0.500 |",
    ]
    assert "60 documents, the first 10 hits of 3 questions (1 without a usable label are not judged)" in found
    assert "facts: labels that could not be used and are left out (1)" in found
    assert "- q3: no document has the id 'z&#124;z'" in found


def test_the_retrieval_section_says_who_got_speakers_and_dates_as_fields_and_who_as_text(make_case, report):
    def case(target, as_turns):
        made = make_case.retrieval(target=target)
        (trial,) = made.trials
        record = replace(trial.recording.retrieval[0], name="locomo", as_turns=as_turns)
        return replace(made, trials=(replace(trial, recording=replace(trial.recording, retrieval=(record,))),))

    forms = {"turns": True, "topics": False, "layers": False, "unsaid": None}
    found = [
        line
        for line in section(report([case(*one) for one in forms.items()]), "Retrieval").split("\n")
        if "speaker" in line
    ]
    assert found == [
        "- locomo: speaker, session and date in the text alone for layers, topics",
        "- locomo: speaker, session and date as fields for turns",
    ]


def test_a_score_that_was_not_taken_is_a_dash_and_not_a_zero_and_one_that_nobody_took_has_no_column(make_case, report):
    case = make_case.retrieval()
    (trial,) = case.trials
    kept = tuple(score for score in trial.scores if score.metric != "mrr")
    markdown = report([replace(case, trials=(replace(trial, scores=kept),))])
    assert "| Q1 | topics | **total** | 1 | 0.750 | 0.750 | 0.750 |" in markdown
    both = report([make_case.retrieval(target="layers"), replace(case, trials=(replace(trial, scores=kept),))])
    assert "| Q1 | topics | **total** | 1 | 0.750 | 0.750 | 0.750 | - |" in both


def test_a_failure_tells_place_step_reason_both_values_and_what_the_agent_did(results, report):
    found = section(report(results), "Failures")
    assert "### ❌ S6\\[topics\\]: Title of S6" in found
    assert "stories/s6.yaml:1:1 — why it failed" in found
    assert "- stories/s5.yaml:9:14, step 1 (say): the answer does not contain 'Elixir'" in found
    assert "  - expected: 'Elixir'" in found
    assert "item added to root" in found
    assert "called memory_recall(topic='user.language') → Elixir" in found
    assert "answered: Your language is Elixir." in found


def test_a_reason_that_names_its_own_line_does_not_repeat_the_storys(make_case, report):
    found = section(report([make_case(outcome="failed", reason="stories/s5.yaml:12:5 step 2 (say): no")]), "Failures")
    assert "stories/s5.yaml:12:5 step 2 (say): no" in found
    assert "stories/s5.yaml:1:1" not in found


def test_questions_without_an_answer_do_not_change_the_number_behind_recall(make_case, report):
    case = make_case.retrieval()
    (trial,) = case.trials
    silent = Score(metric="abstention", value=0.25, questions=20)
    markdown = report([replace(case, trials=(replace(trial, scores=(*trial.scores, silent)),))])
    assert "| abstention |" in markdown
    assert "| Q1 | topics | **total** | 1 | 0.750 | 0.750 | 0.750 | 0.750 | 0.250 |" in markdown


def test_errors_and_invalid_stories_have_sections_of_their_own(results, report):
    markdown = report(results)
    assert "the store is gone" in section(markdown, "Errors")
    assert "Traceback: boom" in section(markdown, "Errors")
    assert "unknown step 'sya'" in section(markdown, "Invalid stories")


def test_unsupported_cases_are_grouped_by_their_reason(make_case, report):
    cases = [make_case(story, outcome="unsupported", reason="no chat") for story in ("S1", "S2", "S3")]
    assert "| no chat | 3 | S1\\[topics\\], S2\\[topics\\], S3\\[topics\\] |" in section(report(cases), "Could not run")


def test_only_passing_stories_show_a_requirement(make_case, report):
    cases = [
        make_case("S1", covers=("L-02", "L-10")),
        make_case("S2", outcome="failed", covers=("L-02", "L-03")),
        make_case("S3", outcome="unsupported", covers=("L-04",)),
    ]
    found = section(report(cases), "Requirements")
    assert "2 of the 4 requirements" in found
    rows = [line for line in found.split("\n") if line.startswith("| L-")]
    assert rows == [
        "| L-02 | S1\\[topics\\] | S2\\[topics\\] |",
        "| L-03 | - | S2\\[topics\\] |",
        "| L-04 | - | S3\\[topics\\] |",
        "| L-10 | S1\\[topics\\] | - |",
    ]


def test_a_trial_that_failed_among_others_is_shown_with_the_rate(make_case, report):
    trials = [make_case.trial("passed", 0), make_case.trial("failed", 1)]
    found = report([make_case(outcome="failed", trials=trials)])
    assert "Passed 1 of 2 judged trials (95% interval 0.09 to 0.91); shown is trial 2." in found


@pytest.mark.parametrize("count", [0, 1])
def test_a_report_of_next_to_nothing_is_still_a_report(make_case, count, report):
    markdown = report([make_case()] * count)
    assert markdown.endswith("in full.\n")


def test_the_summary_for_a_service_is_the_first_screen(results, run_of):
    text = as_markdown(first_screen(run_of(results)))
    assert text.startswith("# memstory: 2 passed, 1 failed")
    assert len(text.split("\n")) < 30
    assert "## Failures by cause" in text


HOSTILE = st.one_of(
    st.sampled_from(
        ["|", "a\nb", "```\n# x", "<script>x</script>", "[a](http://b)", "</details>", "\x1b[2J", "![](x)"]
    ),
    st.text(max_size=40),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(texts=st.lists(HOSTILE, min_size=7, max_size=7))
def test_no_text_of_story_or_target_can_break_the_report(make_case, texts, report):
    # SEC-15
    title, reason, answer, target, story, warning, covered = texts
    trial = make_case.trial("failed", answer=answer, warnings=(warning,))
    case = make_case(
        story, target=target or "t", outcome="failed", reason=reason, title=title, trials=[trial], covers=(covered,)
    )
    broken = make_case("S2", outcome="unsupported", reason=reason, title=title, covers=())
    clean = make_case("S", target="t", outcome="failed", trials=[replace(trial, warnings=("w",))])
    expected = structure(report([clean, replace(broken, reason="r", title="t", target="topics")]))
    assert structure(report([case, broken])) == expected or target == "topics"


def structure(markdown):
    """What the markdown is made of, without its words; tags must be the report's own."""
    kinds = []
    for token in READER.parse(markdown):
        children = {child.type for child in token.children or ()}
        assert not children & {"link_open", "image", "html_inline", "code_inline"} or "passed" in token.content
        if token.type == "html_block":
            assert all(OWN_TAGS.fullmatch(line) for line in token.content.strip().split("\n"))
        if token.type not in {"inline", "text"}:
            kinds.append(token.type)
    return sorted(kinds)
