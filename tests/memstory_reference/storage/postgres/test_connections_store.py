"""A few connections serve any number of calls at once, and are kept for the next ones."""

import asyncio

from memstory_reference.storage.postgres.connections_store import Connections
from memstory_reference.storage.postgres.place import PostgresPlace


async def backend(connections):
    async with connections.one() as connection:
        found = await (await connection.execute("SELECT pg_backend_pid() FROM pg_sleep(0.01)")).fetchone()
        return found[0]


async def test_twenty_calls_at_once_share_three_connections_which_are_kept(postgres_database):
    connections = Connections(PostgresPlace(url=postgres_database), size=3)
    first = set(await asyncio.gather(*(backend(connections) for _ in range(20))))
    later = {await backend(connections) for _ in range(5)}
    await connections.close()
    assert len(first) <= 3
    assert later <= first
