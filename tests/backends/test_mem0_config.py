"""Mem0 by its user's own configuration, with a model server that speaks OpenAI's protocol."""

import json

import pytest

from memstory.contract.errors import SetupError
from memstory.contract.target import Item, Query, Request, Scope, Target
from memstory.targets.embedders import Embedders
from memstory.targets.vendors.mem0 import Mem0Factory

vendor = "mem0"
ANN = Scope(user="ann")


@pytest.fixture
def factory(letters):
    return Mem0Factory(Embedders({"minilm": letters}))


@pytest.fixture(autouse=True)
def _notes(monkeypatch):
    monkeypatch.delenv("MEMSTORY_MEM0_COLLECTIONS", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def written(tmp_path, openai_endpoint):
    """Writes a configuration as people have one, and returns its name."""
    server = {"api_key": "sk-mine", "model": "tiny", "openai_base_url": openai_endpoint.url}

    def write(**parts):
        usual = {
            "llm": {"provider": "openai", "config": server},
            "embedder": {"provider": "openai", "config": server},
            "vector_store": {"provider": "qdrant", "config": {"embedding_model_dims": 3, "on_disk": True}},
        }
        file = tmp_path / "mine.json"
        file.write_text(json.dumps({**usual, **parts}), "utf-8")
        return str(file)

    return write


def says(server, *facts):
    answer = {"memory": [{"id": str(place), "text": fact} for place, fact in enumerate(facts)]}
    server.deltas = [{"content": json.dumps(answer)}]


async def test_it_infers_and_embeds_as_the_configuration_says_in_a_place_of_its_own(
    factory, opened, written, openai_endpoint, tmp_path
):
    says(openai_endpoint, "Ann likes green tea")
    async with opened(factory, options={"config": written()}) as target:
        receipt = await target.add([Item(text="By the way, I like green tea.")], ANN)
        assert [item.text for item in receipt.items] == ["Ann likes green tea"]
        assert [hit.text for hit in await target.search(Query(text="tea"), ANN)] == ["Ann likes green tea"]
        about = await target.about()
        assert target.embedding_seconds > 0
    assert (about["embedder"], about["infer"]) == ("openai:tiny", "openai:tiny")
    assert about["config"] == "mine.json; of the case's own: vector_store.config.path, history_db_path"
    assert {path for path, _ in openai_endpoint.requests} == {"/v1/embeddings", "/v1/chat/completions"}
    workspace = tmp_path / "workspace"
    assert {"qdrant", "history.sqlite3"} <= {path.name for path in workspace.iterdir()}


async def test_a_path_of_the_user_is_never_written_to(factory, opened, written, tmp_path):
    own = tmp_path / "precious"
    store = {"provider": "qdrant", "config": {"path": str(own), "embedding_model_dims": 3}}
    config = written(vector_store=store, history_db_path=str(own / "history.db"))
    async with opened(factory, options={"config": config, "infer": False}) as target:
        await target.add([Item(text="tea")], ANN)
    assert not own.exists()


async def test_without_inference_texts_are_kept_and_no_model_is_asked(factory, opened, written, openai_endpoint):
    options = {"config": written(), "infer": False}
    assert {"add.verbatim", "add.exact"} <= factory.capabilities(options)
    assert "add.infer" in factory.capabilities({"config": options["config"]})
    async with opened(factory, options=options) as target:
        assert [item.text for item in (await target.add([Item(text="I like tea.")], ANN)).items] == ["I like tea."]
    async with opened(factory, options=options) as target:
        assert [hit.text for hit in await target.list(ANN)] == ["I like tea."]
        assert (await target.about())["infer"] == "off"
    assert openai_endpoint.bodies("/v1/chat/completions") == []


async def test_an_embedder_that_is_chosen_replaces_that_of_the_configuration(
    factory, opened, written, openai_endpoint, letters
):
    options = {"config": written(), "infer": False, "embedder": "minilm"}
    assert "embedder.fixed" in factory.capabilities(options)
    assert "embedder.fixed" not in factory.capabilities({"config": options["config"]})
    async with opened(factory, options=options) as target:
        await target.add([Item(text="tea")], ANN)
        about = await target.about()
    assert about["embedder"] == "letters"
    assert "vector_store.config.embedding_model_dims" in about["config"]
    assert about["config"].endswith("embedder")
    assert letters.calls
    assert openai_endpoint.requests == []


async def test_a_model_that_a_story_scripts_replaces_that_of_the_configuration(
    factory, opened, written, openai_endpoint
):
    rule = {"when": {"contains": "tea"}, "reply": json.dumps({"memory": [{"id": "0", "text": "likes tea"}]})}
    async with opened(factory, options={"config": written()}, model_rules=[rule]) as target:
        assert [item.text for item in (await target.add([Item(text="I like tea.")], ANN)).items] == ["likes tea"]
        assert (await target.about())["infer"] == "scripted"
    assert openai_endpoint.bodies("/v1/chat/completions") == []


async def test_an_embedder_that_does_not_answer_is_no_empty_memory(factory, opened, written, openai_endpoint):
    says(openai_endpoint, "Ann likes tea")
    async with opened(factory, options={"config": written()}) as target:
        openai_endpoint.failures = [(400, "no such embeddings")] * 20
        with pytest.raises(SetupError, match=r"the embedder openai:tiny of .*mine\.json gave no vectors: .*no such"):
            await target.perform(Request.of(Target.search, Query(text="tea"), ANN))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"vectorstore": {}}, r"mine\.json: Mem0 knows no 'vectorstore'\. Did you mean 'vector_store'\? Known: "),
        ({"vector_store": {"provider": "qdrantt"}}, r"mine\.json: Mem0 does not take it: .*qdrantt"),
        ({"vector_store": {"provider": "qdrant", "config": {"pth": "x"}}}, r"Mem0 does not take it: .*pth"),
        ({"llm": {"provider": "openai", "config": {"modle": "x"}}}, r"Mem0 does not take it: .*modle"),
        ({"embedder": {"provider": "openai", "config": {"model": "tiny"}}}, "OPENAI_API_KEY"),
    ],
)
async def test_a_configuration_that_mem0_does_not_take_is_one_line(factory, opened, written, parts, said):
    with pytest.raises(SetupError, match=said) as error:
        async with opened(factory, options={"config": written(**parts)}):
            pass
    assert "\n" not in str(error.value)
    assert "sk-mine" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm": "openai:x"}, "llm=openai:x: with config=… write it into that file"),
        ({"vector_store": "chroma"}, "vector_store=chroma: with config=… write it into that file"),
        ({"infer": "no"}, "infer=no; allowed: true, false"),
    ],
)
def test_options_that_speak_of_the_same_are_refused(factory, written, options, said):
    with pytest.raises(SetupError, match=said):
        factory.capabilities({"config": written(), **options})


async def test_at_a_server_each_case_has_its_own_collection_which_goes_with_its_folder(
    factory, opened, written, postgres_database, tmp_path
):
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("psycopg_pool")

    def tables():
        with psycopg.connect(postgres_database) as connection:
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {name for (name,) in found}

    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE TABLE mem0 (precious text)")
    store = {"connection_string": postgres_database, "collection_name": "mem0", "embedding_model_dims": 3}
    options = {"config": written(vector_store={"provider": "pgvector", "config": store}), "infer": False}
    async with opened(factory, options=options) as target:
        await target.add([Item(text="tea")], ANN)
        assert "collection_name, history_db_path" in (await target.about())["config"]
    assert len([name for name in tables() if name.startswith("memstory")]) >= 1
    async with opened(factory, options=options) as target:
        assert [hit.text for hit in await target.list(ANN)] == ["tea"]
    for file in (tmp_path / "workspace").iterdir():
        file.unlink()
    (tmp_path / "workspace").rmdir()
    await factory.stop()
    assert tables() == {"mem0"}
