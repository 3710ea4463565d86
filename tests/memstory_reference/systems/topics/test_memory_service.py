import asyncio

import pytest

from memstory.contract.target import Item, Query, Ref, Scope
from memstory_reference.errors import InputError

ANN = Scope(user="ann")


async def test_a_topic_is_recalled_exactly_as_it_was_written(memory):
    # L-27
    await memory.service.write_topic("ann", "user.language_preference", "Elixir")
    assert await memory.service.recall_topic("ann", "user.language_preference") == "Elixir"


async def test_an_engram_is_found_with_a_score_above_the_threshold(memory):
    # L-27
    engram = await memory.service.write_episodic("ann", "near", {})
    (found,) = await memory.service.search_episodic("ann", "query")
    assert (found.id, found.text, found.score) == (engram, "near", pytest.approx(0.9))


async def test_topics_and_engrams_of_the_same_words_are_each_found_on_their_own_path(memory):
    await memory.service.write_topic("ann", "user.name", "near")
    engram = await memory.service.write_episodic("ann", "near", {})
    assert [one.id for one in await memory.service.search_episodic("ann", "query")] == [engram]
    assert await memory.service.recall_topic("ann", "user.name") == "near"
    assert (await memory.service.count("ann", "topic"), await memory.service.count("ann", "episodic")) == (1, 1)


async def test_a_newer_value_replaces_the_older_in_the_same_row(memory):
    first = await memory.service.write_topic("ann", "user.language", "Elixir")
    second = await memory.service.write_topic("ann", " User.Language", "Rust")
    assert first == second
    assert await memory.service.recall_topic("ann", "user.language") == "Rust"
    assert await memory.service.count("ann", "topic") == 1


@pytest.mark.parametrize("topic", ["user.language", "user.language_preferences", "user", "user.", "ünknown", "x" * 300])
async def test_only_the_exact_topic_is_recalled(memory, topic):
    await memory.service.write_topic("ann", "user.language_preference", "Elixir")
    assert await memory.service.recall_topic("ann", topic) is None


async def test_an_operator_object_is_no_topic(memory):
    await memory.service.write_topic("ann", "user.name", "Elixir")
    with pytest.raises(InputError, match="topic must be text"):
        await memory.service.recall_topic("ann", {"$ne": ""})


async def test_recalling_a_topic_embeds_nothing_and_works_while_the_embedder_is_down(memory):
    await memory.service.write_topic("ann", "user.name", "Elixir")
    calls = memory.embedder.data()["calls"]
    memory.switch.mode = "down"
    assert await memory.service.recall_topic("ann", "user.name") == "Elixir"
    assert await memory.service.recall_topic("ann", "user.nothing") is None
    assert memory.embedder.data()["calls"] == calls


async def test_the_embedder_gets_prefixes_and_the_store_gets_raw_text(memory):
    await memory.service.write_topic("ann", "user.language", "Elixir")
    await memory.service.write_episodic("ann", "near", {})
    await memory.service.search_episodic("ann", "query")
    assert memory.embedder.data()["sent"] == [
        "search_document: Elixir",
        "search_document: near",
        "search_query: query",
    ]
    assert [one.text for one in await memory.service.list(ANN, ["episodic"])] == ["near"]


async def test_the_same_words_twice_are_two_engrams(memory):
    first, second = [await memory.service.write_episodic("ann", "near", {}) for _ in range(2)]
    assert first != second
    assert await memory.service.count("ann", "episodic") == 2


async def test_several_engrams_cost_one_embedding_call(memory):
    items = [Item(text="near", metadata={"n": 1}), Item(text="middle", metadata={"n": 2})]
    ids = [one.id for one in (await memory.service.add(items, ANN)).items]
    assert memory.embedder.data()["calls"] == 1
    assert [one.id for one in await memory.service.list(ANN, ["episodic"])] == ids


