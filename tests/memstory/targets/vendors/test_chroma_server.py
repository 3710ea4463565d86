"""Chroma behind a server: its clients see each other's writes, and its workspaces nothing of each other."""

import shutil

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.vendors import chroma
from memstory.targets.vendors.chroma import ChromaServerFactory

ANN = Scope(user="ann", session="one")
EVERYWHERE = Scope(user="ann")


def texts(hits):
    return [hit.text for hit in hits]


async def test_what_one_client_writes_changes_and_deletes_the_others_see(opened, embedders):
    async with opened(ChromaServerFactory(embedders), options={"clients": 3}) as target:
        assert len({id(target.collection("ann")._client) for _ in range(6)}) == 3
        (kept,) = (await target.add([Item(text="tea with lemon")], ANN)).items
        for _ in range(3):
            assert texts(await target.search(Query(text="tea with lemon"), EVERYWHERE)) == ["tea with lemon"]
        await target.update(Ref(id=kept.id), Item(text="tea with milk"), ANN)
        for _ in range(3):
            assert texts(await target.list(EVERYWHERE)) == ["tea with milk"]
        assert await target.delete(Ref(id=kept.id), ANN)
        for _ in range(3):
            assert await target.list(EVERYWHERE) == []
        assert (await target.about())["store"].endswith("3 clients")


async def test_a_named_server_keeps_workspaces_apart_and_loses_those_that_are_gone(opened, embedders, tmp_path):
    async with opened(ChromaServerFactory(embedders)) as first:
        await first.add([Item(text="said in the first")], ANN)
        other = tmp_path / "other"
        other.mkdir()
        factory = ChromaServerFactory(embedders)
        await factory.start(other)
        target = factory.target()
        await target.open(Environment(workspace=str(other), owner="ann", options={"server": first._url}), StoryClock())
        assert await target.list(EVERYWHERE) == []
        await target.add([Item(text="said in the second")], ANN)
        await target.close()
        assert len(first._client.list_collections()) == 2
        shutil.rmtree(other)
        await factory.stop()
        assert len(first._client.list_collections()) == 1
        assert texts(await first.list(EVERYWHERE)) == ["said in the first"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"server": "http://127.0.0.1:1"}, "no Chroma server answers at http://127.0.0.1:1: start one there with"),
        ({"server": "chroma.example"}, "server=chroma.example: give the address of a Chroma server, such as http"),
        ({"server": "http://127.0.0.1:many"}, "give the address of a Chroma server"),
        ({"clients": 0}, "clients=0: give the number of clients, from 1 to 32"),
        ({"clients": "two"}, "clients=two: give the number of clients"),
    ],
)
async def test_what_cannot_be_a_server_is_one_sentence(opened, embedders, options, said, monkeypatch):
    monkeypatch.setattr(chroma.ChromaServers, "_start", _no_start)
    with pytest.raises(SetupError) as raised:
        async with opened(ChromaServerFactory(embedders), options=options):
            pass
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


async def _no_start(self):
    self._url = "http://127.0.0.1:1"


async def test_a_server_that_does_not_start_says_why(opened, embedders, monkeypatch):
    monkeypatch.setattr(chroma, "_RUN", ("/bin/sh", "-c", "echo the disk is full >&2; exit 3"))
    with pytest.raises(
        SetupError, match=r"(?s)Chroma's server does not start; its process has ended.*the disk is full"
    ):
        async with opened(ChromaServerFactory(embedders)):
            pass
