"""What a mapped target does with its table, on a transport that remembers what was sent."""

import asyncio
import json

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.tables.reading import parse_table
from memstory.targets.tables.replies import ServerReply
from memstory.targets.tables.target import TableTarget, class_for
from memstory.targets.tables.templates import render

ANN, BOB = Scope(user="ann"), Scope(user="bob")


class Scripted:
    """Answers each tool with what it was given; a list is answered one after the other."""

    def __init__(self, replies, *, shared=False):
        self.shared = shared
        self.sent = []
        self.busy = self.busiest = 0
        self._replies = replies

    async def open(self, values, options):
        self.sent.append(("open", values["workspace"]))

    async def close(self):
        self.sent.append(("close", None))

    async def about(self):
        return {"server": "scripted"}

    def describe(self, call, values):
        return f"{call.spec['tool']} {json.dumps(render(call.spec.get('args'), values))}"

    async def call(self, call, values):
        tool = call.spec["tool"]
        self.sent.append((tool, render(call.spec.get("args"), values)))
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.busy -= 1
        reply = self._replies.get(tool, ServerReply(text="{}"))
        return reply.pop(0) if isinstance(reply, list) else reply

    def calls(self, tool):
        return [args for name, args in self.sent if name == tool]


@pytest.fixture
def opened(tmp_path):
    targets = []

    async def open_target(operations, replies=None, *, preloaded=False, **given):
        shared = given.pop("shared", False)
        table = parse_table("mine", {"type": "mcp", "command": ["serve"], **given, **operations}, "memstory.toml")
        transport = Scripted(replies or {}, shared=shared)
        target = class_for(table, TableTarget)(table, transport)
        env = Environment(workspace=str(tmp_path), owner="ann", seed=3, preloaded=preloaded)
        await target.open(env, StoryClock())
        targets.append(target)
        return target, transport

    return open_target


def add_with(**args):
    return {"add": {"tool": "remember", "args": args}}


async def test_one_call_takes_many_items_up_to_the_batch(opened):
    add = {"tool": "remember", "args": {"texts": {"each": "{text}"}}, "batch": 2}
    target, sent = await opened({"add": add})
    receipt = await target.add([Item(text=text) for text in "abc"], ANN)
    assert sent.calls("remember") == [{"texts": ["a", "b"]}, {"texts": ["c"]}]
    assert [(item.text, item.id, item.outcome) for item in receipt.items] == [(text, None, "stored") for text in "abc"]


async def test_without_each_every_item_is_a_call_of_its_own(opened):
    target, sent = await opened(add_with(text="{text}"))
    await target.add([Item(text="a"), Item(text="b")], ANN)
    assert sent.calls("remember") == [{"text": "a"}, {"text": "b"}]


async def test_ids_that_the_table_gives_are_never_given_twice_not_even_after_a_restart(opened):
    operations = {"add": {"tool": "remember", "args": {"id": "{own_id}"}, "id": "{own_id}"}}
    ids = []
    for _ in range(2):
        target, _sent = await opened(operations)
        ids += [item.id for item in (await target.add([Item(text="a"), Item(text="b", key="k")], ANN)).items]
        await target.close()
    assert ids[1::2] == ["k", "k"]
    assert len(set(ids[::2])) == 2


@pytest.mark.parametrize(
    ("add", "id_"),
    [
        ({"args": {"entities": [{"name": "{own_id}", "text": "{text}"}]}}, "m3.0.1"),
        ({"args": {"name": "{user}/{new_id}", "text": "{text}"}}, "ann/m3.0.1"),
        ({"args": {"name": "{own_id}", "text": "{text}"}, "reply": {"text": "said"}}, "m3.0.1"),
        ({"args": {"name": "{own_id}", "link": "to/{own_id}"}}, None),
        ({"args": {"text": "{text}"}}, None),
    ],
)
async def test_the_id_that_a_table_sends_is_the_memorys_unless_two_could_be_it(opened, add, id_):
    target, _ = await opened({"add": {"tool": "remember", **add}}, {"remember": ServerReply(text='{"said": "a"}')})
    (item,) = (await target.add([Item(text="a")], ANN)).items
    assert item.id == id_


