from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.models import ToolRequest
from memstory.contract.values import ToolSchema
from memstory_reference.adapters.offline_chat import announced_tools as tools
from memstory_reference.adapters.offline_chat.announced_tools import FoundMemory, ToolResult, read_result

ASK = ToolRequest(name="search_memory", arguments={"query": "x"})
SAVE = ToolRequest(name="save_topic", arguments={"topic": "user.name", "content": "Ana"})


def read(text: str, request: ToolRequest = ASK) -> ToolResult:
    return read_result(request, text)


def test_topic_has_its_key_and_value():
    result = read("[Memory: user.language_preference] Elixir, since 2019")
    assert (result.topic, result.value) == ("user.language_preference", "Elixir, since 2019")


def test_recall_list_is_read_line_by_line():
    result = read(
        "[Memory recall — 2026-05-31]\n"
        "1. (relevance: 0.91) 2026-05-30 Q: What is the capital of France? A: Paris.\n"
        "2. (relevance: 0.40) undated A note without a question"
    )
    assert result.findings == [
        FoundMemory(text="What is the capital of France?", answer="Paris.", date="2026-05-30", rank=0),
        FoundMemory(text="A note without a question", rank=1),
    ]


def test_what_the_assistant_said_is_an_answer_and_nothing_that_the_user_told():
    spoken = [
        {"id": "1", "content": "I live in Graz.", "speaker": "user"},
        {"id": "2", "content": "I remember: Graz.", "speaker": "assistant"},
    ]
    assert read(json.dumps(spoken)).findings == [
        FoundMemory(text="I live in Graz.", id="1", rank=0),
        FoundMemory(text="", answer="I remember: Graz.", id="2", rank=1),
    ]


@pytest.mark.parametrize(
    "text", ["No memories found.", "no results", "[]", "{}", "", "null", '{"results": []}', "Nothing found."]
)
def test_nothing_is_nothing(text):
    assert read(text) == ToolResult(request=ASK, findings=[])


@pytest.mark.parametrize(
    "text",
    [
        "Memory unavailable: embedder down",
        "Error: topic is required",
        "topic 'x' is not allowed; allowed: user.*",
        "tool search timed out",
        "this is not stored: it holds the key of a service",
    ],
)
def test_failure_is_told_in_its_own_words(text):
    assert read(text).failure == text


@pytest.mark.parametrize("text", ["Memory saved: user.name", '{"success": true, "id": "7"}', "[Memory: user.name] Ana"])
def test_confirmation_of_a_save_is_no_failure_and_finds_nothing(text):
    assert read(text, SAVE) == ToolResult(request=SAVE, findings=[])


def test_refused_save_is_a_failure():
    assert "full" in read('{"success": false, "message": "full"}', SAVE).failure


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
    assert read(json.dumps(tree)).findings == [FoundMemory(text="I live in Graz", date="2026-05-30T10:00:00Z", id="7")]


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
    assert all(finding.text for finding in read(text).findings)


def named(tool: tools.AnnouncedTool | None) -> str | None:
    return tool.spec.name if tool else None


def roles(announced) -> dict[str, str | None]:
    found = tools.assign_roles(announced)
    return {
        "save_topic": named(found.save_topic),
        "recall_topic": named(found.recall_topic),
        "note": named(found.note),
        "search": named(found.search),
        "forget": named(next(iter(found.forgets), None)),
    }


def spec(name: str, *parameters: str, required: tuple[str, ...] = (), description: str = "") -> ToolSchema:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return ToolSchema(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": list(required)},
    )


def test_single_purpose_tools_have_one_role_each(toolsets):
    assert roles(toolsets["single"]) == {
        "save_topic": "save_topic",
        "recall_topic": "recall_topic",
        "note": "save_memory",
        "search": "search_memory",
        "forget": None,
    }


def test_dual_tool_reads_by_topic_and_by_query(toolsets):
    found = roles(toolsets["dual"])
    assert (found["recall_topic"], found["search"], found["save_topic"]) == (
        "memory_recall",
        "memory_recall",
        "memory_save",
    )


def test_tools_of_other_memories_are_told_by_their_parameters(toolsets):
    assert roles(toolsets["notes"]) == {
        "save_topic": None,
        "recall_topic": None,
        "note": "add",
        "search": "search",
        "forget": None,
    }
    found = roles(toolsets["foreign"])
    assert (found["note"], found["search"], found["forget"]) == ("store_memory", "search_memories", "forget_memory")


def test_search_of_the_web_is_no_memory():
    assert roles([spec("search_web", "query", description="Search the internet.")])["search"] is None


def test_memory_is_preferred_to_another_search():
    announced = [spec("search", "query", description="Search products."), spec("search_memory", "query")]
    assert roles(announced)["search"] == "search_memory"
    assert roles(announced[::-1])["search"] == "search_memory"


def test_tool_that_needs_what_only_its_author_knows_has_no_role():
    assert roles([spec("memory_search", "query", "collection_name", required=("collection_name",))])["search"] is None


def test_tool_that_deletes_is_never_asked_to_save_or_search():
    found = roles([spec("delete_memories", "query", "content"), spec("memory_delete", "topic")])
    assert (found["search"], found["note"], found["recall_topic"]) == (None, None, None)
    assert found["forget"] == "delete_memories"


def test_list_parameter_gets_a_list():
    tool = ToolSchema(
        name="memory_add",
        description="",
        parameters={"type": "object", "properties": {"documents": {"type": "array"}}, "required": ["documents"]},
    )
    found = tools.assign_roles([tool]).note
    assert found
    assert tools.tool_request(found, text="tea").arguments == {"documents": ["tea"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": 1}, 1),
        ({"type": "string", "enum": ["fact", "event"]}, "fact"),
        ({"type": "boolean"}, False),
        ({"type": "object"}, {}),
        ({"type": "string", "default": "all"}, "all"),
    ],
)
def test_required_parameter_beside_the_role_gets_a_plain_value(schema, value):
    tool = ToolSchema(
        name="search_memory",
        description="",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}, "more": schema},
            "required": ["query", "more"],
        },
    )
    found = tools.assign_roles([tool]).search
    assert found
    assert tools.tool_request(found, query="tea").arguments == {"query": "tea", "more": value}


def test_every_tool_that_forgets_has_the_role(toolsets):
    found = tools.assign_roles(toolsets["forgetting"]).forgets
    assert [(one.spec.name, *one.parameters) for one in found] == [("forget_topic", "key"), ("forget_memory", "id")]


@pytest.mark.parametrize(
    "parameters",
    [{}, {"properties": None}, {"properties": {"query": True}}, {"properties": {"query": {}}, "required": None}],
)
def test_odd_schemas_are_read_without_a_traceback(parameters):
    tools.assign_roles([ToolSchema(name="search_memory", description="", parameters=parameters)])