async def test_of_two_facts_for_one_topic_in_a_batch_the_last_stays(memory):
    receipt = await memory.service.add([Item(text=text, key="user.language") for text in ("Elixir", "Rust")], ANN)
    assert len({one.id for one in receipt.items}) == 1
    assert await memory.service.recall_topic("ann", "user.language") == "Rust"


async def test_hits_are_at_or_above_the_threshold_and_come_best_first(memory):
    for content in ("below", "middle", "threshold", "near", "opposite"):
        await memory.service.write_episodic("ann", content, {})
    found = await memory.service.search_episodic("ann", "query")
    assert [one.text for one in found] == ["near", "middle", "threshold"]
    assert [one.score for one in found] == pytest.approx([0.9, 0.6, 0.3], abs=1e-6)


async def test_five_hits_by_default_and_as_many_as_asked_for(memory):
    for _ in range(8):
        await memory.service.write_episodic("ann", "near", {})
    assert len(await memory.service.search_episodic("ann", "query")) == 5
    assert len(await memory.service.search_episodic("ann", "query", 2)) == 2


async def test_the_configuration_decides_how_many_hits_and_how_near(make_memory):
    strict = make_memory(top_k=1, min_score=0.99)
    await strict.service.write_episodic("ann", "near", {})
    await strict.service.write_episodic("ann", "query", {})
    await strict.service.write_episodic("ann", "query", {})
    assert [one.text for one in await strict.service.search_episodic("ann", "query")] == ["query"]
    found = await strict.service.search(Query(text="query", top_k=5, min_score=-1), ANN)
    assert len(found) == 3


async def test_a_rewarded_engram_rises_from_beyond_top_k(make_memory, vectors):
    vectors["slightly nearer"] = [0.85, 0.52678269]
    memory = make_memory()
    for _ in range(3):
        await memory.service.write_episodic("ann", "slightly nearer", {})
    praised = await memory.service.write_episodic("ann", "Elixir", {})
    assert await memory.service.feedback(Ref(id=praised), 1, ANN)
    (best,) = await memory.service.search_episodic("ann", "query", 1)
    assert (best.id, best.score) == (praised, pytest.approx(0.8))


async def test_a_reward_embeds_nothing_keeps_the_vector_and_makes_no_topic(memory):
    engram = await memory.service.write_episodic("ann", "near", {"session_id": "s1"})
    memory.switch.mode = "down"
    assert await memory.service.feedback(Ref(id=engram), 5, ANN)
    assert await memory.service.feedback(Ref(id=engram), -0.5, ANN)
    memory.switch.mode = "ok"
    (found,) = await memory.service.search_episodic("ann", "query")
    assert found.score == pytest.approx(0.9)
    assert (found.metadata["reward"], found.metadata["session_id"]) == (-0.5, "s1")
    assert await memory.service.count("ann", "topic") == 0


async def test_a_topic_takes_no_reward_and_an_unknown_id_is_reported(memory):
    topic = await memory.service.write_topic("ann", "user.name", "Elixir")
    with pytest.raises(InputError, match="never to a topic"):
        await memory.service.feedback(Ref(id=topic), 1, ANN)
    assert await memory.service.feedback(Ref(id="unknown"), 1, ANN) is False


async def test_metadata_of_a_caller_cannot_make_a_topic_of_an_engram(memory):
    # LF-10
    with pytest.raises(InputError, match="reserved"):
        await memory.service.write_episodic("ann", "near", {"type": "topic", "topic": "user.name"})
    assert await memory.service.recall_topic("ann", "user.name") is None


async def test_topics_are_listed_by_name(memory):
    for topic in ("user.name", "project.stack.db", "user.language", "project.stack.web"):
        await memory.service.write_topic("ann", topic, "Elixir")
    listed = [one.key for one in await memory.service.list(ANN, ["topic"])]
    assert listed == ["project.stack.db", "project.stack.web", "user.language", "user.name"]


