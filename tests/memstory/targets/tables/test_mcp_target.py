"""A target that is an MCP server, on our small server that misbehaves on request."""

import asyncio
import os
import socket
import tempfile
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer

from memstory.conformance import TargetContract
from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, SetupError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Request, Scope, Target
from memstory.running.hosting.host import HostedTarget
from memstory.targets.discovery import load_spec
from memstory.targets.tables.mcp import McpFactory
from memstory.targets.tables.reading import parse_table

SERVER = Path(__file__).parents[1] / "fake_mcp_server.py"
ANN, BOB = Scope(user="ann"), Scope(user="bob")
HARBOUR = "The harbour opens at seven."
FAKE = """
[targets.fake]
type = "mcp"
command = ["{{python}}", "{server}", "{{workspace}}/{data}", {more}]
call_seconds = {seconds}
start_seconds = {start_seconds}
missing = 'no such memory'
fails = '\\AError: '
capabilities = ["add.verbatim", "persistent"]

[targets.fake.add]
tool = "remember"
args = {{ text = "{{text}}", user = "{{user}}", session = "{{session}}", kind = "{{kind}}", key = "{{key}}" }}
reply = {{ id = "memory.id" }}

[targets.fake.get]
tool = "look"
args = {{ id = "{{id}}", key = "{{key}}", user = "{{user}}" }}
reply = {{ id = "id", text = "text", kind = "kind", key = "key" }}

[targets.fake.search]
tool = "recall"
args = {{ query = "{{query}}", k = "{{top_k}}", user = "{{user}}", session = "{{session}}" }}
reply = {{ at = "hits", id = "id", text = "text", score = "score", kind = "kind" }}
scores = "similarity"
keep = {{ user = "{{user}}", kind = "{{kinds}}" }}

[targets.fake.list]
tool = "all"
args = {{ page = "{{page}}", page_size = "{{page_size}}", user = "{{user}}" }}
reply = {{ at = "memories", id = "id", text = "text" }}
keep = {{ session = "{{session}}", kind = "{{kinds}}" }}
page_size = 2

[targets.fake.update]
tool = "change"
args = {{ id = "{{id}}", text = "{{text}}" }}
reply = {{ id = "memory.id" }}

[targets.fake.delete]
tool = "forget"
args = {{ id = "{{id}}" }}

[targets.fake.delete_all]
tool = "forget_all"
args = {{ user = "{{user}}" }}
"""


def spec_in(folder, *told, seconds=5, start_seconds=5, data="memories.json"):
    path = folder / "memstory.toml"
    more = ", ".join(f'"{word}"' for word in told)
    filled = FAKE.format(server=SERVER, data=data, more=more, seconds=seconds, start_seconds=start_seconds)
    path.write_text(filled, "utf-8")
    return f"{path}#fake"


@pytest.fixture
def opened(tmp_path):
    @asynccontextmanager
    async def open_target(*told, **given):
        target = load_spec(spec_in(tmp_path, *told, **given)).target()
        await target.open(Environment(workspace=str(tmp_path / "case"), owner="ann"), StoryClock())
        try:
            yield target
        finally:
            await target.close()

    return open_target


def made(folder):
    """The folder, also when a class comes again after the other one: tests may run in any order."""
    path = Path(folder.name)
    path.mkdir(exist_ok=True)
    return path


class TestContract(TargetContract):
    """The promises of every target, kept by a table."""

    table = tempfile.TemporaryDirectory()

    @staticmethod
    def factory():
        return load_spec(spec_in(made(TestContract.table)))

    @classmethod
    def teardown_class(cls):
        super().teardown_class()
        cls.table.cleanup()


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie of somebody who does not reap is as gone as can be.
    return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


async def until_gone(pid):
    for _ in range(200):
        if gone(pid):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_the_server_says_what_it_is(opened):
    async with opened() as target:
        assert await target.about() == {"server": "fake 1.0"}


