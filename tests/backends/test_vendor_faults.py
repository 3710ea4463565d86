"""Faults of heavy libraries, nothing of memstory between: what docs/how-to/backends.md says of the pinned versions.

A test that fails here means that a library has changed: then the page is to be changed too.
"""

from importlib import import_module

import pytest


def letters(text):
    return [text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]


class TestLlamaindex:
    vendor = "llama_index"

    async def test_a_memory_block_gives_the_second_session_what_the_first_one_said(self, tmp_path):
        chromadb = import_module("chromadb")
        message = import_module("llama_index.core.llms").ChatMessage

        class Embedding(import_module("llama_index.core.embeddings").BaseEmbedding):
            def _get_query_embedding(self, query):
                return letters(query)

            def _get_text_embedding(self, text):
                return letters(text)

            async def _aget_query_embedding(self, query):
                return letters(query)

        client = chromadb.PersistentClient(str(tmp_path))
        collection = client.create_collection("messages", embedding_function=None)
        store = import_module("llama_index.vector_stores.chroma").ChromaVectorStore(chroma_collection=collection)
        memory = import_module("llama_index.core.memory")
        block = memory.VectorMemoryBlock(vector_store=store, embed_model=Embedding())
        await block.aput([message(role="user", content="The code is 4815.")], session_id="ann")
        await block.aput([message(role="user", content="Tea is best.")], session_id="bob")
        asked = [message(role="user", content="What is the code?")]
        assert "4815" in await block.aget(asked, session_id="ann")
        assert "4815" in await block.aget(asked, session_id="bob")
        client.close()


class TestTxtai:
    vendor = "txtai"

    @pytest.fixture
    def index(self):
        numpy = import_module("numpy")

        def transform(texts):
            return numpy.array([[0.8, 0.6] if "mine" in text else [1.0, 0.0] for text in texts], dtype="float32")

        made = import_module("txtai.embeddings").Embeddings(
            {"method": "external", "transform": transform, "content": True}
        )
        yield made
        made.close()

    def test_the_only_memory_of_a_user_is_not_found_behind_the_nearer_ones_of_others(self, index):
        index.upsert([(f"bob-{number}", {"text": f"near {number}", "owner": "bob"}) for number in range(200)])
        index.upsert([("ann-1", {"text": "mine", "owner": "ann"})])
        asked = "SELECT id FROM txtai WHERE similar('asked') AND owner = 'ann'"
        assert index.search(asked, 5) == []
        assert index.search("SELECT id FROM txtai WHERE owner = 'ann'", 5) == [{"id": "ann-1"}]

    def test_true_is_found_as_1(self, index):
        index.upsert([("truth", {"text": "x", "flag": True}), ("number", {"text": "y", "flag": 1})])
        found = index.search("SELECT id FROM txtai WHERE flag = :flag", 5, parameters={"flag": 1})
        assert {row["id"] for row in found} == {"truth", "number"}

    def test_no_result_at_all_cannot_be_asked_for(self, index):
        index.upsert([(str(number), {"text": f"text {number}"}) for number in range(5)])
        assert len(index.search("SELECT id FROM txtai WHERE similar('x')", 0)) == 3


class TestMem0:
    vendor = "mem0"

    def test_a_memory_is_read_changed_and_deleted_by_whoever_has_its_id(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MEM0_TELEMETRY", "False")
        monkeypatch.setenv("MEM0_DIR", str(tmp_path))
        unused = {"provider": "openai", "config": {"api_key": "not used"}}
        config = {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 26}
        memory = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": config},
                "llm": unused,
                "embedder": unused,
                "history_db_path": str(tmp_path / "history.sqlite3"),
            }
        )
        monkeypatch.setattr(memory.embedding_model, "embed", lambda text, *_: letters(text))
        for number in range(30):
            memory.add(f"text {number}", user_id="ann", infer=False)
        found = memory.get_all(filters={"user_id": "ann"})["results"]
        memory.update(found[0]["id"], "changed")
        assert memory.get(found[0]["id"])["memory"] == "changed"
        memory.delete(found[0]["id"])
        assert memory.get(found[0]["id"]) is None
        # And of thirty it lists twenty by default.
        assert len(found) == 20
        memory.close()
        memory.vector_store.client.close()
