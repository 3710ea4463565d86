import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.codec import encode
from memstory.contract.errors import NotSupported, Refused, StoryError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory_reference.targets.topics import TopicsFactory

ANN, BOB = Scope(user="case.ann"), Scope(user="case.bob")
S1, S2 = replace(ANN, session="s1"), replace(ANN, session="s2")
VECTORS = {
    "query": [1, 0],
    "near": [0.9, 0.43588989],
    "middle": [0.6, 0.8],
    "far": [0, 1],
    "Elixir": [0.8, 0.6],
    "Rust": [0.7, 0.71414284],
    "Q: What is near?\nA: This is.": [0.95, 0.31224990],
}
RULES = [
    {"when": {"contains": "look"}, "reply": {"tool_calls": [{"name": "search_memory", "args": {"query": "query"}}]}},
    {"when": {"tool_result_contains": "relevance"}, "reply": "I found something."},
    {"when": {"tool_result_contains": "No memories"}, "reply": "I found nothing."},
    {"when": {"tool_result_contains": "unavailable"}, "reply": "My memory is away."},
    {"when": {"contains": "What is near?"}, "reply": "This is."},
]


@pytest.fixture
def env(tmp_path):
    return Environment(workspace=str(tmp_path), owner="case.ann", vectors=VECTORS, model_rules=RULES)


@pytest.fixture
async def open_target():
    """Open targets; all are closed at the end."""
    opened = []

    async def make(env, clock=None):
        target = TopicsFactory().target()
        opened.append(target)
        await target.open(env, clock or StoryClock())
        return target

    yield make
    for target in opened:
        await target.close()


@pytest.fixture
async def target(open_target, env):
    return await open_target(env)


async def test_a_receipt_has_the_key_under_which_a_topic_is_kept(target):
    receipt = await target.add([Item(text="Elixir", key="User.Language ")], ANN)
    assert [one.key for one in receipt.items] == [hit.key for hit in await target.list(ANN)] == ["user.language"]


async def test_added_items_are_topics_if_they_have_a_key_and_come_back_in_order(target):
    receipt = await target.add(
        [Item(text="near"), Item(text="Elixir", key="user.language"), Item(text="middle", metadata={"n": 1})], S1
    )
    assert [(one.kind, one.outcome, one.key) for one in receipt.items] == [
        ("episodic", "stored", None),
        ("topic", "stored", "user.language"),
        ("episodic", "stored", None),
    ]
    again = await target.add([Item(text="Rust", key="user.language")], ANN)
    assert (again.items[0].id, again.items[0].outcome) == (receipt.items[1].id, "updated")
    hits = await target.search(Query(text="query"), ANN)
    assert [(hit.id, hit.text, hit.metadata["session_id"]) for hit in hits] == [
        (receipt.items[0].id, "near", "s1"),
        (receipt.items[2].id, "middle", "s1"),
    ]


async def test_several_items_cost_one_embedding_call(target):
    await target.add([Item(text="near"), Item(text="Elixir", key="user.language"), Item(text="middle")], ANN)
    assert (await target.inspect("embedder", {}, ANN))["calls"] == 1


@pytest.mark.parametrize(
    "bad",
    [
        Item(text=" "),
        Item(text="Elixir", key="feedback.q1"),
        Item(text="Elixir", key="user.x", metadata={"a": 1}),
        Item(text="Elixir", kind="topic"),
        Item(text="Elixir", kind="episodic", key="user.x"),
        Item(text="Elixir", kind="unknown"),
        Item(text="near", metadata={"type": "topic"}),
    ],
)
async def test_if_one_item_is_refused_none_is_stored(target, bad):
    with pytest.raises(Refused):
        await target.add([Item(text="near"), Item(text="Rust", key="user.y"), bad], ANN)
    assert await target.list(ANN) == []


async def test_a_memory_is_looked_up_by_key_or_id_and_kind(target):
    topic = (await target.add([Item(text="Elixir", key="user.language")], ANN)).items[0]
    engram = (await target.add([Item(text="near")], ANN)).items[0]
    assert (await target.get(Ref(key="User.Language "), ANN)).text == "Elixir"
    assert (await target.get(Ref(id=topic.id), ANN)).key == "user.language"
    assert (await target.get(Ref(id=engram.id, kind="episodic"), ANN)).text == "near"
    assert await target.get(Ref(id=engram.id, kind="topic"), ANN) is None
    assert await target.get(Ref(key="user.lang"), ANN) is None
    assert await target.get(Ref(id=topic.id), BOB) is None
    with pytest.raises(Refused, match="by id or by key"):
        await target.get(Ref(), ANN)