async def test_noise_on_stdout_harms_nothing_and_is_told(opened):
    async with opened("--noise") as target:
        await target.add([Item(text=HARBOUR)], ANN)
        assert [hit.text for hit in await target.search(Query(text="harbour"), ANN)] == [HARBOUR]
        # Two at the start, and one after each message that has an answer.
        assert int((await target.about())["noise on stdout"].removesuffix(" lines")) >= 2 + 3


async def test_a_slow_server_is_waited_for(opened):
    async with opened("--slow", "0.5") as target:
        assert await target.list(ANN) == []


async def test_a_server_that_never_answers_is_given_up_and_ended(tmp_path):
    spec = spec_in(tmp_path, "--silent", "--stay", "--grandchild", str(tmp_path / "pid"), start_seconds=0.5)
    target = load_spec(spec).target()
    with pytest.raises(TargetError, match=r"fake: the server did not come up within 0\.5 s"):
        await target.open(Environment(workspace=str(tmp_path / "case"), owner="ann"), StoryClock())
    assert await until_gone(int((tmp_path / "pid").read_text()))


async def test_a_server_that_ends_at_once_tells_its_last_words(opened):
    with pytest.raises(TargetError, match=r"(?s)did not come up.*no database here"):
        async with opened("--exit"):
            pass


async def test_a_command_that_is_not_there_is_a_setup_error(tmp_path):
    table = parse_table("x", {"type": "mcp", "command": ["no-such-server-anywhere"]}, "memstory.toml")
    with pytest.raises(SetupError, match="'no-such-server-anywhere' is not found"):
        await McpFactory(table).start(tmp_path)


async def test_a_call_that_hangs_is_an_error_and_the_server_is_ended(opened, tmp_path):
    async with opened("--hang", "recall", "--grandchild", str(tmp_path / "pid"), seconds=0.3) as target:
        with pytest.raises(TargetError, match="'recall' got no answer"):
            await target.search(Query(text="harbour"), ANN)
    assert await until_gone(int((tmp_path / "pid").read_text()))


async def test_what_a_server_has_started_ends_with_it(opened, tmp_path):
    async with opened("--grandchild", str(tmp_path / "pid")) as target:
        await target.list(ANN)
    assert await until_gone(int((tmp_path / "pid").read_text()))


async def test_a_server_that_dies_in_mid_run_tells_its_last_words_and_so_does_the_next_call(opened):
    async with opened("--die", "recall") as target:
        await target.add([Item(text=HARBOUR)], ANN)
        with pytest.raises(TargetError, match=r"(?s)'recall' got no answer.*exit code 3.*out of luck"):
            await target.search(Query(text="harbour"), ANN)
        with pytest.raises(TargetError, match="out of luck"):
            await target.list(ANN)


async def test_what_was_acknowledged_before_the_server_died_is_there_afterwards(opened):
    async with opened("--die", "recall") as target:
        await target.add([Item(text=HARBOUR)], ANN)
        with pytest.raises(TargetError):
            await target.search(Query(text="harbour"), ANN)
    async with opened() as target:
        assert [hit.text for hit in await target.list(ANN)] == [HARBOUR]


async def test_a_reply_that_breaks_off_is_an_error_that_shows_it(opened):
    async with opened("--malformed", "remember") as target:
        with pytest.raises(TargetError, match=r'fake: add: the reply is not JSON: \{"memory": '):
            await target.add([Item(text=HARBOUR)], ANN)


async def test_a_failure_that_is_only_words_is_an_error(opened):
    async with opened("--fail", "remember") as target:
        with pytest.raises(TargetError, match="the server says: Error: the disk is full"):
            await target.add([Item(text=HARBOUR)], ANN)


async def test_a_score_that_is_no_number_is_an_error(opened):
    async with opened("--nan") as target:
        await target.add([Item(text=HARBOUR)], ANN)
        with pytest.raises(TargetError, match="not a finite number"):
            await target.search(Query(text="harbour"), ANN)


async def test_more_than_was_asked_for_is_cut_and_duplicates_stay(opened):
    async with opened("--duplicates") as target:
        await target.add([Item(text=HARBOUR), Item(text="The harbour closes.")], ANN)
        hits = await target.search(Query(text="harbour opens", top_k=3), ANN)
        assert [hit.text for hit in hits] == [HARBOUR, HARBOUR, "The harbour closes."]


