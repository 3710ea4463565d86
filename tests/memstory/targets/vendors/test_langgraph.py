"""LangGraph's stores on SQLite and Postgres: what they have beside the one in memory."""

import asyncio
import shutil
from typing import ClassVar

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import Refused, SetupError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.vendors import postgres
from memstory.targets.vendors.langgraph import LanggraphPostgresFactory, LanggraphSqliteFactory
from memstory.targets.vendors.postgres import GROUP, VARIABLE

ANN = Scope(user="ann.dot/slash", session="one")
EVERYWHERE = Scope(user=ANN.user)


def texts(hits):
    return [hit.text for hit in hits]


@pytest.fixture(params=[LanggraphSqliteFactory, LanggraphPostgresFactory])
def factory_and_options(request, embedders):
    if request.param is LanggraphSqliteFactory:
        return request.param(embedders), {}
    return request.param(embedders), {"postgres": request.getfixturevalue("postgres_database")}


async def test_conditions_of_kind_session_and_metadata_hold_together(factory_and_options, opened, conditions_hold):
    factory, options = factory_and_options
    async with opened(factory, options=options) as target:
        await conditions_hold(target)


async def test_equal_texts_in_one_list_are_all_kept(factory_and_options, opened):
    factory, options = factory_and_options
    async with opened(factory, options=options) as target:
        await target.add([Item(text="same"), Item(text="same")], ANN)
        assert texts(await target.list(EVERYWHERE)) == ["same", "same"]


async def test_what_has_expired_is_there_until_it_is_swept_as_the_vendor_has_it(factory_and_options, opened):
    factory, options = factory_and_options
    async with opened(factory, options=options) as target:
        await target.add([Item(text="milk", ttl=0.05)], ANN)
        await asyncio.sleep(0.1)
        await target.settle()
        assert texts(await target.list(EVERYWHERE)) == ["milk"]


async def test_what_has_expired_is_gone_from_postgres_with_the_stores_own_option(opened, embedders, postgres_database):
    options = {"postgres": postgres_database, "omit_expired": True}
    async with opened(LanggraphPostgresFactory(embedders), options=options) as target:
        await target.add([Item(text="milk", ttl=0.05), Item(text="bread")], ANN)
        await asyncio.sleep(0.1)
        assert texts(await target.list(EVERYWHERE)) == ["bread"]


async def test_postgres_takes_the_vectors_of_a_story(opened, embedders, postgres_database):
    vectors = {"near": [0.6, 0.8], "far": [-1.0, 0.0], "asked": [1.0, 0.0]}
    async with opened(
        LanggraphPostgresFactory(embedders), vectors=vectors, options={"postgres": postgres_database}
    ) as target:
        await target.add([Item(text="far"), Item(text="near")], ANN)
        hits = await target.search(Query(text="asked", top_k=2), EVERYWHERE)
        assert [(hit.text, round(hit.score, 4)) for hit in hits] == [("near", 0.6), ("far", -1.0)]
        assert (await target.about())["server"].startswith("Postgres ")


async def test_postgres_declines_a_text_that_it_cannot_hold_and_keeps_what_it_had(opened, embedders, postgres_database):
    async with opened(LanggraphPostgresFactory(embedders), options={"postgres": postgres_database}) as target:
        receipt = await target.add([Item(text="whole")], ANN)
        with pytest.raises(Refused, match="unsupported Unicode"):
            await target.add([Item(text="cut\0here")], ANN)
        with pytest.raises(Refused, match="unsupported Unicode"):
            await target.update(Ref(id=receipt.items[0].id), Item(text="cut\0here"), ANN)
        assert texts(await target.list(EVERYWHERE)) == ["whole"]


async def test_what_a_workspace_left_on_a_server_is_dropped_once_the_workspace_is_gone(
    opened, embedders, postgres_database, tmp_path
):
    for name, texts_there in (("kept", 1), ("gone", 0)):
        workspace = tmp_path / name
        workspace.mkdir()
        env = Environment(workspace=str(workspace), owner="ann", options={"postgres": postgres_database})
        factory = LanggraphPostgresFactory(embedders)
        await factory.start(tmp_path)
        target = factory.target()
        await target.open(env, StoryClock())
        await target.add([Item(text="a b")], ANN)
        await target.close()
        if name == "gone":
            shutil.rmtree(workspace)
        await factory.stop()
        workspace.mkdir(exist_ok=True)
        async with opened(factory, options=env.options, workspace=str(workspace)) as target:
            assert len(await target.list(EVERYWHERE)) == texts_there


class Offered:
    """A server that a package offers, told by a folder where its data are."""

    url = ""
    log: ClassVar[list[str]] = []

    def __init__(self, folder):
        self.folder = folder

    def start(self):
        self.log.append(f"start in {self.folder.name}")
        return self.url

    def halt(self):
        self.log.append("halt")


class Entry:
    def load(self):
        return Offered


async def test_a_server_that_a_package_offers_is_started_for_the_first_case_and_halted(
    opened, embedders, postgres_database, monkeypatch, tmp_path
):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "entry_points", lambda group: [Entry()] if group == GROUP else [])
    monkeypatch.setattr(Offered, "url", postgres_database)
    Offered.log.clear()
    async with opened(LanggraphPostgresFactory(embedders)) as target:
        await target.add([Item(text="a b")], ANN)
        assert texts(await target.list(EVERYWHERE)) == ["a b"]
    assert Offered.log == [f"start in {tmp_path.name}", "halt"]


async def opening(embedders, folder, options):
    factory = LanggraphPostgresFactory(embedders)
    await factory.start(folder)
    target = factory.target()
    await target.open(Environment(workspace=str(folder), owner="ann", options=options), StoryClock())


async def test_without_a_server_it_says_what_to_set(embedders, tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "entry_points", lambda group: [])  # noqa: ARG005  (it is called so)
    with pytest.raises(SetupError, match=f"set {VARIABLE}=postgresql://"):
        await opening(embedders, tmp_path, {})


@pytest.mark.parametrize("url", ["postgresql://nobody:hunter2@127.0.0.1:9/none", "no address"])
async def test_a_server_that_cannot_be_used_is_a_setup_error_without_the_password(url, embedders, tmp_path):
    with pytest.raises(SetupError, match="must answer, have pgvector") as caught:
        await opening(embedders, tmp_path, {"postgres": url})
    assert "hunter2" not in str(caught.value)
