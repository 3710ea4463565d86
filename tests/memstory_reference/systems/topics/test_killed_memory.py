"""SIGKILL of the memory while turns reach it over NATS: each that was acknowledged is written once.

`killing.py` forks and kills what `write` does, then calls `verify`. The server outlives them.
"""

import faulthandler
import sys
from collections import Counter
from itertools import count

import pytest

from memstory.contract.target import Scope
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.machine import SystemClock, random_id
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import from_bytes, open_nats_bus, to_bytes
from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.bus.subjects import RESPONSE_GENERATION, STREAM, WRITER
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings

SETTINGS = TopicsSettings.default().merge({"min_score": 0.3}, "test")
OWNERS = ("ann", "bob", "cid")
PATIENCE_SECONDS = 10
"""For a kill and the look after it; 500 took 43 minutes on two processors that had ten times as much to do."""
AGAIN = 3
"""Of so many turns one is sent once more, past the server's own look for ids."""


class OnePlace(FixedVectors):
    async def embed(self, texts, purpose):
        return await super().embed(["one"] * len(texts), purpose)


def response(owner, step):
    payload = {"query": f"Turn {step}", "answer": "Yes.", "tool_calls": [], "session_id": "s", "query_id": f"q{step}"}
    return Envelope(subject=RESPONSE_GENERATION, payload=payload, publisher="agent", owner=owner, request_id=f"q{step}")


async def opened(folder):
    bus = await open_nats_bus((folder / "address").read_text(), WRITER)
    store = open_exact_folder(folder / "store", model="fixed-2", dimension=2)
    embedder = OnePlace({"one": [1, 0]})
    service = MemoryService(settings=SETTINGS, vectors=store, embedder=embedder, clock=SystemClock(), new_id=random_id)
    return bus, store, service


async def write(folder, done, acknowledge):
    """Hear turns and send them, until killed; a turn is acknowledged once the server has it."""
    bus, _, service = await opened(folder)
    await MemoryAgent(service, bus).start()
    for step in count(min(done.values())):
        for owner in OWNERS:
            await bus.publish(response(owner, step))
            acknowledge(owner, step)
            if step % AGAIN == 0:
                await bus.connection.client.publish(RESPONSE_GENERATION, to_bytes(response(owner, step)))


async def caught(bus, service):
    """Return what became of the turn that the killed memory had in its hands."""
    jetstream = bus.connection.client.jetstream()
    consumers = await jetstream.consumers_info(STREAM)
    if not any(one.num_ack_pending for one in consumers):
        return "nothing in its hands"
    stream = (await jetstream.stream_info(STREAM)).state
    held = await jetstream.get_msg(STREAM, seq=stream.first_seq)
    turn = from_bytes(RESPONSE_GENERATION, held.data)
    told = await service.list(Scope(user=turn.owner), ["episodic"])
    is_written = any(one.metadata["query_id"] == turn.request_id for one in told)
    return "written, not acknowledged" if is_written else "received, not written"


async def verify(folder, done):
    """Find each acknowledged turn once; the one that was being sent may be there too."""
    bus, store, service = await opened(folder)
    with (folder / "caught").open("a") as file:
        file.write(f"{await caught(bus, service)}\n")
    agent = MemoryAgent(service, bus)
    await agent.start()
    await bus.settle()
    for owner, acknowledged in done.items():
        found = sorted(int(one.metadata["query_id"][1:]) for one in await service.list(Scope(user=owner), ["episodic"]))
        assert found == list(range(len(found))), (owner, "lost or twice", found)
        assert len(found) - acknowledged in (0, 1), (owner, acknowledged, len(found))
    await agent.stop()
    await bus.close()
    await store.close()


@pytest.mark.doses("kills", 2, 500)
def test_each_acknowledged_turn_is_written_once_however_often_the_memory_is_killed(kill_writers, tmp_path, kills):
    # Instead of the time that any other test may take: the more turns there are, the longer each look takes.
    faulthandler.dump_traceback_later(900 + PATIENCE_SECONDS * kills, exit=True, file=sys.__stderr__)
    folder = tmp_path / "memory"
    folder.mkdir()
    with EmbeddedNats(tmp_path / "nats") as server:
        (folder / "address").write_text(server.url)
        done = kill_writers(__file__, folder, kills)
    ends = Counter((folder / "caught").read_text().splitlines())
    print(f"{kills} kills: {dict(ends)}; {sum(done.values())} turns acknowledged, each written once")  # noqa: T201
    assert ends.total() == kills
    assert kills < 50 or ends["received, not written"] > kills // 10, ends