async def test_rows_of_other_owners_are_taken_out_where_the_table_says_so(opened):
    async with opened("--others") as target:
        await target.add([Item(text=HARBOUR)], ANN)
        await target.add([Item(text="Bob's harbour.")], BOB)
        assert [hit.text for hit in await target.search(Query(text="harbour"), ANN)] == [HARBOUR]
        # 'list' has no such condition: what the server gives is what the stories see.
        assert len(await target.list(ANN)) == 2


async def test_a_list_goes_through_all_pages(opened):
    async with opened() as target:
        texts = [f"Fact {number}" for number in range(5)]
        await target.add([Item(text=text) for text in texts], ANN)
        assert [hit.text for hit in await target.list(ANN)] == texts
        assert [hit.text for hit in await target.list(ANN, limit=3)] == texts[:3]


async def test_kinds_and_sessions_that_the_table_maps_are_kept_apart(opened):
    async with opened() as target:
        await target.add([Item(text=HARBOUR, kind="fact")], Scope(user="ann", session="s1"))
        await target.add([Item(text="The harbour is loud.", kind="feeling")], Scope(user="ann", session="s2"))
        facts = await target.search(Query(text="harbour", kinds=["fact"]), ANN)
        second = await target.search(Query(text="harbour"), Scope(user="ann", session="s2"))
        assert ([hit.kind for hit in facts], [hit.kind for hit in second]) == (["fact"], ["feeling"])


async def test_a_condition_that_the_table_does_not_map_is_not_supported(opened):
    async with opened() as target:
        with pytest.raises(NotSupported, match=r"'search' has no \{where\} in memstory\.toml"):
            await target.search(Query(text="harbour", where={"a": 1}), ANN)


async def test_unknown_ids_are_told_as_such(opened):
    async with opened() as target:
        assert await target.get(Ref(id="7"), ANN) is None
        assert await target.delete(Ref(id="7"), ANN) is False
        with pytest.raises(Refused):
            await target.update(Ref(id="7"), Item(text="x"), ANN)


async def test_a_memory_is_changed_and_forgotten_by_its_key(opened):
    async with opened() as target:
        await target.add([Item(text=HARBOUR, key="harbour")], ANN)
        receipt = await target.update(Ref(key="harbour"), Item(text="It opens at nine."), ANN)
        assert (await target.get(Ref(key="harbour"), ANN)).text == "It opens at nine."
        assert (receipt.items[0].id, receipt.items[0].outcome) == ("1", "updated")
        assert await target.delete(Ref(key="harbour"), ANN) is True
        assert await target.get(Ref(key="harbour"), ANN) is None


async def test_tools_are_announced_and_can_be_called(opened):
    async with opened() as target:
        assert "remember" in [tool.name for tool in await target.tools()]
        called = await target.tool("remember", {"text": HARBOUR, "user": "ann"}, ANN)
        assert called.result == {"memory": {"id": "1"}}
        unknown = await target.tool("dance", {}, ANN)
        assert unknown.error == "no tool dance"


async def test_one_server_a_user_where_the_command_names_the_user(tmp_path):
    target = load_spec(spec_in(tmp_path, data="{user_hash}.json")).target()
    await target.open(Environment(workspace=str(tmp_path / "case"), owner="ann"), StoryClock())
    try:
        await target.add([Item(text=HARBOUR)], ANN)
        await target.add([Item(text="Bob's.")], BOB)
        assert len(list((tmp_path / "case").glob("*.json"))) == 2
        assert len(await target.list(ANN)) == 1
    finally:
        await target.close()


async def test_users_at_the_same_time_share_no_answer(opened):
    async with opened() as target:
        scopes = [Scope(user=f"user {number}") for number in range(10)]
        await asyncio.gather(*(target.add([Item(text=f"I am {scope.user}")], scope) for scope in scopes))
        told = await asyncio.gather(*(target.list(scope) for scope in scopes))
        assert [[hit.text for hit in hits] for hits in told] == [[f"I am {scope.user}"] for scope in scopes]