async def test_a_forgotten_topic_and_engram_are_gone_and_a_second_time_unknown(memory):
    await memory.service.write_topic("ann", "user.name", "Elixir")
    engram = await memory.service.write_episodic("ann", "near", {})
    topic = await memory.service.get(Ref(key="User.Name"), ANN)
    assert await memory.service.delete(Ref(id=topic.id), ANN)
    assert await memory.service.delete(Ref(id=engram), ANN)
    assert not await memory.service.delete(Ref(id=topic.id), ANN)
    assert await memory.service.get(Ref(key="user.name"), ANN) is None
    assert not await memory.service.delete(Ref(id=engram), ANN)
    assert await memory.service.search_episodic("ann", "query") == []


async def test_a_rewritten_engram_is_found_by_its_new_words_and_keeps_its_session(memory):
    engram = await memory.service.write_episodic("ann", "Eve", {"session_id": "s1"})
    assert await memory.service.search_episodic("ann", "query") == []
    assert await memory.service.update(Ref(id=engram), Item(text="near", metadata={"note": "corrected"}), ANN)
    (found,) = await memory.service.search_episodic("ann", "query")
    assert (found.id, found.text) == (engram, "near")
    assert (found.metadata["session_id"], found.metadata["note"]) == ("s1", "corrected")


async def test_sessions_are_one_memory_unless_one_is_asked_for(memory):
    await memory.service.write_episodic("ann", "near", {"session_id": "s1"})
    await memory.service.write_episodic("ann", "middle", {"session_id": "s2"})
    assert len(await memory.service.search_episodic("ann", "query")) == 2
    found = await memory.service.search(Query(text="query", where={"session_id": "s2"}), ANN)
    assert [one.text for one in found] == ["middle"]


@pytest.mark.parametrize("where", [{"session_id": {"$ne": ""}}, {"type": "topic"}, {"$or": "x"}])
async def test_a_filter_holds_plain_values_of_plain_keys(memory, where):
    with pytest.raises(InputError):
        await memory.service.search(Query(text="query", where=where), ANN)


async def test_the_purge_takes_engrams_older_than_the_retention_and_no_topic(make_memory):
    memory = make_memory(retention_days=30)
    await memory.service.write_topic("ann", "user.name", "Elixir")
    await memory.service.write_episodic("ann", "near", {})
    memory.clock.advance(days=30)
    assert await memory.service.purge("ann") == 0
    memory.clock.advance(microseconds=1)
    await memory.service.write_episodic("ann", "middle", {})
    assert await memory.service.purge("ann") == 1
    assert [one.text for one in await memory.service.search_episodic("ann", "query")] == ["middle"]
    assert await memory.service.recall_topic("ann", "user.name") == "Elixir"


async def test_a_purge_without_a_retention_is_refused(memory):
    for days in (None, -1, float("nan"), True, "30"):
        with pytest.raises(InputError, match="retention_days"):
            await memory.service.purge("ann", days)


async def test_the_later_of_two_concurrent_writes_of_a_topic_stays(memory):
    release = asyncio.Event()
    embed = memory.switch.inner.embed

    async def slow_for_the_first(texts, purpose):
        if texts == ["Elixir"]:
            await release.wait()
        return await embed(texts, purpose)

    memory.switch.inner.embed = slow_for_the_first
    first = asyncio.create_task(memory.service.write_topic("ann", "user.language", "Elixir"))
    await asyncio.sleep(0)
    second = asyncio.create_task(memory.service.write_topic("ann", "user.language", "Rust"))
    await asyncio.sleep(0)
    # Another owner does not wait for this one's turn.
    await asyncio.wait_for(memory.service.write_topic("bob", "user.language", "Rust"), 5)
    release.set()
    await asyncio.gather(first, second)
    assert await memory.service.recall_topic("ann", "user.language") == "Rust"


async def test_two_hundred_concurrent_writes_and_recalls_lose_nothing(memory):
    # L-25, LF-12: four workers share one service; a crossing or lost write would show here.
    async def worker(name):
        for n in range(50):
            await memory.service.write_topic("ann", f"user.{name}_{n}", "Elixir")
            assert await memory.service.recall_topic("ann", f"user.{name}_{n}") == "Elixir"

    await asyncio.gather(*(worker(name) for name in "abcd"))
    assert await memory.service.count("ann", "topic") == 200


