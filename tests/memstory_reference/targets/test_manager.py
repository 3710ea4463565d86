from dataclasses import replace
from datetime import timedelta

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, StoryError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory_reference.targets.manager import ManagerFactory, ManagerTarget

ANN, BOB = Scope(user="case.ann"), Scope(user="case.bob")
S1, S2 = replace(ANN, session="s1"), replace(ANN, session="s2")
VECTORS = {
    "query": [1, 0],
    "near": [0.9, 0.43588989],
    "middle": [0.6, 0.8],
    "far": [0, 1],
    "User: look it up\nAssistant: Found.": [0, 1],
}
RULES = [
    {"when": {"tool_result_contains": "score"}, "reply": "Found."},
    {"when": {"contains": "look"}, "reply": {"tool_calls": [{"name": "search_memories", "args": {"query": "query"}}]}},
]


@pytest.fixture
def env(tmp_path):
    return Environment(workspace=str(tmp_path), owner="case.ann", vectors=VECTORS, model_rules=RULES)


@pytest.fixture
async def open_target():
    """Open targets; all are closed at the end."""
    opened = []

    async def make(env, clock=None):
        target = ManagerFactory().target()
        await target.open(env, clock or StoryClock())
        opened.append(target)
        return target

    yield make
    for target in opened:
        await target.close()


@pytest.fixture
async def target(open_target, env):
    return await open_target(env)


async def test_items_are_facts_unless_they_have_a_key_or_say_otherwise(target):
    receipt = await target.add(
        [Item(text="near"), Item(text="middle", key="task"), Item(text="far", kind="conversation")], S1
    )
    assert [(one.kind, one.key, one.outcome) for one in receipt.items] == [
        ("fact", None, "stored"),
        ("context", "task", "stored"),
        ("conversation", None, "stored"),
    ]
    assert (await target.inspect("embedder", {}, ANN))["calls"] == 1
    again = await target.add([Item(text="near"), Item(text="far", key="task")], S1)
    assert [one.outcome for one in again.items] == ["bumped", "updated"]
    assert [one.id for one in again.items] == [one.id for one in receipt.items[:2]]


@pytest.mark.parametrize(
    "bad",
    [
        Item(text=" "),
        Item(text="near", kind="dream"),
        Item(text="near", kind="fact", key="task"),
        Item(text="near", key=" "),
        Item(text="near", metadata={"type": "context"}),
    ],
)
async def test_if_one_item_is_refused_none_is_stored(target, bad):
    with pytest.raises(Refused):
        await target.add([Item(text="near"), bad], ANN)
    assert await target.list(ANN) == []


async def test_a_memory_is_looked_up_by_key_or_id_and_kind(target):
    (fact, entry) = (await target.add([Item(text="near"), Item(text="middle", key="task")], S1)).items
    assert (await target.get(Ref(id=fact.id, kind="fact"), ANN)).text == "near"
    assert await target.get(Ref(id=fact.id, kind="context"), ANN) is None
    for scope, found in ((S1, "middle"), (S2, None), (ANN, "middle"), (BOB, None)):
        hit = await target.get(Ref(key="task"), scope)
        assert (hit and hit.text) == found
    assert (await target.get(Ref(id=entry.id), ANN)).key == "task"
    with pytest.raises(Refused, match="by id or by key"):
        await target.get(Ref(), ANN)


async def test_a_search_keeps_to_its_arguments(target):
    await target.add([Item(text="near", metadata={"n": [1]}), Item(text="middle", kind="conversation")], S1)
    texts = [
        [hit.text for hit in await target.search(query, scope)]
        for query, scope in (
            (Query(text="query"), ANN),
            (Query(text="query", top_k=1), S1),
            (Query(text="query", top_k=0), ANN),
            (Query(text="query", min_score=0.7), ANN),
            (Query(text="query", where={"n": [1]}), ANN),
            (Query(text="query", kinds=["conversation"]), ANN),
            (Query(text="query"), S2),
            (Query(text="query"), BOB),
            (Query(text=" "), ANN),
        )
    ]
    assert texts == [["near", "middle"], ["near"], [], ["near"], ["near"], ["middle"], ["near"], [], []]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(text="query", kinds=["dream"]), Refused),
        (Query(text="query", kinds=["fact", "context"]), Refused),
        (Query(text="query", top_k=-1), Refused),
        (Query(text="query", where={"type": "fact"}), Refused),
        (Query(text="query", token_budget=5), NotSupported),
        (Query(text="query", options={"x": 1}), StoryError),
        (Query(text="unknown text"), StoryError),
    ],
)
async def test_a_search_that_cannot_be_done_says_why(target, query, error):
    with pytest.raises(error):
        await target.search(query, ANN)


async def test_what_is_updated_or_deleted_must_be_known(target):
    (fact,) = (await target.add([Item(text="near", metadata={"n": 1})], ANN)).items
    (updated,) = (await target.update(Ref(id=fact.id), Item(text="middle"), ANN)).items
    assert (updated.id, updated.outcome) == (fact.id, "updated")
    hit = await target.get(Ref(id=fact.id), ANN)
    assert (hit.text, hit.metadata) == ("middle", {"n": 1})
    for ref, scope in ((Ref(key="task"), ANN), (Ref(id=fact.id), BOB)):
        with pytest.raises(Refused, match="nothing is remembered"):
            await target.update(ref, Item(text="far"), scope)
        assert await target.delete(ref, scope) is False
    assert [await target.delete(Ref(id=fact.id), ANN) for _ in range(2)] == [True, False]