async def test_a_case_that_is_cancelled_leaves_no_server(opened, tmp_path):
    async def case():
        async with opened("--hang", "recall", "--stay", "--grandchild", str(tmp_path / "pid")) as target:
            await target.search(Query(text="harbour"), ANN)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await case()
    assert await until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
async def test_a_killed_host_takes_the_server_with_it_and_a_new_one_finds_what_was_acknowledged(tmp_path):
    factory = load_spec(spec_in(tmp_path, "--stay", "--grandchild", str(tmp_path / "pid")))
    env = Environment(workspace=str(tmp_path / "case"), owner="ann")
    first = HostedTarget(factory, tmp_path / "host")
    await first.open(env, StoryClock())
    await first.perform(Request.of(Target.add, [Item(text=HARBOUR)], ANN))
    await first.kill()
    assert await until_gone(int((tmp_path / "pid").read_text()))
    second = HostedTarget(factory, tmp_path / "host")
    await second.open(env, StoryClock())
    try:
        assert [hit.text for hit in await second.perform(Request.of(Target.list, ANN))] == [HARBOUR]
    finally:
        await second.close()


@pytest.fixture
def url():
    server = MCPServer("over http", version="2.0")
    rows = []

    @server.tool()
    def remember(text: str, user: str) -> dict:
        rows.append({"text": text, "user": user, "id": str(len(rows))})
        return rows[-1]

    @server.tool()
    def recall(user: str) -> dict:
        return {"hits": [row for row in rows if row["user"] == user]}

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        runner = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
        thread = threading.Thread(target=runner.run, kwargs={"sockets": [listening]})
        thread.start()
        while not runner.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
        runner.should_exit = True
        thread.join()


def http_table(url):
    return parse_table(
        "far",
        {
            "type": "mcp",
            "url": url,
            "headers": {"Authorization": "Bearer ${FAR_TOKEN}"},
            "add": {"tool": "remember", "args": {"text": "{text}", "user": "{user}"}, "reply": {"id": "id"}},
            "search": {
                "tool": "recall",
                "args": {"user": "{user}"},
                "reply": {"at": "hits", "id": "id", "text": "text"},
            },
        },
        "memstory.toml",
    )


async def test_a_server_by_http_keeps_cases_apart_by_users_of_their_own(url, tmp_path, monkeypatch):
    monkeypatch.setenv("FAR_TOKEN", "secret")
    factory = McpFactory(http_table(url))
    assert not {"restart", "crash"} & factory.capabilities({})
    one, other = factory.target(), factory.target()
    await one.open(Environment(workspace=str(tmp_path / "one"), owner="ann"), StoryClock())
    await other.open(Environment(workspace=str(tmp_path / "other"), owner="ann"), StoryClock())
    try:
        await one.add([Item(text=HARBOUR)], ANN)
        assert [hit.text for hit in await one.search(Query(text="x"), ANN)] == [HARBOUR]
        assert await other.search(Query(text="x"), ANN) == []
        assert await one.about() == {"server": "over http 2.0"}
    finally:
        # In the order of opening: each session has its own task.
        await one.close()
        await other.close()


async def test_a_header_without_its_variable_is_a_setup_error(url, tmp_path, monkeypatch):
    monkeypatch.delenv("FAR_TOKEN", raising=False)
    with pytest.raises(SetupError, match="FAR_TOKEN"):
        await McpFactory(http_table(url)).start(tmp_path)


async def test_an_address_where_nobody_is_is_an_error_that_names_the_target(tmp_path, monkeypatch):
    monkeypatch.setenv("FAR_TOKEN", "secret")
    with pytest.raises(
        TargetError, match=r"far: the server did not come up.*; it was asked at http://127\.0\.0\.1:9/mcp"
    ):
        await McpFactory(http_table("http://127.0.0.1:9/mcp")).start(tmp_path)


ONE = {"one_server": True}