async def test_engrams_are_listed_oldest_first_with_the_time_of_their_writing(memory):
    await memory.service.write_episodic("ann", "near", {})
    memory.clock.advance(days=1)
    await memory.service.write_episodic("ann", "middle", {})
    await memory.service.write_episodic("ann", "Eve", {"timestamp_utc": "2026-05-29T00:00:00Z"})
    listed = await memory.service.list(ANN, ["episodic"])
    assert [(one.text, one.metadata["timestamp_utc"][:10]) for one in listed] == [
        ("Eve", "2026-05-29"),
        ("near", "2026-05-30"),
        ("middle", "2026-05-31"),
    ]


async def test_relaxed_topics_are_a_setting(make_memory):
    relaxed = make_memory(strict_topics=False)
    await relaxed.service.write_topic("ann", "weather", "Elixir")
    assert await relaxed.service.recall_topic("ann", "weather") == "Elixir"


TOLD = "my password is hunter22"


@pytest.mark.parametrize(
    "write",
    [
        lambda service, _: service.write_topic("ann", "user.pin", TOLD),
        lambda service, _: service.write_episodic("ann", TOLD),
        lambda service, _: service.write_episodic("ann", "near", {"note": TOLD}),
        lambda service, known: service.update(Ref(id=known), Item(text=TOLD), ANN),
        lambda service, known: service.update(Ref(id=known), Item(text="near", metadata={"note": TOLD}), ANN),
    ],
)
async def test_a_secret_is_refused_on_every_way_in(make_memory, write):  # SEC-12
    memory = make_memory(secrets="refuse")
    known = await memory.service.write_episodic("ann", "near")
    with pytest.raises(InputError, match="it holds a password"):
        await write(memory.service, known)
    assert [one.text for one in await memory.service.list(ANN, ["episodic"])] == ["near"]
    assert await memory.service.list(ANN, ["topic"]) == []


async def test_a_secret_is_left_out_of_a_topic_and_of_its_key(make_memory, vectors):  # SEC-12
    vectors["my password is [left out: a password]"] = [1.0, 0.0]
    memory = make_memory(secrets="redact")
    await memory.service.write_topic("ann", "user.login_hunter22x9q", "my password is hunter22-X9q")
    (entry,) = await memory.service.list(ANN, ["topic"])
    assert (entry.key, entry.text) == ("user.login_secret", "my password is [left out: a password]")


@pytest.mark.parametrize(
    "call",
    [
        lambda service: service.write_episodic("ann", "near", ["x"]),
        lambda service: service.write_episodic("ann", "near", {"timestamp_utc": "9999-12-31T23:59:59-12:00"}),
        lambda service: service.search(Query(text="query", where="x"), ANN),
        lambda service: service.search_episodic("ann", "query", 10**19),
        lambda service: service.search_episodic("ann", "x" * 10_001),
        lambda service: service.search_episodic(" ", "query"),
        lambda service: service.write_topic(5, "user.name", "near"),
        lambda service: service.delete(Ref(id="\ud800"), ANN),
        lambda service: service.purge("ann", "x"),
        lambda service: service.feedback(Ref(id="x"), 10**400, ANN),
    ],
)
async def test_whatever_cannot_be_taken_is_refused_with_one_kind_of_error(memory, call):
    with pytest.raises(InputError):
        await call(memory.service)


async def test_what_is_past_the_retention_is_not_found_even_before_the_purge(make_memory):
    memory = make_memory(retention_days=30)
    await memory.service.write_episodic("ann", "near", {})
    memory.clock.advance(days=30)
    await memory.service.write_episodic("ann", "middle", {})
    memory.clock.advance(days=1)
    assert [one.text for one in await memory.service.search_episodic("ann", "query")] == ["middle"]
    assert await memory.service.purge_all() == 1


