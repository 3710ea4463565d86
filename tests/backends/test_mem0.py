"""What is peculiar to Mem0."""

import json
import sys
from pathlib import Path

import pytest

from memstory import load_stories, play
from memstory.contract.errors import NotSupported, Refused, SetupError, StoryError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.embedders import Embedders, load_embedder
from memstory.targets.vendors.mem0 import Mem0Factory

STORIES = Path(__file__).parents[2] / "stories/inferred/inferred.yaml"
vendor = "mem0"
ANN, BOB = Scope(user="ann", session="one"), Scope(user="bob", session="one")
EVERYWHERE = Scope(user="ann")


@pytest.fixture
def factory(letters):
    return Mem0Factory(Embedders({"minilm": letters}))


def texts(hits):
    return [hit.text for hit in hits]


async def test_nothing_is_told_to_its_makers(factory, opened):
    async with opened(factory):
        from mem0.memory import telemetry  # noqa: PLC0415  (not installed everywhere)

        assert telemetry.client_telemetry.posthog is None
        assert telemetry._oss_telemetry_instance is None


async def test_a_list_of_items_is_embedded_at_once(factory, opened, letters):
    async with opened(factory) as target:
        letters.calls.clear()
        receipt = await target.add([Item(text="one"), Item(text="two", metadata={"n": 2}), Item(text="three")], ANN)
        assert letters.calls == [(["one", "two", "three"], "document")]
        assert [item.text for item in receipt.items] == ["one", "two", "three"]


async def test_one_and_true_in_one_batch_keep_their_types(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="one", metadata={"n": 1}), Item(text="true", metadata={"n": True})], ANN)
        found = {hit.text: hit.metadata["n"] for hit in await target.list(ANN)}
    assert {text: type(value) for text, value in found.items()} == {"one": int, "true": bool}


async def test_a_query_is_embedded_as_one(factory, opened, letters):
    async with opened(factory) as target:
        await target.search(Query(text="asked"), EVERYWHERE)
        assert letters.calls[-1] == (["asked"], "query")


async def test_search_and_list_keep_users_apart(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text="the word is swordfish")], BOB)
        assert await target.search(Query(text="the word is swordfish", top_k=50), EVERYWHERE) == []
        assert await target.list(EVERYWHERE) == []
        assert texts(await target.list(Scope(user="bob"))) == ["the word is swordfish"]


async def test_conditions_of_kind_session_and_metadata_hold_together(factory, opened):
    async with opened(factory) as target:
        await target.add(
            [
                Item(text="a b", kind="fact", metadata={"n": 1}),
                Item(text="a b c", kind="fact", metadata={"n": 2}),
                Item(text="a b d", kind="note", metadata={"n": 1}),
            ],
            ANN,
        )
        asked = Query(text="a b", kinds=("fact", "other"), where={"n": 1})
        (hit,) = await target.search(asked, ANN)
        assert (hit.text, hit.kind, dict(hit.metadata)) == ("a b", "fact", {"n": 1})
        assert await target.search(asked, Scope(user="ann", session="two")) == []
        assert texts(await target.list(EVERYWHERE, kinds=("note",))) == ["a b d"]
        assert await target.delete(Ref(kind="note"), EVERYWHERE)
        assert sorted(texts(await target.list(EVERYWHERE))) == ["a b", "a b c"]


async def test_texts_come_back_letter_for_letter(factory, opened):
    told = ["  - a line\n", "flour\n\n\t500 g  salt\r\n", "zero\u200bwidth soft\u00adhyphen", "one\0two", "e\u0301"]
    async with opened(factory) as target:
        receipt = await target.add([Item(text=text) for text in told], ANN)
        assert [(await target.get(Ref(id=item.id), EVERYWHERE)).text for item in receipt.items] == told
        assert sorted(texts(await target.list(EVERYWHERE))) == sorted(told)