@pytest.mark.parametrize(
    ("more", "options", "is_shared"),
    [
        ({"url": "http://127.0.0.1:9/mcp"}, {}, True),
        ({"command": ["x"]}, {}, False),
        ({"command": ["x"]}, ONE, True),
        ({"command": ["x"], **ONE}, {}, True),
        ({"command": ["x"], **ONE}, {"one_server": False}, False),
    ],
)
def test_users_get_names_of_the_case_only_where_others_share_the_server(more, options, is_shared):
    factory = McpFactory(
        parse_table("x", {"type": "mcp", "add": {"tool": "add", "args": {"user": "{user}"}}, **more}, "t.toml")
    )
    able = factory.abilities(options)
    assert (factory.shares(options), "scope.names" in able, "restart" in able) == (
        is_shared,
        not is_shared,
        not is_shared,
    )


@pytest.mark.parametrize(
    ("needs", "is_shared"),
    [
        ({"add", "search"}, True),
        ({"add", "chat"}, True),  # Its own server could not chat either.
        ({"add", "restart"}, False),
        ({"add", "crash"}, False),
        ({"add", "persistent"}, False),
        ({"add", "scope.names"}, False),
    ],
)
def test_auto_shares_the_server_where_the_story_needs_nothing_that_sharing_takes_away(needs, is_shared):
    table = {"type": "mcp", "command": ["x"], "add": {"tool": "add", "args": {"user": "{user}"}}}
    factory = McpFactory(parse_table("x", {**table, "one_server": "auto"}, "t.toml"))
    assert factory.shares(factory.cheapest_options({}, frozenset(needs))) is is_shared
    assert not factory.shares({}), "until a story says what it needs, a target can do all that it can"
    alone = {"one_server": False}
    assert factory.cheapest_options(alone, frozenset(needs)) == alone


class TestOneServer(TestContract):
    """The promises of every target, kept by targets that share a server."""

    table = tempfile.TemporaryDirectory()
    options = ONE

    @staticmethod
    def factory():
        return load_spec(spec_in(made(TestOneServer.table)))


@asynccontextmanager
async def two_cases(spec, folder):
    factory = load_spec(spec)
    await factory.start(folder)
    targets = [factory.target(), factory.target()]
    try:
        for target in targets:
            await target.open(Environment(workspace=str(folder / "case"), owner="ann", options=ONE), StoryClock())
        yield targets
    finally:
        for target in targets:
            await target.close()
        await factory.stop()


async def test_cases_that_share_a_server_start_it_once_and_it_ends_with_the_worker(tmp_path):
    pids = tmp_path / "pid"
    async with two_cases(spec_in(tmp_path, "--grandchild", str(pids)), tmp_path) as (one, other):
        first = pids.read_text()
        await one.add([Item(text=HARBOUR)], ANN)
        assert [hit.text for hit in await other.list(ANN)] == [HARBOUR]
        await one.close()
        assert [hit.text for hit in await other.list(ANN)] == [HARBOUR]
        assert pids.read_text() == first
        assert not gone(int(first))
    assert await until_gone(int(first))


async def test_a_shared_server_that_ended_is_started_again_for_the_next_case(tmp_path):
    async with two_cases(spec_in(tmp_path, "--die", "recall"), tmp_path) as (one, other):
        await one.add([Item(text=HARBOUR)], ANN)
        with pytest.raises(TargetError, match="recall"):
            await one.search(Query(text="harbour"), ANN)
        assert [hit.text for hit in await other.list(ANN)] == [HARBOUR]


def test_a_server_of_one_user_cannot_be_shared():
    table = parse_table("x", {"type": "mcp", "command": ["x", "{user}"], "add": {"tool": "add"}}, "t.toml")
    assert "option.one_server" not in McpFactory(table).capabilities({})
    with pytest.raises(SetupError, match="starts a server for each user, so that one_server cannot be true"):
        McpFactory(table).shares(ONE)
    with pytest.raises(SetupError, match="one_server cannot be auto"):
        McpFactory(table).shares({"one_server": "auto"})
    with pytest.raises(SetupError, match="one_server is true, false or auto, not 'yes'"):
        McpFactory(table).shares({"one_server": "yes"})