async def test_a_shared_server_gets_users_and_ids_of_this_case_only(opened):
    target, sent = await opened(add_with(user="{user}", id="{new_id}"), shared=True)
    await target.add([Item(text="a")], ANN)
    (call,) = sent.calls("remember")
    assert call["user"].startswith("ann-")
    assert "." not in call["user"], "some servers take no user with a period"
    assert call["id"].startswith(call["user"].removeprefix("ann-"))


async def test_fewer_ids_than_items_are_an_error_and_no_guess(opened):
    add = {"tool": "remember", "args": {"t": {"each": "{text}"}}, "reply": {"at": "ids", "id": "id"}}
    target, _ = await opened({"add": add}, {"remember": ServerReply(text='{"ids": [{"id": 1}]}')})
    with pytest.raises(TargetError, match="mine: add: 2 sent, 1 found in the reply"):
        await target.add([Item(text="a"), Item(text="b")], ANN)


async def test_what_became_of_an_item_is_read_from_the_words(opened):
    add = {
        "tool": "remember",
        "accepts": "Duplicate",
        "outcomes": {"skipped": "Duplicate"},
        "reply": {"pattern": r"hash: (?P<id>\w+)"},
    }
    replies = [ServerReply(text="Stored (hash: ab)"), ServerReply(text="", problem="Duplicate content")]
    target, _ = await opened({"add": add}, {"remember": replies})
    receipt = await target.add([Item(text="a"), Item(text="a")], ANN)
    assert [(item.id, item.outcome) for item in receipt.items] == [("ab", "stored"), (None, "skipped")]


async def test_an_update_of_several_calls_takes_the_old_text_and_what_was_saved(opened):
    operations = {
        "get": {"tool": "open", "args": {"id": "{id}"}, "reply": {"id": "id", "text": "text"}},
        "update": {
            "look_up": True,
            "calls": [
                {"tool": "cut", "args": {"id": "{id}", "old": "{old_text}"}, "save": {"place": "at"}},
                {"tool": "paste", "args": {"new": "{text}", "at": "{place}"}},
            ],
            "reply": {"id": "id"},
        },
    }
    replies = {
        "open": ServerReply(text='{"id": "7", "text": "old"}'),
        "cut": ServerReply(text='{"at": 5}'),
        "paste": ServerReply(text='{"id": "8"}'),
    }
    target, sent = await opened(operations, replies)
    receipt = await target.update(Ref(id="7"), Item(text="new"), ANN)
    assert (sent.calls("cut"), sent.calls("paste")) == ([{"id": "7", "old": "old"}], [{"new": "new", "at": 5}])
    assert (receipt.items[0].id, receipt.items[0].outcome) == ("8", "updated")


async def test_an_update_that_fails_in_the_middle_goes_no_further(opened):
    update = {"calls": [{"tool": "cut", "args": {"id": "{id}"}}, {"tool": "paste", "args": {"t": "{text}"}}]}
    target, sent = await opened({"update": update}, {"cut": ServerReply(text="", problem="disk full")})
    with pytest.raises(TargetError, match="mine: update: the server says: disk full"):
        await target.update(Ref(id="7"), Item(text="new"), ANN)
    assert sent.calls("paste") == []


async def test_who_looks_up_first_knows_what_is_not_there(opened):
    operations = {
        "get": {"tool": "open", "args": {"id": "{id}"}, "reply": {"at": "rows", "id": "id", "text": "text"}},
        "delete": {"tool": "cut", "args": {"id": "{id}"}, "look_up": True},
        "update": {"tool": "paste", "args": {"id": "{id}", "t": "{text}"}, "look_up": True},
    }
    target, sent = await opened(operations, {"open": ServerReply(text='{"rows": []}')})
    assert await target.get(Ref(id="7"), ANN) is None
    assert await target.delete(Ref(id="7"), ANN) is False
    with pytest.raises(Refused, match="nothing is remembered under '7'"):
        await target.update(Ref(id="7"), Item(text="x"), ANN)
    assert (sent.calls("cut"), sent.calls("paste")) == ([], [])