async def test_a_session_is_listed_and_forgotten_alone(factory, opened):
    other = Scope(user="ann", session="two")
    async with opened(factory) as target:
        await target.add([Item(text="said in one")], ANN)
        await target.add([Item(text="said in two")], other)
        assert texts(await target.list(other)) == ["said in two"]
        assert await target.delete(Ref(), ANN)
        assert texts(await target.list(EVERYWHERE)) == ["said in two"]


async def test_a_lowest_score_leaves_out_what_is_below(factory, opened):
    vectors = {"near": [0.6, 0.8], "far": [0.2, 0.979796], "asked": [1.0, 0.0]}
    async with opened(factory, vectors=vectors) as target:
        await target.add([Item(text="near"), Item(text="far")], ANN)
        hits = await target.search(Query(text="asked"), EVERYWHERE)
        assert [(hit.text, round(hit.score, 3)) for hit in hits] == [("near", 0.6), ("far", 0.2)]
        assert hits[0].explain["semantic_score"] == pytest.approx(0.6)
        assert texts(await target.search(Query(text="asked", min_score=0.5), EVERYWHERE)) == ["near"]


async def test_more_than_mem0_lists_by_itself_are_listed(factory, opened):
    async with opened(factory) as target:
        await target.add([Item(text=f"text {number}") for number in range(130)], ANN)
        assert len(await target.list(EVERYWHERE)) == 130
        assert len(await target.list(EVERYWHERE, limit=7)) == 7


async def test_what_mem0_declines_is_refused_in_its_words(factory, opened):
    async with opened(factory) as target:
        with pytest.raises(Refused, match="cannot be empty"):
            await target.search(Query(text="  "), EVERYWHERE)
        with pytest.raises(Refused, match="cannot contain whitespace"):
            await target.add([Item(text="x")], Scope(user="ann b"))
        with pytest.raises(Refused, match="cannot contain whitespace"):
            await target.list(Scope(user="ann b"))
        with pytest.raises(NotSupported):
            await target.add([Item(text="x", key="k")], ANN)


async def test_with_a_language_model_it_keeps_what_that_finds(factory, opened, ollama_server):
    ollama_server.replies = [{"content": json.dumps({"memory": [{"id": "0", "text": "Ann likes green tea"}]})}]
    options = {"llm": "ollama:gemma3:4b", "ollama_host": ollama_server.url}
    async with opened(factory, options=options) as target:
        receipt = await target.add([Item(text="By the way, I like green tea.", kind="fact")], ANN)
        assert [(item.text, item.outcome) for item in receipt.items] == [("Ann likes green tea", "stored")]
        (hit,) = await target.search(Query(text="green tea"), EVERYWHERE)
        assert (hit.id, hit.text, hit.kind) == (receipt.items[0].id, "Ann likes green tea", "fact")
        assert (await target.about())["infer"] == "ollama:gemma3:4b"
    path, body = ollama_server.requests[-1]
    assert (path, body["model"]) == ("/api/chat", "gemma3:4b")
    assert "I like green tea" in body["messages"][-1]["content"]


async def test_a_text_in_which_a_language_model_finds_nothing_is_told_as_dropped(factory, opened, ollama_server):
    ollama_server.replies = [{"content": json.dumps({"memory": []})}]
    options = {"llm": "ollama:gemma3:4b", "ollama_host": ollama_server.url}
    async with opened(factory, options=options) as target:
        receipt = await target.add([Item(text="Hm.")], ANN)
        assert [(item.id, item.text, item.outcome) for item in receipt.items] == [(None, "Hm.", "dropped")]
        assert await target.list(EVERYWHERE) == []


async def test_a_language_model_that_is_gone_is_no_empty_memory(factory, opened):
    from mem0.exceptions import LLMError  # noqa: PLC0415  (not installed everywhere)

    options = {"llm": "ollama:gemma3:4b", "ollama_host": "http://127.0.0.1:9"}
    async with opened(factory, options=options) as target:
        with pytest.raises(LLMError):
            await target.add([Item(text="I like tea.")], ANN)


