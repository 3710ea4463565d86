import tomllib

import pytest

from memstory.contract.target import ToolSchema
from memstory.targets.tables.drafting import draft

FORMAT = {"type": "string", "enum": ["text", "json"]}


def tool(name, required=(), **properties):
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
        "title": "{key}", "content": "{text}", "overwrite": True, "output_format": "json"
    }  # fmt: skip
    assert drafted["get"]["args"]["output_format"] == "json"


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
