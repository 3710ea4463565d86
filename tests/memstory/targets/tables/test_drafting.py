import tomllib
from dataclasses import replace

import pytest

from memstory.contract.target import ToolSchema
from memstory.targets.tables.drafting import draft

FORMAT = {"type": "string", "enum": ["text", "json"]}


def tool(name, required=(), /, **properties):
    return ToolSchema(name=name, description="", parameters={"properties": properties, "required": [*required]})


NOTES = [
    tool("list_memory_projects", output_format=FORMAT),
    tool("read_content", ["path"], path={"type": "string"}),
    tool("write_note", ["title", "content"], title={"type": "string"}, content={"type": "string"},
         overwrite={"type": "boolean"}, output_format=FORMAT),
    tool("read_note", ["identifier"], identifier={"type": "string"}, output_format=FORMAT),
    tool("edit_note", ["identifier", "operation"], identifier={"type": "string"}, content={"type": "string"},
         operation={"type": "string", "enum": ["append", "find_replace"]}),
    tool("delete_project", ["project_name"], project_name={"type": "string"}),
    tool("delete_note", ["identifier"], identifier={"type": "string"}),
]  # fmt: skip


def test_verbs_are_found_in_names_whose_nouns_are_notes_and_not_projects():
    drafted = tomllib.loads(draft("notes", {"command": ["serve"]}, NOTES))["targets"]["notes"]
    tools = {name: drafted[name]["tool"] for name in ("add", "get", "update", "delete")}
    assert tools == {"add": "write_note", "get": "read_note", "update": "edit_note", "delete": "delete_note"}
    assert "list" not in drafted


def test_constants_ask_for_json_and_for_an_add_that_replaces():
    drafted = tomllib.loads(draft("notes", {"command": ["serve"]}, NOTES))["targets"]["notes"]
    assert drafted["add"]["args"] == {
        "title": "{own_id}", "content": "{text}", "overwrite": True, "output_format": "json"
    }  # fmt: skip
    assert drafted["get"]["args"]["output_format"] == "json"


TEXT = {"type": "string"}
GRAPH = [
    tool("add_observations", ["observations"], observations={"type": "array", "items": {
        "type": "object", "required": ["entityName", "contents"],
        "properties": {"entityName": TEXT, "contents": {"type": "array", "items": TEXT}}}}),
    tool("create_entities", ["entities"], entities={"type": "array", "items": {
        "type": "object", "required": ["name", "entityType", "observations"],
        "properties": {"name": TEXT, "entityType": TEXT, "observations": {"type": "array", "items": TEXT}}}}),
    tool("create_relations", ["relations"], relations={"type": "array", "items": {
        "type": "object", "required": ["source", "target"], "properties": {"source": TEXT, "target": TEXT}}}),
    tool("search_nodes", ["query"], query=TEXT, limit={"type": "number"}),
    tool("delete_entity", ["name"], name=TEXT),
    tool("delete_relation", ["source", "target"], source=TEXT, target=TEXT),
]  # fmt: skip
KEYS = [
    tool("context_save", ["key", "value"], key=TEXT, value=TEXT, category=TEXT),
    tool("context_get", key=TEXT, limit={"type": "number"}),
    tool("context_search", ["query"], query=TEXT),
    tool("context_list_channels", limit={"type": "number"}),
    tool("context_batch_delete", keys={"type": "array", "items": TEXT}),
]


def drafted_of(tools):
    return tomllib.loads(draft("mine", {"command": ["serve"]}, tools))["targets"]["mine"]


def test_a_list_of_objects_is_drafted_as_one_of_them_under_an_id_of_our_own():
    drafted = drafted_of(GRAPH)
    entity = {"name": "{own_id}", "entityType": "{kind|note}", "observations": ["{text}"]}
    assert drafted["add"] == {"tool": "create_entities", "args": {"entities": [entity]}}
    assert drafted["delete"] == {"tool": "delete_entity", "args": {"name": "{id}"}}


def test_what_a_list_of_objects_needs_is_shown_where_nothing_is_known_for_it():
    (odd,) = [replace(one, name="add_memory_links") for one in GRAPH if one.name == "create_relations"]
    assert '# FILL IN the argument "relations" (array of { source, target })' in draft("n", {"command": ["s"]}, [odd])


def test_what_a_memory_is_known_by_is_its_key_and_its_id():
    drafted = drafted_of(KEYS)
    assert drafted["add"]["args"] == {"key": "{own_id}", "value": "{text}", "category": "{kind}"}
    assert drafted["get"] == {"tool": "context_get", "args": {"key": "{id}"}}
    assert drafted["delete"] == {"tool": "context_batch_delete", "args": {"keys": ["{id}"]}}
    assert "list" not in drafted


def test_no_id_is_asked_for_where_the_draft_sends_one():
    assert "where its reply has the new id" not in draft("mine", {"command": ["serve"]}, KEYS)


def test_an_argument_with_choices_is_left_to_the_reader_with_its_choices():
    assert '# FILL IN the argument "operation" (one of: append, find_replace)' in draft("n", {"command": ["s"]}, NOTES)


@pytest.mark.parametrize("name", ["drop_note", "erase_memory", "forget_fact", "removeNote"])
def test_a_tool_that_takes_an_id_away_is_delete(name):
    tools = [*NOTES[:5], tool(name, ["note_id"], note_id={"type": "string"})]
    drafted = tomllib.loads(draft("notes", {"command": ["serve"]}, tools))["targets"]["notes"]
    assert drafted["delete"] == {"tool": name, "args": {"note_id": "{id}"}}


@pytest.mark.parametrize("name", ["erase_all", "deleteAllMemories", "clear_all_notes", "drop_search_memories"])
def test_a_tool_that_takes_memories_away_is_never_drafted_as_one_that_reads_them(name):
    drafted = draft("notes", {"command": ["serve"]}, [tool(name, user_id={"type": "string"}, query={"type": "string"})])
    assert set(tomllib.loads(drafted)["targets"]["notes"]) == {"type", "command"}
    assert f"# Tools that are not used: {name}" in drafted