async def test_a_users_setup_is_made_once_and_before_anything_else_of_that_user(opened):
    setup = [{"tool": "create", "args": {"name": "{user}"}, "accepts": "exists"}, {"tool": "warm"}]
    target, sent = await opened(
        add_with(text="{text}"), {"create": ServerReply(text="", problem="it exists already")}, setup=setup
    )
    assert [name for name, _ in sent.sent] == ["open", "warm"]
    await asyncio.gather(*(target.add([Item(text="a")], ANN) for _ in range(3)), target.add([Item(text="b")], BOB))
    assert sorted(sent.calls("create"), key=str) == [{"name": "ann"}, {"name": "bob"}]
    names = [name for name, _ in sent.sent]
    assert names.index("create") < names.index("remember")


async def test_teardown_is_made_at_the_end_and_the_transport_is_closed_even_if_it_fails(opened):
    target, sent = await opened(
        add_with(text="{text}"), {"drop": ServerReply(text="", problem="no")}, teardown=[{"tool": "drop"}]
    )
    with pytest.raises(TargetError, match="no"):
        await target.close()
    assert [name for name, _ in sent.sent][-2:] == ["drop", "close"]


async def test_of_a_preloaded_memory_nothing_is_set_up_or_torn_down_and_users_have_their_own_names(opened):
    table = {
        "search": {"tool": "find", "args": {"q": "{query}", "who": "{user}"}, "reply": {"at": "", "text": "text"}},
        "setup": [{"tool": "wipe"}, {"tool": "create", "args": {"who": "{user}"}}],
        "teardown": [{"tool": "wipe"}],
    }
    names = {}
    for is_preloaded in (True, False):
        reply = ServerReply(text="[]", data=[])
        target, sent = await opened(
            table, dict.fromkeys(("find", "wipe", "create"), reply), shared=True, preloaded=is_preloaded
        )
        await target.search(Query(text="tea"), ANN)
        await target.close()
        names[is_preloaded] = [name for name, _ in sent.sent]
        asked = dict(sent.sent)["find"]["who"]
        assert (asked == "ann") == is_preloaded
    assert names == {
        True: ["open", "find", "close"],
        False: ["open", "wipe", "create", "find", "wipe", "close"],
    }


async def test_a_serial_table_lets_one_operation_through_at_a_time(opened):
    for serial, most in ((True, 1), (False, 5)):
        target, sent = await opened(add_with(text="{text}"), serial=serial)
        await asyncio.gather(*(target.add([Item(text="a")], ANN) for _ in range(5)))
        assert sent.busiest == most


async def test_more_is_asked_for_where_rows_are_taken_out(opened):
    search = {
        "tool": "find",
        "args": {"q": "{query}", "n": "{top_k}"},
        "reply": {"at": "", "id": "id", "text": "text"},
        "keep": {"who": "{user}", "tags": "{kinds}"},
        "overfetch": 3,
        "max_top_k": 5,
    }
    rows = [
        '{"id": 1, "text": "a", "who": "bob", "tags": ["x"]}',
        '{"id": 2, "text": "b", "who": "ann", "tags": ["x", "y"]}',
        '{"id": 3, "text": "c", "who": "ann", "tags": ["z"]}',
        '{"id": 4, "text": "d", "tags": ["x"]}',
    ]
    target, sent = await opened({"search": search}, {"find": ServerReply(text=f"[{', '.join(rows)}]")})
    assert [hit.id for hit in await target.search(Query(text="q", top_k=1), ANN)] == ["2"]
    assert [hit.id for hit in await target.search(Query(text="q", top_k=2, kinds=["y", "z"]), ANN)] == ["2", "3"]
    assert await target.search(Query(text="q", kinds=["w"]), ANN) == []
    assert sent.calls("find") == [{"q": "q", "n": 3}, {"q": "q", "n": 5}, {"q": "q"}]