async def test_a_hit_explains_its_place(target):
    (engram,) = (await target.add([Item(text="near")], ANN)).items
    assert await target.feedback(Ref(id=engram.id), 1, ANN) is True
    (hit,) = await target.search(Query(text="query"), ANN)
    assert hit.score == pytest.approx(0.9)
    assert hit.explain == {
        "similarity": hit.score,
        "reward": 1.0,
        "is_recall": False,
        "rank_score": pytest.approx(1.0),
    }


async def test_a_search_keeps_to_its_arguments(target):
    await target.add([Item(text="near"), Item(text="middle", metadata={"n": 1}), Item(text="far")], S1)
    texts = [
        [hit.text for hit in await target.search(query, scope)]
        for query, scope in (
            (Query(text="query"), ANN),
            (Query(text="query", top_k=1), ANN),
            (Query(text="query", min_score=-1), S1),
            (Query(text="query", where={"n": 1}), ANN),
            (Query(text="query"), S2),
            (Query(text="query"), BOB),
        )
    ]
    assert texts == [["near", "middle"], ["near"], ["near", "middle", "far"], ["middle"], [], []]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(text="query", kinds=["topic"]), Refused),
        (Query(text="query", kinds=["topic", "episodic"]), Refused),
        (Query(text="query", top_k=0), Refused),
        (Query(text="query", where={"n": {"$ne": 0}}), Refused),
        (Query(text=" "), Refused),
        (Query(text="query", token_budget=5), NotSupported),
        (Query(text="query", options={"x": 1}), StoryError),
        (Query(text="unknown text"), StoryError),
    ],
)
async def test_a_search_that_cannot_be_done_says_why(target, query, error):
    with pytest.raises(error):
        await target.search(query, ANN)


async def test_the_context_is_what_the_tool_would_say(target):
    assert await target.context(Query(text="query"), ANN) == "No memories found."
    await target.add([Item(text="near")], ANN)
    text = "[Memory recall — 2026-01-01]\n1. (relevance: 0.90) 2026-01-01 near"
    assert await target.context(Query(text="query"), ANN) == text
    assert (await target.tool("search_memory", {"query": "query"}, ANN)).result == text


async def test_what_is_updated_or_deleted_must_be_known(target):
    topic = (await target.add([Item(text="Elixir", key="user.language")], ANN)).items[0]
    updated = await target.update(Ref(key="user.language"), Item(text="Rust"), ANN)
    assert [(one.id, one.outcome, one.kind, one.key) for one in updated.items] == [
        (topic.id, "updated", "topic", "user.language")
    ]
    assert (await target.get(Ref(key="user.language"), ANN)).text == "Rust"
    for ref, scope in ((Ref(key="user.nothing"), ANN), (Ref(id=topic.id), BOB)):
        with pytest.raises(Refused, match="nothing is remembered"):
            await target.update(ref, Item(text="far"), scope)
        assert await target.delete(ref, scope) is False
        assert await target.feedback(ref, 1, scope) is False
    assert await target.delete(Ref(key="user.language"), ANN) is True
    assert await target.get(Ref(id=topic.id), ANN) is None


async def test_deleting_nothing_in_particular_forgets_all_in_scope_and_no_more(target):
    for scope in (S1, S2, BOB):
        await target.add([Item(text="near")], scope)
    assert await target.delete(Ref(), S1) is True
    assert [hit.metadata["session_id"] for hit in await target.list(ANN)] == ["s2"]
    assert await target.delete(Ref(), ANN) is True
    assert await target.delete(Ref(), ANN) is False
    assert len(await target.list(BOB)) == 1


async def test_a_topic_takes_no_feedback(target):
    await target.add([Item(text="Elixir", key="user.language")], ANN)
    with pytest.raises(Refused, match="never to a topic"):
        await target.feedback(Ref(key="user.language"), 1, ANN)


async def test_a_turn_is_remembered_and_looked_up_in_another_session(target):
    assert (await target.say("What is near?", S1)).answer == "This is."
    await target.settle()
    turn = await target.say("Please look it up", S2)
    assert turn.answer == "I found something."
    (call,) = turn.tool_calls
    assert (call.name, call.args, call.error) == ("search_memory", {"query": "query"}, None)
    assert call.result.endswith("1. (relevance: 0.95) 2026-01-01 Q: What is near? A: This is.")
    model = await target.inspect("model", {}, ANN)
    assert model["calls"] == 3
    assert "What is near?" not in json.dumps(model["log"][1]["messages"][:-1])


