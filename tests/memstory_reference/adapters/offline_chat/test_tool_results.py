from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.offline_chat.tool_results import Finding, Outcome, ToolResult, read_result
from memstory_reference.ports import ToolRequest

ASK = ToolRequest(name="search_memory", arguments={"query": "x"})


def read(text: str, *, reads: bool = True) -> ToolResult:
    return read_result(ASK, text, reads=reads)


def test_topic_has_its_key_and_value():
    result = read("[Memory: user.language_preference] Elixir, since 2019")
    assert (result.outcome, result.topic, result.value) == (
        Outcome.KEPT,
        "user.language_preference",
        "Elixir, since 2019",
    )


def test_recall_list_is_read_line_by_line():
    result = read(
        "[Memory recall — 2026-05-31]\n"
        "1. (relevance: 0.91) 2026-05-30 Q: What is the capital of France? A: Paris.\n"
        "2. (relevance: 0.40) undated A note without a question"
    )
    assert result.findings == (
        Finding(text="What is the capital of France?", answer="Paris.", date="2026-05-30", rank=0),
        Finding(text="A note without a question", rank=1),
    )


@pytest.mark.parametrize(
    "text", ["No memories found.", "no results", "[]", "{}", "", "null", '{"results": []}', "Nothing found."]
)
def test_nothing_is_nothing(text):
    assert read(text).outcome is Outcome.NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "Memory unavailable: embedder down",
        "Error: topic is required",
        "topic 'x' is not allowed; allowed: user.*",
        "tool search timed out",
    ],
)
def test_failure_is_told_in_its_own_words(text):
    result = read(text)
    assert (result.outcome, result.value) == (Outcome.FAILED, text)


def test_confirmation_of_a_save_is_done():
    assert read("Memory saved: user.name", reads=False).outcome is Outcome.DONE
    assert read('{"success": true, "id": "7"}', reads=False).outcome is Outcome.DONE
    assert read('{"success": false, "message": "full"}', reads=False).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "tree",
    [
        [{"id": "7", "content": "I live in Graz", "created_at": "2026-05-30T10:00:00Z"}],
        {"results": [{"id": "7", "text": "I live in Graz", "metadata": {"timestamp": "2026-05-30T10:00:00Z"}}]},
        {
            "memories": [
                {"memory": {"content_hash": "7", "content": "I live in Graz", "created_at": "2026-05-30T10:00:00Z"}}
            ]
        },
    ],
)
def test_json_of_other_memories_is_read(tree):
    assert read(json.dumps(tree)).findings == (Finding(text="I live in Graz", date="2026-05-30T10:00:00Z", id="7"),)


def test_json_list_of_strings_is_read():
    assert [finding.text for finding in read('["one", "two"]').findings] == ["one", "two"]


def test_lines_of_an_unknown_memory_are_read_without_their_bullets():
    result = read("Found 2 memories:\n- I live in Graz\n* I am 34")
    assert [finding.text for finding in result.findings] == ["I live in Graz", "I am 34"]


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(json.dumps)
)
def test_any_result_is_read_without_a_traceback(text):
    assert read(text).outcome in set(Outcome)
