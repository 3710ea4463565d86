from __future__ import annotations

import pytest

from memstory_reference.adapters.offline_chat import tool_roles
from memstory_reference.ports import ToolSpec


def named(tool: tool_roles.Tool | None) -> str | None:
    return tool.spec.name if tool else None


def roles(tools) -> dict[str, str | None]:
    found = tool_roles.assign(tools)
    return {
        "save_topic": named(found.save_topic),
        "recall_topic": named(found.recall_topic),
        "note": named(found.note),
        "search": named(found.search),
        "forget": named(found.forget),
    }


def spec(name: str, *parameters: str, required: tuple[str, ...] = (), description: str = "") -> ToolSpec:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return ToolSpec(
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
    tools = [spec("search", "query", description="Search products."), spec("search_memory", "query")]
    assert roles(tools)["search"] == "search_memory"
    assert roles(tools[::-1])["search"] == "search_memory"


def test_tool_that_needs_what_only_its_author_knows_has_no_role():
    assert roles([spec("memory_search", "query", "collection_name", required=("collection_name",))])["search"] is None


def test_tool_that_deletes_is_never_asked_to_save_or_search():
    found = roles([spec("delete_memories", "query", "content"), spec("memory_delete", "topic")])
    assert (found["search"], found["note"], found["recall_topic"]) == (None, None, None)
    assert found["forget"] == "delete_memories"


def test_list_parameter_gets_a_list():
    tool = ToolSpec(
        name="memory_add",
        description="",
        parameters={"type": "object", "properties": {"documents": {"type": "array"}}, "required": ["documents"]},
    )
    found = tool_roles.assign([tool]).note
    assert found
    assert tool_roles.note_call(found, "tea").arguments == {"documents": ["tea"]}


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
    tool = ToolSpec(
        name="search_memory",
        description="",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}, "more": schema},
            "required": ["query", "more"],
        },
    )
    found = tool_roles.assign([tool]).search
    assert found
    assert tool_roles.search_call(found, "tea").arguments == {"query": "tea", "more": value}


def test_forgetting_by_id_waits_until_the_id_is_known():
    found = tool_roles.assign([spec("forget_memory", "memory_id", required=("memory_id",))]).forget
    assert found
    assert tool_roles.forget_call(found, topic="user.name", thing="my name", memory_id=None) is None
    call = tool_roles.forget_call(found, topic="user.name", thing="my name", memory_id="7")
    assert call
    assert call.arguments == {"memory_id": "7"}


@pytest.mark.parametrize(
    "parameters",
    [{}, {"properties": None}, {"properties": {"query": True}}, {"properties": {"query": {}}, "required": None}],
)
def test_odd_schemas_are_read_without_a_traceback(parameters):
    tool_roles.assign([ToolSpec(name="search_memory", description="", parameters=parameters)])
