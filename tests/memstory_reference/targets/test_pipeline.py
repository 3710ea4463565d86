import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, SetupError, StoryError, TargetError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory_reference.targets.pipeline import PipelineFactory

ANN, BOB = Scope(user="ann"), Scope(user="bob")
VECTORS = {"Ilse lives in Graz": [1, 0], "where?": [1, 0], "Right now we rest": [0, 1]}


@pytest.fixture
async def open_target(tmp_path):
    opened = []

    async def make(workspace="workspace", **env):
        target = PipelineFactory().target()
        (tmp_path / workspace).mkdir(exist_ok=True)
        given = {"vectors": VECTORS, **env}
        await target.open(Environment(workspace=str(tmp_path / workspace), owner="ann", **given), StoryClock())
        opened.append(target)
        return target

    yield make
    for target in opened:
        await target.close()


@pytest.fixture
async def target(open_target):
    return await open_target()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 3}, "unknown option 'top_k'.* Known: auto_compress"),
        ({"store_threshold": 2}, "store_threshold"),
        ({"reranker": "best"}, "reranker is 'best'; allowed: cross-encoder"),
        ({"chat": "gpt"}, "chat model named 'gpt'"),
    ],
)
async def test_a_wrong_option_is_the_story_s_fault(open_target, options, message):
    with pytest.raises(StoryError, match=message):
        await open_target(options=options)


async def test_another_embedder_than_the_store_s_is_refused(open_target):
    first = await open_target()
    await first.add([Item(text="Ilse lives in Graz")], ANN)
    await first.close()
    with pytest.raises((TargetError, SetupError), match="fixed-2"):
        await open_target(vectors={"where?": [1, 0, 0]})
    again = await open_target()
    assert [hit.text for hit in await again.search(Query(text="where?"), ANN)] == ["Ilse lives in Graz"]


async def test_what_it_cannot_do_is_said(target):
    for wanted in (Query(text="where?", min_score=0.5), Query(text="where?", where={"a": 1})):
        with pytest.raises(NotSupported):
            await target.search(wanted, ANN)
    with pytest.raises(NotSupported):
        await target.run("cleanup", {}, ANN)
    with pytest.raises(NotSupported):
        await target.inspect("bus", {}, ANN)
    with pytest.raises(NotSupported):
        await target.fault("disk", "down")


async def test_a_wrong_argument_is_the_story_s_fault(target):
    for call in (
        target.search(Query(text="where?", options={"rerun": 1}), ANN),
        target.run("compress", {"all": True}, ANN),
        target.inspect("formula", {"magic": [1]}, ANN),
        target.inspect("formula", {}, ANN),
    ):
        with pytest.raises(StoryError, match=r"known|one of"):
            await call


async def test_a_key_or_foreign_metadata_is_refused(target):
    for item in (Item(text="x", key="k"), Item(text="x", metadata={"importance": 1}), Item(text="x", kind="fact")):
        with pytest.raises(Refused, match=r"key|importance|fact"):
            await target.add([item], ANN)


async def test_an_unknown_memory_cannot_be_updated(target):
    with pytest.raises(Refused, match="no memory 'none'"):
        await target.update(Ref(id="none"), Item(text="x"), ANN)


async def test_a_session_can_be_listed_and_forgotten_alone(target):
    here, there = Scope(user="ann", session="here"), Scope(user="ann", session="there")
    await target.add([Item(text="Ilse lives in Graz")], here)
    await target.add([Item(text="Right now we rest")], there)
    assert [hit.text for hit in await target.list(here)] == ["Ilse lives in Graz"]
    assert await target.delete(Ref(), there)
    assert [hit.text for hit in await target.list(ANN)] == ["Ilse lives in Graz"]
    assert not await target.delete(Ref(), there)
    assert await target.delete(Ref(), ANN)
    assert not await target.delete(Ref(), ANN)


async def test_a_part_that_the_story_took_down_is_an_answer_and_heals(target):
    await target.fault("store", "down")
    (item,) = (await target.add([Item(text="Ilse lives in Graz")], ANN)).items
    await target.settle()
    assert item.outcome == "stored"  # SQLite has it; the index takes it in later
    with pytest.raises(Refused, match="Memory unavailable"):
        await target.search(Query(text="where?"), ANN)
    await target.fault("store", "ok")
    assert [hit.text for hit in await target.search(Query(text="where?"), ANN)] == ["Ilse lives in Graz"]


async def test_it_says_what_answered(target):
    about = await target.about()
    assert about["embedder"] == "fixed-2"
    assert "stand-in" in about["chat"]
