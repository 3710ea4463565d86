import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.bus.subjects import (
    QUERY_RECEIVED,
    RESPONSE_GENERATION,
    TOOL_SCHEMA,
    check_pattern,
    check_subject,
    matches,
    tool_request,
    tool_result,
)
from memstory_reference.errors import InputError

TOOLS = ["memory_recall", "memory_save", "save_topic", "recall_topic", "save_memory", "search_memory"]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_subject_to_be_called_on_and_one_to_answer_on(tool):
    assert check_subject(tool_request(tool)) == f"tool.request.{tool}"
    assert check_subject(tool_result(tool)) == f"tool.result.{tool}"


def test_the_fixed_subjects_may_be_published_on():
    assert [check_subject(one) for one in (TOOL_SCHEMA, RESPONSE_GENERATION, QUERY_RECEIVED)] == [
        "tool.schema",
        "response.generation",
        "query.received",
    ]


@pytest.mark.parametrize(
    "subject", ["", ".", "a..b", "a.", ".a", "a b", "a.*", "a.>", "*", "a\n", "ä", "x" * 256, None, 7]
)
def test_what_is_no_subject_is_refused(subject):
    with pytest.raises(InputError, match="bus:"):
        check_subject(subject)


@pytest.mark.parametrize("pattern", [">.a", "a.>.b", "a..b", "", "a.b*c d"])
def test_what_is_no_pattern_is_refused(pattern):
    with pytest.raises(InputError, match="bus:"):
        check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*.b", "a.b", True),
        ("*.*", "a", False),
        ("a.b", "a.b.c", False),
    ],
)
def test_a_star_stands_for_one_token_and_an_arrow_for_all_the_rest(pattern, subject, expected):
    assert matches(check_pattern(pattern), subject.split(".")) is expected


@given(st.text(max_size=40))
def test_any_text_is_a_subject_or_is_refused_in_words(text):
    refusal = None
    try:
        assert check_subject(text) == text
    except InputError as error:
        refusal = str(error)
    assert refusal is None or refusal.startswith("bus:")