async def said_since(memory, topic):
    """Return what the tool that recalls a topic shows beside it, without the day."""
    shown = await memory.service.context(Query(text=topic, kinds=["topic"]), ANN)
    return [line.split(" ", 2)[2] for line in shown.splitlines()[2:]]


async def test_what_is_said_of_a_topic_after_it_was_saved_comes_with_it_newest_first(make_memory, vectors):
    vectors |= dict.fromkeys(["Anna", "Bo", "Who is my manager?", "I have a manager.", "My sister is Cleo."], (1, 0))
    said = [f"Manager number {number} is here." for number in range(4)]
    vectors |= dict.fromkeys([*said, "Q: Bo is my manager.\nA: Noted."], (1, 0))
    memory = make_memory()
    await memory.service.write_episodic("ann", "I have a manager.")
    await memory.service.write_topic("ann", "user.manager_name", "Anna")
    for content in ("Who is my manager?", "My sister is Cleo.", *said):
        await memory.service.write_episodic("ann", content)
    await memory.service.write_episodic("bob", "I have a manager.")
    assert await said_since(memory, "user.manager_name") == said[:0:-1]
    newest = (await memory.service.list(ANN, ["episodic"]))[-1]
    await memory.service.delete(Ref(id=newest.id), ANN)
    assert await said_since(memory, "user.manager_name") == said[2:0:-1]
    await memory.service.write_topic("ann", "user.manager_name", "Bo")
    turn = {"is_recall": False, "topics": ["user.manager_name"]}
    await memory.service.write_turn("ann", "Q: Bo is my manager.\nA: Noted.", {}, **turn, saved=turn["topics"])
    assert await said_since(memory, "user.manager_name") == []
    await memory.service.write_turn("ann", "Q: Bo is my manager.\nA: Noted.", {}, **turn)
    assert len(await said_since(memory, "user.manager_name")) == 1


async def test_a_rewritten_topic_and_an_older_engram_leave_nothing_said_since(make_memory, vectors):
    vectors |= dict.fromkeys(["Anna", "Bo", "I have a manager."], (1, 0))
    memory = make_memory(retention_days=1)
    entry_id = await memory.service.write_topic("ann", "user.manager", "Anna")
    await memory.service.write_episodic("ann", "I have a manager.", {"timestamp_utc": "2026-05-29T09:00:00+00:00"})
    assert await said_since(memory, "user.manager") == []
    await memory.service.write_episodic("ann", "I have a manager.")
    assert await said_since(memory, "user.manager") == ["I have a manager."]
    memory.clock.advance(days=2)
    assert await said_since(memory, "user.manager") == []
    memory.clock.advance(days=-2)
    await memory.service.update(Ref(id=entry_id), Item(text="Bo"), ANN)
    assert await said_since(memory, "user.manager") == []


async def test_forgetting_a_topic_names_what_was_said_of_it_since_and_keeps_it(make_memory, vectors):
    vectors |= dict.fromkeys(["Anna", "My manager is Bo."], (1, 0))
    memory = make_memory()
    entry_id = await memory.service.write_topic("ann", "user.manager", "Anna")
    later = await memory.service.write_episodic("ann", "My manager is Bo.")
    gone = await memory.service.forget(entry_id, ANN)
    assert ([one.id for one in gone.gone], [one.id for one in gone.mentions]) == ([entry_id], [later])


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": 5},
        {"text": ""},
        {"text": "tea", "key": "no such key"},
        {"text": "tea", "created_at": "yesterday"},
        {"text": "tea", "metadata": {"a": [1]}},
    ],
)
async def test_a_row_to_import_that_is_wrong_is_refused_by_its_number_and_nothing_is_stored(memory, wrong):
    with pytest.raises(InputError, match=r"^row 2: "):
        await memory.service.import_rows([{"text": "tea"}, wrong], Scope(user="ann"))
    assert await memory.service.list(Scope(user="ann")) == []