async def test_outside_agents_call_tools_over_the_bus_without_the_generator(target):
    call = await target.tool("save_topic", {"topic": "user.language", "content": "Elixir"}, ANN, "CriticAgent")
    assert (call.result, call.error) == ("Memory saved: user.language", None)
    bus = await target.inspect("bus", {}, ANN)
    assert [(one["subject"], one["publisher"], one["owner"]) for one in bus[-2:]] == [
        ("tool.request.save_topic", "CriticAgent", "case.ann"),
        ("tool.result.save_topic", "SaveTopicTool", "case.ann"),
    ]
    assert (await target.inspect("model", {}, ANN))["calls"] == 0
    for name in ("unknown", "no tool!"):
        refusal = (await target.tool(name, {}, ANN)).error
        assert refusal.startswith(f"there is no tool named '{name}'; there are: save_topic, recall_topic, ")


@pytest.mark.parametrize(("toolset", "count"), [("single", 7), ("dual", 5)])
async def test_the_announced_tools_are_those_of_the_toolset(open_target, env, toolset, count):
    target = await open_target(replace(env, options={"toolset": toolset}))
    tools = await target.tools()
    assert len(tools) == count
    announced = [one for one in await target.inspect("bus", {}, ANN) if one["subject"] == "tool.schema"]
    assert [one["payload"]["tool"] for one in announced] == [tool.name for tool in tools]


async def test_what_was_acknowledged_is_there_after_a_restart_and_ids_go_on(open_target, env):
    first = await open_target(env)
    old = (await first.add([Item(text="near"), Item(text="Elixir", key="user.language")], ANN)).items
    await first.close()
    second = await open_target(env)
    assert (await second.get(Ref(key="user.language"), ANN)).text == "Elixir"
    new = (await second.add([Item(text="near")], ANN)).items
    assert {hit.id for hit in await second.list(ANN)} == {one.id for one in [*old, *new]}


async def test_an_embedder_that_the_story_took_down_is_refused_in_words_and_the_answer_comes(target):
    await target.add([Item(text="near"), Item(text="Elixir", key="user.language")], ANN)
    await target.fault("embedder", "down")
    with pytest.raises(Refused, match=r"^Memory unavailable: "):
        await target.search(Query(text="query"), ANN)
    assert (await target.get(Ref(key="user.language"), ANN)).text == "Elixir"
    turn = await target.say("Please look it up", S1)
    assert turn.answer == "My memory is away."
    assert turn.tool_calls[0].error.startswith("Memory unavailable: ")
    await target.settle()
    status = await target.inspect("status", {}, ANN)
    assert (status["failed"], status["ingested"]) == (1, 0)
    logged = [one["message"] for one in await target.inspect("log", {}, ANN)]
    assert any("refused a message on response.generation: the story has taken" in one for one in logged)
    await target.fault("embedder", "ok")
    assert len(await target.search(Query(text="query"), ANN)) == 1


async def test_a_model_or_store_that_the_story_took_down_is_refused_in_words(open_target, env):
    target = await open_target(replace(env, faults={"model": "down"}))
    with pytest.raises(Refused, match=r"^Model unavailable: "):
        await target.say("What is near?", S1)
    await target.fault("model", "ok")
    await target.fault("store", "down")
    with pytest.raises(Refused, match=r"^Memory unavailable: "):
        await target.list(ANN)
    assert (await target.tool("recall_topic", {"topic": "user.x"}, ANN)).error.startswith("Memory unavailable: ")


async def test_a_fault_that_nobody_knows_is_a_wrong_story(target):
    with pytest.raises(NotSupported):
        await target.fault("disk", "down")
    with pytest.raises(StoryError, match="allowed: ok, down, slow, garbage"):
        await target.fault("embedder", "tired")


async def test_a_call_that_no_rule_answers_is_an_error_that_shows_the_prompt(target):
    with pytest.raises(TargetError, match="Something unscripted"):
        await target.say("Something unscripted", S1)