async def test_a_list_whose_pages_never_change_is_an_error(opened):
    every = {"tool": "all", "args": {"p": "{page}"}, "reply": {"at": "", "id": "id", "text": "t"}, "page_size": 1}
    target, _ = await opened({"list": every}, {"all": ServerReply(text='[{"id": 1, "t": "a"}]')})
    with pytest.raises(TargetError, match="page 2 is the same as the one before it"):
        await target.list(ANN)


async def test_refusals_and_failures_are_told_apart_by_words(opened):
    add = {"tool": "remember", "refuses": r"\ARefused", "fails": r"\AError"}
    replies = [
        ServerReply(text="Refused: too long"),
        ServerReply(text="Error: full"),
        ServerReply(text="An Error is what I keep"),
    ]
    target, _ = await opened({"add": add}, {"remember": replies})
    with pytest.raises(Refused, match="too long"):
        await target.add([Item(text="a")], ANN)
    with pytest.raises(TargetError, match="full"):
        await target.add([Item(text="a")], ANN)
    assert (await target.add([Item(text="a")], ANN)).items[0].outcome == "stored"


async def test_forgetting_all_is_only_for_a_table_that_has_it_and_only_as_wide_as_it_is_mapped(opened):
    operations = {"delete": {"tool": "cut", "args": {"id": "{id}"}}}
    target, _ = await opened(operations)
    with pytest.raises(NotSupported, match=r"delete\.scope"):
        await target.delete(Ref(), ANN)
    target, sent = await opened({**operations, "delete_all": {"tool": "drop", "args": {"user": "{user}"}}})
    assert await target.delete(Ref(), ANN) is True
    with pytest.raises(NotSupported, match="session"):
        await target.delete(Ref(), Scope(user="ann", session="s1"))
    assert sent.calls("drop") == [{"user": "ann"}]


async def test_the_rest_of_the_operations_are_calls_like_any_other(opened):
    operations = {
        "feedback": {"tool": "rate", "args": {"id": "{id}", "v": "{value}"}, "missing": "unknown"},
        "context": {"tool": "brief", "args": {"q": "{query}"}},
        "settle": {"tool": "wait"},
    }
    replies = {"rate": [ServerReply(text="ok"), ServerReply(text="unknown")], "brief": ServerReply(text="Ann sails.")}
    target, sent = await opened(operations, replies, about={"embedder": "none"})
    assert [await target.feedback(Ref(id="7"), 0.5, ANN) for _ in range(2)] == [True, False]
    assert sent.calls("rate")[0] == {"id": "7", "v": 0.5}
    assert await target.context(Query(text="who"), ANN) == "Ann sails."
    await target.settle()
    assert sent.calls("wait") == [None]
    assert await target.about() == {"server": "scripted", "embedder": "none"}


async def test_a_target_overrides_just_what_its_table_has(opened):
    target, _ = await opened(add_with(text="{text}"))
    with pytest.raises(NotSupported):
        await target.search(Query(text="x"), ANN)


async def test_the_last_requests_are_kept_until_somebody_takes_them(opened):
    target, _ = await opened(add_with(text="{text}"))
    await target.add([Item(text=f"note {number}") for number in range(8)], ANN)
    taken = target.take_requests()
    assert (taken[0], taken[-1], len(taken)) == ('remember {"text": "note 3"}', 'remember {"text": "note 7"}', 5)
    assert target.take_requests() == []


async def test_a_failure_says_what_was_sent_and_a_refusal_does_not(opened):
    replies = {"remember": [ServerReply(text="", problem="out of space"), ServerReply(text="no way")]}
    target, _ = await opened({"add": {**add_with(text="{text}")["add"], "refuses": "no way"}}, replies)
    with pytest.raises(TargetError, match=r'(?s)out of space.*\nsent: remember \{"text": "tea"\}'):
        await target.add([Item(text="tea")], ANN)
    with pytest.raises(Refused) as refused:
        await target.add([Item(text="tea")], ANN)
    assert "sent" not in str(refused.value)
    assert len(target.take_requests()) == 2