async def test_a_language_model_without_a_name_is_a_setup_error(factory, opened):
    with pytest.raises(SetupError, match="give PROVIDER:MODEL"):
        async with opened(factory, options={"llm": "ollama"}):
            pass


def test_what_it_can_do_depends_on_the_language_model(factory):
    plain, inferring = factory.capabilities({}), factory.capabilities({"llm": "ollama:x"})
    # Only a model of OpenAI's protocol can be looked at.
    assert plain - inferring == {"add.verbatim", "add.exact", "inspect.model"}
    assert inferring - plain == {"add.infer"}
    assert factory.capabilities({"llm": "openai:x"}) - inferring == {"inspect.model"}


INFERRED = {
    "INF1": "passed",
    "INF2": "passed",
    "INF3": "passed",
    "INF4": "failed",
    "INF5": "passed",
    "INF6": "failed",
    "INF7": "passed",
}
"""INF4: of two statements that contradict each other the older one is nearer. INF6: an unusable reply is swallowed."""


@pytest.mark.parametrize("name", INFERRED)
async def test_stories_script_the_model_inside(name):
    (story,) = [one for one in load_stories(STORIES) if one.id == name]
    result = await play(story, Mem0Factory(Embedders({"minilm": load_embedder("minilm")})))
    assert result.outcome == INFERRED[name], result.reason


async def test_what_no_rule_answers_is_the_storys_fault(factory, opened):
    async with opened(factory, model_rules=[{"when": {"contains": "coffee"}, "reply": "no"}]) as target:
        with pytest.raises(StoryError, match="no rule under `model:` fits"):
            await target.add([Item(text="I like tea.")], ANN)


async def test_a_vector_store_that_does_not_run_here_is_a_setup_error(factory, opened):
    with pytest.raises(SetupError, match=r"vector_store=milvus: .* run here are qdrant, chroma, faiss, pgvector"):
        async with opened(factory, options={"vector_store": "milvus"}):
            pass


@pytest.mark.parametrize("package", ["psycopg", "psycopg_pool"])
async def test_without_a_client_of_postgres_pgvector_says_what_to_install(factory, opened, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SetupError, match=rf"needs the package '{package}'.* pip install .*\[mem0-pgvector\]'"):
        async with opened(factory, options={"vector_store": "pgvector"}):
            pass


async def test_on_pgvector_a_workspace_keeps_what_was_changed_and_knows_nothing_of_another(
    factory, opened, postgres_url
):
    options = {"vector_store": "pgvector", "postgres": postgres_url}
    async with opened(factory, options=options) as target:
        kept, gone = (await target.add([Item(text="said in the first"), Item(text="to be forgotten")], ANN)).items
        await target.update(Ref(id=kept.id), Item(text="said in the first, and changed"), ANN)
        assert await target.delete(Ref(id=gone.id), ANN)
        assert "pgvector" in (await target.about())["server"]
    async with opened(factory, folder="other", options=options) as target:
        assert await target.list(EVERYWHERE) == []
    async with opened(factory, options=options) as target:
        assert texts(await target.list(EVERYWHERE)) == ["said in the first, and changed"]


@pytest.mark.parametrize("metadata", [{"": 1}, {"$gt": 1}])
async def test_what_chroma_inside_it_refuses_is_refused(factory, opened, metadata):
    async with opened(factory, options={"vector_store": "chroma"}) as target:
        (known,) = (await target.add([Item(text="tea")], ANN)).items
        with pytest.raises(Refused):
            await target.add([Item(text="one", metadata=metadata)], ANN)
        with pytest.raises(Refused):
            await target.update(Ref(id=known.id), Item(text="two", metadata=metadata), ANN)
        assert texts(await target.list(EVERYWHERE)) == ["tea"]
