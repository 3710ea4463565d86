"""Words and vectors in one ranking, without any package."""

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.target import Environment, Item, Query, Scope
from memstory.contract.values import MADE_BY
from memstory.targets.vendors.sqlite import HybridFactory, z_scores

ANN = Scope(user="ann")


@pytest.fixture
async def opened(tmp_path):
    """Return a function: texts to a memory that has them."""
    factory, memories = HybridFactory(), []

    async def open_with(*texts, **more):
        memory = factory.target()
        memories.append(memory)
        await memory.open(Environment(workspace=str(tmp_path), owner="ann", **more), StoryClock())
        await memory.add([Item(text=text) for text in texts], ANN)
        return memory

    yield open_with
    for memory in memories:
        await memory.close()
    await factory.stop()


async def first_of(memory, question):
    return (await memory.search(Query(text=question), ANN))[0].text


async def test_a_text_is_found_by_other_words_with_the_same_meaning(opened):
    memory = await opened("The ship departs at nine.", "The tax form is in the drawer.", "Bread bakes for an hour.")
    assert await first_of(memory, "when do boats go") == "The ship departs at nine."


async def test_a_rare_word_counts_where_vectors_tell_nothing(opened):
    memory = await opened(
        "The code of door qx71 is 4711.", "The code of door qx72 is 9911.", "The code of the gate is 1."
    )
    assert await first_of(memory, "code qx72") == "The code of door qx72 is 9911."


async def test_all_memories_of_the_user_are_ranked_and_scores_fall(opened):
    memory = await opened("tea", "coffee", "a tax form", "the blue bicycle")
    hits = await memory.search(Query(text="green tea", top_k=4), ANN)
    assert [hits[0].text, len(hits)] == ["tea", 4]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert await memory.search(Query(text="green tea"), Scope(user="ben")) == []


async def test_it_says_what_it_embeds_with_and_whose_it_is(opened):
    about = await (await opened()).about()
    assert (about["embedder"], about[MADE_BY]) == ("static MiniLM-256", "memstory")
    assert (await (await opened(options={"embedder": "words"})).about())["embedder"] == "words-512"


def test_values_that_are_all_equal_rank_nothing():
    assert z_scores([0.5, 0.5, 0.5]) == [0.0, 0.0, 0.0]