async def test_the_purge_goes_by_the_clock_of_the_story(open_target, env):
    clock = StoryClock()
    target = await open_target(replace(env, options={"retention_days": 30}), clock)
    await target.add([Item(text="near"), Item(text="Elixir", key="user.language")], ANN)
    assert await target.run("purge", {}, ANN) == {"deleted": 0}
    await clock.advance_to(clock.now() + timedelta(days=31))
    assert await target.run("purge", {}, ANN) == {"deleted": 1}
    assert [hit.kind for hit in await target.list(ANN)] == ["topic"]
    assert await target.run("purge", {"older_than_days": 0}, ANN) == {"deleted": 0}


async def test_a_message_may_be_published_by_hand(target):
    payload = {"query": "What is near?", "answer": "This is.", "session_id": "s9", "query_id": "q9", "tool_calls": []}
    await target.run("publish", {"subject": "response.generation", "payload": payload}, ANN)
    await target.settle()
    (hit,) = await target.list(ANN, ["episodic"])
    assert (hit.text, hit.metadata["session_id"], hit.metadata["query_id"]) == (
        "Q: What is near?\nA: This is.",
        "s9",
        "q9",
    )
    with pytest.raises(Refused, match="bus:"):
        await target.run("publish", {"subject": "a..b"}, ANN)
    with pytest.raises(StoryError, match="allowed: subject, payload, publisher"):
        await target.run("publish", {"subjects": "a"}, ANN)


async def test_an_unknown_job_or_inspection_is_not_supported(target):
    with pytest.raises(NotSupported, match="no job 'compress'"):
        await target.run("compress", {}, ANN)
    with pytest.raises(NotSupported, match="audit"):
        await target.inspect("audit", {}, ANN)
    with pytest.raises(StoryError, match="since"):
        await target.inspect("bus", {"since": "yesterday"}, ANN)


async def test_prefixes_of_a_profile_reach_the_embedder_and_not_the_store(open_target, env):
    target = await open_target(replace(env, options={"profile": "nomic-embed-text"}))
    await target.add([Item(text="near")], ANN)
    (hit,) = await target.search(Query(text="query"), ANN)
    assert (await target.inspect("embedder", {}, ANN))["sent"] == ["search_document: near", "search_query: query"]
    assert hit.text == "near"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": {"toolkit": "dual"}}, "unknown option 'toolkit'. Did you mean 'toolset'[?] Known: bus, chat, "),
        ({"options": {"chroma_path": "/"}}, "unknown option 'chroma_path'"),
        ({"options": {"top_k": 0}}, "top_k is 0"),
        ({"options": {"embedder": "word2vec"}, "vectors": {}}, "no embedder named 'word2vec'"),
        ({"options": {"chat": "eliza"}, "model_rules": ()}, "no chat model named 'eliza'"),
        ({"vectors": {"a": [1, 0], "b": [1]}}, "has 1 numbers"),
    ],
)
async def test_what_the_story_says_wrong_about_its_environment_is_a_wrong_story(env, changes, said):
    target = TopicsFactory().target()
    with pytest.raises(StoryError, match=said):
        await target.open(replace(env, **changes), StoryClock())
    await target.close()


async def test_a_store_of_another_embedder_is_not_opened_and_its_folder_is_left_free(open_target, env):
    first = await open_target(env)
    await first.add([Item(text="near")], ANN)
    await first.close()
    foreign = TopicsFactory().target()
    with pytest.raises(TargetError):
        await foreign.open(replace(env, vectors={"x": [1, 0, 0]}), StoryClock())
    await foreign.close()
    again = await open_target(env)
    assert len(await again.list(ANN)) == 1


async def test_a_second_process_may_not_have_the_folder_too(open_target, env):
    await open_target(env)
    with pytest.raises(TargetError):
        await open_target(env)


async def test_about_says_what_answered(target):
    about = await target.about()
    assert about["embedder"] == "fixed-2"
    assert about["chat"] == "scripted by the story"
    assert about["store"].startswith("sqlite + chromadb ")


async def test_the_same_case_twice_gives_the_same_records(open_target, env, tmp_path):
    seen = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        target = await open_target(replace(env, workspace=str(tmp_path / name)), StoryClock())
        await target.add([Item(text="near", metadata={"b": 1, "a": 2}), Item(text="Elixir", key="user.x")], S1)
        turn = await target.say("Please look it up", S1)
        await target.settle()
        listed = await target.list(ANN)
        bus = await target.inspect("bus", {}, ANN)
        seen.append(json.dumps(encode([turn, listed, await target.inspect("status", {}, ANN)])) + json.dumps(bus))
        assert datetime.fromisoformat(listed[0].created_at) == StoryClock().now().astimezone(UTC)
    assert seen[0] == seen[1]
