import math
from datetime import UTC, datetime
from itertools import count

import pytest

from memstory.contract.target import Ref, Scope
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.errors import InputError
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.observations_store import observations_in_file
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.targets.environment_ports import WatchedEmbedder

ANN = Scope(user="ann")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
VECTORS = {
    "task": [1, 0],
    "Near and poor.": [0.9, math.sqrt(1 - 0.81)],
    "Less near and excellent.": [0.85, math.sqrt(1 - 0.7225)],
    "Far.": [0.1, math.sqrt(0.99)],
    "tune glm4:9b": [0, 1],
}


class Noon:
    def now(self):
        return NOON

    async def sleep_until(self, moment):
        raise AssertionError(moment)


def observation(identifier, narrative, score=None, **fields):
    return Observation(
        id=identifier,
        title=identifier,
        narrative=narrative,
        facts=fields.pop("facts", ()),
        task=fields.pop("task", f"task of {identifier}"),
        timestamp=NOON,
        final_score=score,
        **fields,
    )


@pytest.fixture
def embedder():
    return WatchedEmbedder(FixedVectors(VECTORS))


@pytest.fixture
def make_memory(tmp_path, embedder):
    def make(vectors=None, **config):
        numbers = count()
        return ObservationsMemory(
            rows=observations_in_file(tmp_path / "observations.sqlite3", model=embedder.model),
            vectors=vectors or ExactStore(model=embedder.model),
            embedder=embedder,
            chat=None,
            clock=Noon(),
            new_id=lambda: f"id-{next(numbers)}",
            config=ObservationsSettings(**config),
        )

    return make


@pytest.fixture
async def memory(make_memory):
    memory = make_memory()
    await memory.open()
    yield memory
    await memory.close()


async def ids(memory, task="task", owner="ann", **options):
    return [entry.observation.id for entry in await memory.find(task, owner, **options)]


async def test_a_better_run_outranks_a_nearer_one_even_alone(memory):
    await memory.store(
        [observation("near", "Near and poor.", 5.0), observation("good", "Less near and excellent.", 9.5)], "ann"
    )
    assert await ids(memory, top_k=1) == ["good"]


async def test_storing_a_run_again_changes_nothing(memory, embedder):
    first = await memory.store([observation("run", "Far.", 5.0)], "ann")
    again = await memory.store([observation("run", "Near and poor.", 9.0)], "ann")
    assert [one.outcome for one in (*first, *again)] == ["stored", "skipped"]
    kept = await memory.get(Ref(id="run"), ANN)
    assert kept is not None
    assert (kept.text, embedder.data()["calls"]) == ("Far.", 1)


async def test_one_batch_is_one_embedding_call_and_its_repeats_are_skipped(memory, embedder):
    stored = await memory.store(
        [observation("a", "Far."), observation("b", "Near and poor."), observation("a", "Far.")], "ann"
    )
    assert [one.outcome for one in stored] == ["stored", "stored", "skipped"]
    assert embedder.data()["calls"] == 1


async def test_a_specific_word_finds_what_is_far(memory):
    await memory.store([observation("run", "Near and poor.", facts=("It ran glm4:9b.",))], "ann")
    found = await memory.find("tune glm4:9b", "ann", min_sim=0.99)
    assert [(entry.observation.id, entry.by_keyword) for entry in found] == [("run", True)]
    assert found[0].rank.sim == pytest.approx(math.sqrt(1 - 0.81), abs=1e-6)


async def test_what_a_dead_process_left_in_the_outbox_is_caught_up(make_memory):
    class Dying(ExactStore):
        async def index(self, collection, owner):
            raise RuntimeError("killed")

    memory = make_memory(Dying(model="fixed-2"))
    with pytest.raises(RuntimeError, match="killed"):
        await memory.store([observation("run", "Near and poor.")], "ann")
    reopened = make_memory()
    await reopened.open()
    assert await ids(reopened) == ["run"]
    assert await reopened.inspect("status", {}, ANN) == {"observations": 1, "unreadable": 0, "vectors": 1, "pending": 0}


async def test_reindex_fills_an_empty_vector_index_and_drops_strays(make_memory):
    store = ExactStore(model="fixed-2")
    memory = make_memory(store)
    await memory.open()
    await memory.store([observation("run", "Near and poor."), observation("old", "Far.")], "ann")
    index = await store.index("observations", "ann")
    await index.delete(["run"])
    memory.rows.delete("ann", ["old"])
    assert await memory.run("reindex", {}, ANN) == {"reindexed": 1}
    assert await ids(memory) == ["run"]
    assert await index.count() == 1


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 10.1, True, "9"])
async def test_a_score_that_would_break_the_order_is_refused(memory, score):
    with pytest.raises(InputError, match="final_score"):
        await memory.store([observation("run", "Far.", score)], "ann")


@pytest.mark.parametrize("rating", [float("nan"), 2.1, -2.1, True])
async def test_a_rating_out_of_range_is_refused(memory, rating):
    await memory.store([observation("run", "Far.")], "ann")
    with pytest.raises(InputError, match="numbers from -2 to 2"):
        await memory.feedback(Ref(id="run"), rating, ANN)


async def test_a_task_of_nothing_finds_nothing_and_embeds_nothing(memory, embedder):
    await memory.store([observation("run", "Far.")], "ann")
    assert (await ids(memory, " "), await ids(memory, top_k=0), await memory.get_context("", "ann")) == ([], [], "")
    assert embedder.data()["calls"] == 1
