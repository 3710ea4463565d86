"""The MCP server as a client meets it: its own process, spoken to over its stdin and stdout (M-13, MF-13)."""

import json
import os
import re
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from memstory.contract.codec import encode
from memstory.contract.errors import SetupError
from memstory.contract.installation import install_command
from memstory.contract.models import function_of
from memstory.contract.target import ToolSchema
from memstory_reference.cli import main
from memstory_reference.composition import extras
from memstory_reference.composition.systems import SYSTEMS, system_named

mcp = pytest.importorskip("mcp", reason="pip install '.[mcp]'")
COMMAND = (sys.executable, "-c", "import sys; from memstory_reference.cli import main; sys.exit(main())", "mcp")
NAMES = ["search_memories", "store_memory", "forget_memory"]


pytestmark = pytest.mark.usefixtures("minilm_weights")


@pytest.fixture
def connect(tmp_path):
    """Start a server on a folder of the test and connect the official client to it."""

    @asynccontextmanager
    async def opened(*arguments, mode="auto"):
        options = ["--path", str(tmp_path / "store"), *arguments]
        server = mcp.StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *options], env=dict(os.environ))
        async with mcp.Client(mcp.stdio_client(server), mode=mode) as client:
            yield client

    return opened


async def answer(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    (content,) = result.content
    structured = result.structured_content
    plain = structured["result"] if set(structured) == {"result"} else structured
    assert content.text == plain or json.loads(content.text) == plain
    return plain


async def refusal(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return result.content[0].text


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_a_client_stores_finds_and_forgets(connect, mode):
    async with connect(mode=mode) as client:
        assert client.server_info.name == "memory"
        assert "long-term memory" in client.instructions
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        stored = await answer(client, "store_memory", content="User prefers to be called Alex.", metadata={"a": [None]})
        (found,) = await answer(client, "search_memories", query="What is the user called?", memory_type="fact")
        assert (found["id"], found["metadata"]) == (stored["id"], {"a": [None]})
        forgotten = [await answer(client, "forget_memory", memory_id=found["id"]) for _ in range(2)]
        assert [one["success"] for one in forgotten] == [True, False]
        assert await answer(client, "search_memories", query="What is the user called?") == []


@pytest.mark.slow
async def test_memories_outlive_the_server_and_owners_do_not_meet(connect):
    async with connect("--owner", "ann") as client:
        await answer(client, "store_memory", content="Bees are insects.")
    async with connect("--owner", "bob") as client:
        assert await answer(client, "search_memories", query="bees") == []
    async with connect("--owner", "ann") as client:
        assert [one["content"] for one in await answer(client, "search_memories", query="bees")] == [
            "Bees are insects."
        ]


async def test_a_wrong_call_is_a_tool_error_in_words_and_the_server_goes_on(connect):
    async with connect() as client:
        said = await refusal(client, "store_memory", content="x", memory_type="dream")
        assert "allowed: conversation, fact, context" in said
        assert "query must be string" in await refusal(client, "search_memories", query={"$ne": ""})
        assert "there is no tool named" in await refusal(client, "get_user_profile")
        assert await answer(client, "search_memories", query="bees", limit=0) == []


@pytest.mark.slow
async def test_a_second_server_on_the_same_folder_says_who_has_it(connect, tmp_path):
    async with connect():
        second = subprocess.run(  # noqa: S603, ASYNC221  (our own, and the first server is a process too)
            [*COMMAND, "--path", tmp_path / "store"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (second.returncode, second.stdout) == (1, "")
    assert "is in use by another process" in second.stderr


def test_a_wrong_setting_ends_the_command_with_one_line(tmp_path, capsys):
    file = tmp_path / "memory.yaml"
    file.write_text("memory: {pth: here}")
    assert main(["mcp", "--config", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "unknown setting 'pth'. Did you mean 'path'?" in err


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.delitem(sys.modules, "memstory_reference.adapters.mcp_server", raising=False)
    monkeypatch.delattr("memstory_reference.adapters.mcp_server", raising=False)
    with pytest.raises(SetupError, match=re.escape(install_command("mcp"))):
        extras.mcp_sdk()


async def test_the_pipeline_stores_finds_lists_and_forgets_for_a_client(connect):
    async with connect("--system", "pipeline") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["recall_memories", "remember_text", "list_memories", "forget_memory"]
        (stored,) = await answer(client, "remember_text", text="I prefer dark mode")
        assert stored["type"] == "procedural"
        for call in (("recall_memories", {"query": "which theme?"}), ("list_memories", {})):
            assert [one["id"] for one in await answer(client, call[0], **call[1])] == [stored["id"]]
        assert (await answer(client, "forget_memory", memory_id=stored["id"]))["success"]
        assert await answer(client, "list_memories") == []
        assert "payment card" in str(await answer(client, "remember_text", text="my card is 4111 1111 1111 1111"))


async def test_a_client_keeps_finds_rates_and_forgets_runs(connect):
    async with connect("--system", "observations") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search_runs", "store_run", "rate_run", "forget_run"]
        run = {"task": "Study floods", "output": "Rivers flood in spring. Dams help.", "run_id": "floods"}
        assert (await answer(client, "store_run", **run))["outcome"] == "stored"
        (found,) = await answer(client, "search_runs", task="floods of rivers")
        assert (found["run_id"], found["narrative"]) == ("floods", "Rivers flood in spring. Dams help.")
        assert await answer(client, "rate_run", run_id="floods", rating=2) == {"success": True}
        assert "numbers from -2 to 2" in await refusal(client, "rate_run", run_id="floods", rating=9)
        assert "payment card" in str(await answer(client, "store_run", task="t", output="4111 1111 1111 1111"))
        assert await answer(client, "forget_run", run_id="floods") == {"success": True}
        assert await answer(client, "search_runs", task="floods of rivers") == []
        assert await answer(client, "forget_run", run_id="floods") == {"success": False}


async def test_the_topics_memory_is_served_with_all_its_tools(connect):
    async with connect("--system", "topics", "--owner", "ann") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"save_topic", "search_memory", "list_memories", "forget_memory", "rate_memory"} <= set(names)
        assert await answer(client, "save_topic", topic="user.name", content="Ann") == "Memory saved: user.name"
        assert "half a surrogate" not in await refusal(client, "save_topic", topic="name", content="Ann")
    async with connect("--system", "topics", "--owner", "ann") as client:
        assert "Ann" in await answer(client, "recall_topic", topic="user.name")
        assert await answer(client, "forget_memory", topic="user.name") == "Memory forgotten: user.name."
    async with connect("--system", "topics", "--owner", "bob") as client:
        assert await answer(client, "list_memories") == "No memories found."


async def test_the_turns_memory_announces_recall_remember_and_forget_by_schema(connect):
    async with connect("--system", "turns") as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    assert {name: (set(one["properties"]), one["required"]) for name, one in schemas.items()} == {
        "recall": ({"query", "limit", "speaker", "since", "until", "as_of"}, ["query"]),
        "remember": ({"text", "speaker", "said_at"}, ["text"]),
        "forget": ({"id"}, ["id"]),
    }


async def test_a_client_remembers_recalls_and_forgets_turns_of_its_owner_alone(connect):
    async with connect("--system", "turns", "--owner", "ann") as client:
        told = {"text": "The parcel is for the neighbour.", "speaker": "Ben", "said_at": "2024-05-08"}
        stored = await answer(client, "remember", **told)
        assert (stored["content"], stored["speaker"], stored["said_at"]) == tuple(told.values())
        assert [one["id"] for one in await answer(client, "recall", query="whose parcel?")] == [stored["id"]]
        assert await answer(client, "recall", query="whose parcel?", until="2024-05-07") == []
        assert await answer(client, "recall", query="whose parcel?", speaker="Ann") == []
    async with connect("--system", "turns", "--owner", "bob") as client:
        assert await answer(client, "recall", query="whose parcel?") == []
        assert await answer(client, "forget", id=stored["id"]) == {"success": False, "id": stored["id"]}
    async with connect("--system", "turns", "--owner", "ann") as client:
        assert (await answer(client, "forget", id=stored["id"]))["success"]
        assert await answer(client, "recall", query="whose parcel?") == []


async def test_a_wrong_argument_of_a_turns_tool_is_refused_in_words_and_stores_nothing(connect):
    async with connect("--system", "turns") as client:
        assert "text must be string" in await refusal(client, "remember", text=3)
        assert "ISO 8601" in await refusal(client, "remember", text="Tea is ready.", said_at="yesterday")
        assert "ISO 8601" in await refusal(client, "recall", query="tea", since="soon")
        assert "speeker" in await refusal(client, "remember", text="Tea is ready.", speeker="Ann")
        assert await answer(client, "recall", query="*") == []


READS = (True, False, True, False)
ADDS = (False, False, False, False)
CHANGES = (False, True, True, False)
EFFECTS = {
    "topics": {
        **dict.fromkeys(("recall_topic", "search_memory", "list_memories"), READS),
        **dict.fromkeys(("save_topic", "rate_memory", "forget_memory"), CHANGES),
        "save_memory": ADDS,
    },
    "observations": {"search_runs": READS, "store_run": ADDS, "rate_run": CHANGES, "forget_run": CHANGES},
    "pipeline": {"recall_memories": READS, "list_memories": READS, "remember_text": ADDS, "forget_memory": CHANGES},
    "layers": {"search_memory": READS, "list_memories": READS, "save_memory": ADDS, "forget_memory": CHANGES},
    "manager": {"search_memories": READS, "store_memory": ADDS, "forget_memory": CHANGES},
    "turns": {"recall": READS, "remember": ADDS, "forget": CHANGES},
}


@pytest.fixture
async def open_system(tmp_path):
    """Open the memory of a name in a folder of the test."""
    async with AsyncExitStack() as opened:

        async def open_one(name, **values):
            system = system_named(name)
            settings = system.settings(None, {system.place: str(tmp_path / "store"), **values}, "test")
            memory = await system.open(settings)
            opened.push_async_callback(memory.close)
            return memory

        yield open_one


async def listed_tools(tools):
    async def call(_name, _arguments):
        raise AssertionError("nothing is called")

    async with mcp.Client(extras.mcp_sdk().tool_server("memory", "1", tools, call)) as client:
        return (await client.list_tools()).tools


def hints(tool):
    said = tool.annotations
    return (said.read_only_hint, said.destructive_hint, said.idempotent_hint, said.open_world_hint)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_client_learns_of_each_tool_whether_it_reads_saves_or_forgets(open_system, system):
    tools = await listed_tools(await (await open_system(system)).tools())
    assert {tool.name: hints(tool) for tool in tools} == EFFECTS[system]


async def test_a_client_learns_what_the_pair_of_topics_tools_does(open_system):
    tools = await listed_tools(await (await open_system("topics", toolset="dual")).tools())
    effects = {tool.name: hints(tool) for tool in tools}
    assert (effects["memory_recall"], effects["memory_save"]) == (READS, CHANGES)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_the_effect_of_a_tool_is_in_no_json_of_it(open_system, system):
    tools = await (await open_system(system)).tools()
    plain = [ToolSchema(name=one.name, description=one.description, parameters=one.parameters) for one in tools]
    assert encode(tools) == encode(plain)
    assert [function_of(one) for one in tools] == [function_of(one) for one in plain]


async def test_of_a_tool_whose_effect_is_not_known_a_client_is_told_nothing():
    (tool,) = await listed_tools([ToolSchema(name="echo", description="", parameters={"type": "object"})])
    assert tool.annotations is None


TOOLS = {
    "topics": ("save_memory", {"content": "The boat is in Bergen."}, "list_memories", {}),
    "observations": (
        "store_run",
        {"task": "Boats", "output": "The boat is in Bergen."},
        "search_runs",
        {"task": "boat"},
    ),
    "pipeline": ("remember_text", {"text": "The boat is in Bergen."}, "list_memories", {}),
    "layers": ("save_memory", {"content": "The boat is in Bergen."}, "list_memories", {}),
    "manager": ("store_memory", {"content": "The boat is in Bergen."}, "search_memories", {"query": "boat"}),
    "turns": ("remember", {"text": "The boat is in Bergen."}, "recall", {"query": "boat"}),
}


@pytest.mark.parametrize(
    "system",
    # A server is started three times for each: of the others, some have tests above that do the same, and of all six
    # test_library.py shows that what was added is there when it is opened again, and for its owner alone.
    [one if one == "layers" else pytest.param(one, marks=pytest.mark.slow) for one in TOOLS],
)
async def test_what_a_client_stores_is_there_after_a_restart_and_not_for_another_owner(connect, system):
    save, saved, look, looked = TOOLS[system]
    async with connect("--system", system, "--owner", "ann") as client:
        await answer(client, save, **saved)
    for owner, is_there in (("ann", True), ("bob", False)):
        async with connect("--system", system, "--owner", owner) as client:
            assert ("Bergen" in str(await answer(client, look, **looked))) is is_there


async def test_layers_save_search_list_and_forget_for_a_client(connect):
    async with connect("--system", "layers") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            *("save_memory", "search_memory", "list_memories", "forget_memory")
        ]
        (saved,) = await answer(client, "save_memory", content="The boat is in Bergen.")
        (found,) = await answer(client, "search_memory", query="boat")
        assert (found["id"], found["text"]) == (saved["id"], "The boat is in Bergen.")
        assert "payment card" in str(await answer(client, "save_memory", content="my card is 4111 1111 1111 1111"))
        assert "query must be string" in await refusal(client, "search_memory", query=3)
        assert [(await answer(client, "forget_memory", memory_id=found["id"]))["success"] for _ in range(2)] == [
            *(True, False)
        ]


def test_a_folder_that_is_typed_is_meant_whatever_server_the_settings_name(tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("chroma_server: 127.0.0.1:1\nembedding_model: words\n", "utf-8")
    typed = ["--system", "topics", "--config", str(settings), "--path", str(tmp_path / "store")]
    ended = subprocess.run(  # noqa: S603  (our own command)
        [*COMMAND, *typed], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tmp_path / "store" / "vectors.sqlite3").is_file()