async def test_deleting_nothing_in_particular_forgets_all_in_scope_and_no_more(target):
    for scope in (S1, S2, replace(BOB, session="s1")):
        await target.add([Item(text="near", kind="conversation")], scope)
    assert await target.delete(Ref(), S1) is True
    assert [hit.metadata["session_id"] for hit in await target.list(ANN)] == ["s2"]
    assert [await target.delete(Ref(), ANN) for _ in range(2)] == [True, False]
    assert len(await target.list(BOB)) == 1


async def test_a_turn_calls_tools_and_is_kept(target):
    await target.add([Item(text="near")], S1)
    turn = await target.say("look it up", S1)
    (call,) = turn.tool_calls
    assert (turn.answer, call.name, call.args, call.result[0]["content"]) == (
        "Found.",
        "search_memories",
        {"query": "query"},
        "near",
    )
    window = await target.inspect("window", {}, ANN)
    assert [(entry["role"], entry["content"]) for entry in window] == [("user", "look it up"), ("assistant", "Found.")]
    assert await target.inspect("window", {}, S2) == []
    assert [hit.kind for hit in await target.list(S1)] == ["fact", "conversation"]


async def test_a_tools_own_error_is_in_the_result(target):
    assert "there is no tool" in (await target.tool("unknown", {}, ANN)).error
    assert "query is missing" in (await target.tool("search_memories", {}, ANN)).error


async def test_what_was_acknowledged_is_there_after_a_restart_and_ids_go_on(open_target, env):
    first = await open_target(env)
    old = (await first.add([Item(text="near", kind="conversation"), Item(text="far", key="task")], S1)).items
    await first.close()
    second = await open_target(env)
    assert (await second.get(Ref(key="task"), S1)).text == "far"
    new = (await second.add([Item(text="near", kind="conversation")], S1)).items
    assert {hit.id for hit in await second.list(ANN)} == {one.id for one in [*old, *new]}


async def test_another_embedder_on_the_same_folder_is_refused(open_target, env):
    first = await open_target(env)
    await first.add([Item(text="near")], ANN)
    await first.close()
    with pytest.raises(TargetError):
        await open_target(replace(env, vectors={"near": [1, 0, 0]}))
    assert len(await (await open_target(env)).list(ANN)) == 1


async def test_the_clock_of_the_story_drives_the_cleanup(open_target, env):
    clock = StoryClock()
    target = await open_target(env, clock)
    await target.add([Item(text="near", kind="context"), Item(text="far")], S1)
    await clock.advance_to(clock.now() + timedelta(days=1), target.settle)
    status = await target.inspect("status", {}, ANN)
    assert (status["rows"], status["fact"], status["cleanup_runs"]) == (1, 1, 25)
    assert [event["deleted"] for event in status["cleanups"]] == [1]


async def test_a_backup_is_equal_and_the_original_goes_on(target, tmp_path):
    await target.add([Item(text="near"), Item(text="far", key="task")], S1)
    assert await target.run("backup", {"folder": "copy"}, ANN) == {"memories": 2, "equal": True}
    assert (tmp_path / "copy" / "vectors.sqlite3").is_file()
    assert (await target.get(Ref(key="task"), S1)).text == "far"
    with pytest.raises(Refused, match="there already"):
        await target.run("backup", {"folder": "copy"}, ANN)
    assert len(await target.list(ANN)) == 2


async def test_parts_that_the_story_took_down_are_refused_in_words(target):
    await target.add([Item(text="near")], ANN)
    await target.fault("embedder", "down")
    with pytest.raises(Refused, match="Memory unavailable"):
        await target.search(Query(text="query"), ANN)
    assert (await target.tool("search_memories", {"query": "query"}, ANN)).error.startswith("Memory unavailable: ")
    await target.fault("embedder", "ok")
    await target.fault("store", "down")
    with pytest.raises(Refused, match="Memory unavailable"):
        await target.list(ANN)
    await target.fault("store", "ok")
    await target.fault("model", "down")
    with pytest.raises(Refused, match="unavailable"):
        await target.say("look it up", S1)


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda target: target.run("reindex", {}, ANN), NotSupported),
        (lambda target: target.run("cleanup", {"now": True}, ANN), StoryError),
        (lambda target: target.run("backup", {"to": "x"}, ANN), StoryError),
        (lambda target: target.inspect("bus", {}, ANN), NotSupported),
        (lambda target: target.inspect("status", {"until": 1}, ANN), StoryError),
        (lambda target: target.inspect("model", {"since": "x"}, ANN), StoryError),
        (lambda target: target.inspect("formula", {"rank": []}, ANN), StoryError),
        (lambda target: target.inspect("formula", {"expires_at": [["dream", "2026-05-01"]]}, ANN), StoryError),
        (lambda target: target.inspect("formula", {"expires_at": 5}, ANN), StoryError),
    ],
)
async def test_a_job_or_a_look_that_nobody_knows_is_a_wrong_story(target, work, error):
    with pytest.raises(error):
        await work(target)


@pytest.mark.parametrize("options", [{"toolset": "dual"}, {"path": "/"}, {"context_window_size": -1}, {"timezone": 5}])
async def test_a_wrong_option_is_a_wrong_story(open_target, env, options):
    with pytest.raises(StoryError, match="options: "):
        await open_target(replace(env, options=options))


def test_every_option_is_a_capability():
    assert {f"option.{name}" for name in ManagerTarget.options} <= ManagerTarget.capabilities()
