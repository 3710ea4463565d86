"""Faults of libraries, with nothing of memstory between: what docs/how-to/backends.md says of the pinned versions.

A test that fails here means that a library has changed: then the page is to be changed too.
"""

import aiosqlite
import bm25s
import psycopg
import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from memstory.targets.vendors.sqlite import loading_driver


async def test_langgraph_in_memory_stores_nothing_of_a_list_with_two_equal_texts():
    store = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "fields": ["text"]})
    with pytest.raises(ValueError, match="Number of embeddings"):
        await store.abatch([PutOp(("ann",), key, {"text": "the same"}) for key in ("one", "two")])
    assert await store.asearch(("ann",)) == []


async def test_langgraph_sqlite_embeds_the_whole_value_whatever_fields_says():
    embedded = []

    async def embed(texts):
        embedded.extend(texts)
        return [[1.0] for _ in texts]

    connection = await aiosqlite.Connection(lambda: loading_driver().connect(":memory:", isolation_level=None), 64)
    store = AsyncSqliteStore(connection, index={"dims": 1, "embed": embed, "fields": ["text"]})
    await store.setup()
    await store.aput(("ann",), "one", {"text": "this alone", "other": "and not this"})
    await connection.close()
    assert embedded == ['{"other": "and not this", "text": "this alone"}']


@pytest.fixture
def postgres_store(postgres_database):
    vectors = {"near": [1.0, 0.0], "far": [0.0, 1.0]}
    index = {"dims": 2, "embed": lambda texts: [vectors[text] for text in texts], "fields": ["texts[*]"]}
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    with PostgresStore.from_conn_string(postgres_database, index=index) as store:
        store.setup()
        yield store


def test_langgraph_postgres_finds_an_item_by_a_text_that_it_no_longer_has(postgres_store):
    for texts in (["far", "near"], ["far"]):
        postgres_store.put(("ann",), "one", {"texts": texts})
    (found,) = postgres_store.search(("ann",), query="near")
    assert (found.value, found.score) == ({"texts": ["far"]}, 1.0)


def test_langgraph_postgres_leaves_pages_empty(postgres_store):
    for number in range(9):
        postgres_store.put(("ann",), str(number), {"texts": ["near"]})
    pages = [len(postgres_store.search(("ann",), query="near", limit=1, offset=place)) for place in range(9)]
    assert pages == [1, 1, 1, 1, 1, 0, 0, 0, 0]


# The mean length of no words is not a number; the error comes after.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("corpus", [["the and of"], ["to be", "or not"], [""]])
def test_bm25s_cannot_index_a_corpus_without_a_word(corpus):
    with pytest.raises(ValueError, match="max\\(\\)"):
        bm25s.BM25().index(bm25s.tokenize(corpus, show_progress=False), show_progress=False)
