from __future__ import annotations

import pytest

from memstory_reference.adapters.embedding.embedder_log import LoggedEmbedder
from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.errors import UnknownTextError
from memstory_reference.ports import Purpose


def nomic_like() -> FixedVectors:
    table = {text: [1.0, 0.0] for text in ("Elixir", "databases", "c")}
    return FixedVectors(table, profile=profile_of("nomic-embed-text"))


async def test_log_shows_the_prefixes_that_were_sent():
    log = LoggedEmbedder(nomic_like())
    await log.embed(["Elixir"], Purpose.DOCUMENT)
    await log.embed(["databases"], Purpose.QUERY)
    assert log.data() == {
        "calls": 2,
        "texts": 2,
        "sent": ["search_document: Elixir", "search_query: databases"],
        "purposes": ["document", "query"],
    }


async def test_since_leaves_out_what_was_before():
    log = LoggedEmbedder(nomic_like())
    await log.embed(["Elixir", "databases"], Purpose.DOCUMENT)
    before = log.data()["calls"]
    await log.embed(["c"], Purpose.QUERY)
    assert log.data(since=before) == {"calls": 1, "texts": 1, "sent": ["search_query: c"], "purposes": ["query"]}
    assert log.data(since=2) == log.data(since=99) == {"calls": 0, "texts": 0, "sent": [], "purposes": []}


async def test_call_answered_from_the_cache_is_counted(tmp_path):
    cached = CachedEmbedder(nomic_like(), tmp_path / "cache")
    log = LoggedEmbedder(cached)
    for _ in range(2):
        await log.embed(["Elixir"], Purpose.DOCUMENT)
    await cached.close()
    assert log.data()["calls"] == 2


async def test_call_that_fails_is_counted():
    log = LoggedEmbedder(nomic_like())
    with pytest.raises(UnknownTextError):
        await log.embed(["unheard-of"], Purpose.QUERY)
    assert log.data()["sent"] == ["search_query: unheard-of"]


async def test_bounded_log_forgets_texts_but_counts_on():
    log = LoggedEmbedder(nomic_like(), kept=2)
    for _ in range(5):
        await log.embed(["Elixir", "c"], Purpose.DOCUMENT)
    data = log.data()
    assert (data["calls"], data["texts"], data["sent"]) == (5, 10, ["search_document: Elixir", "search_document: c"])


def test_log_is_the_same_embedder_to_its_callers():
    log = LoggedEmbedder(nomic_like())
    assert (log.model, log.dimension) == ("fixed-2", 2)
