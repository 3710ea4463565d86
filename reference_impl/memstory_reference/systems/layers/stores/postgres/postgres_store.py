"""The layers in Postgres: the store that several processes and machines share."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from hashlib import blake2b
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from psycopg.pq import TransactionStatus

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import OtherModelError
from memstory_reference.storage.named_locks import NamedLocks
from memstory_reference.storage.postgres.connections_store import Connection, Connections, postgres_errors
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import open_schema
from memstory_reference.storage.vector_matrix import VectorMatrix, normalized_or_none
from memstory_reference.systems.layers.records.candidates import SessionMemoryBuffer
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing
from memstory_reference.systems.layers.stores.postgres import postgres_rows_store as rows
from memstory_reference.systems.layers.stores.postgres import sessions_store as sessions
from memstory_reference.systems.layers.stores.postgres import writing_store as writing
from memstory_reference.systems.layers.stores.postgres.held_vectors import HeldVectors
from memstory_reference.systems.layers.stores.store import ACTIVE, ScoredRow, nearest_of

P = ParamSpec("P")
T = TypeVar("T")

CALLS_AT_ONCE, LOCKS_AT_ONCE = 8, 8
SLOWEST_PACE = 200
"""Records a second, below which a batch counts as hanging."""

LOCK_SECONDS = 300.0
"""How much longer a lock is waited for than an answer: a model may be asked while it is held."""


class PostgresStore:
    """A `LayersStore` in its own schema, open.

    What a task does under a lock goes over the connection that holds the lock: if that is lost, so is the lock, and
    every later write of the task fails instead of meeting somebody else's.
    """

    def __init__(self, place: PostgresPlace, calling: Connections, locking: Connections, session_key: bytes) -> None:
        self._place = place
        self._calling = calling
        self._locking = locking
        self._session_key = session_key
        self._names = NamedLocks()
        self._held: dict[asyncio.Task[Any] | None, Connection] = {}
        self._vectors = HeldVectors()

    async def aput(self, record: MemoryRecord) -> None:
        await self.aput_batch([record])

    async def aput_batch(self, records: Sequence[MemoryRecord]) -> None:
        async with postgres_errors(len(records) / SLOWEST_PACE):
            self._vectors.follow(await self._do(writing.put_records, records))

    async def aget(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        return await self._call(rows.get_rows, owner, ids)

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        return await self._call(rows.list_rows, owner, [layer] if layer else list(Layer), standings, limit)

    async def asearch_similar(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        query = normalized_or_none(vector)
        if query is None:
            return []
        return nearest_of(await self._call(self._matrix, owner, layer), query, limit, since)

    async def asearch_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        return await self._call(rows.rows_by_tokens, owner, layer, tokens, limit=limit, since=since) if tokens else []

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        return next(iter(await self.alist(owner, layer, limit=1)), None)

    async def acounts(self, owner: str) -> Mapping[tuple[Layer, Standing], int]:
        return await self._call(rows.count_rows, owner)

    async def awithout_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        return await self._call(rows.rows_without_vector, owner, limit)

    async def adamaged_ids(self, owner: str) -> list[str]:
        del owner  # a server checks its own pages, where its data checksums are on
        return []

    async def alost(self) -> int:
        return 0  # as above

    async def adelete(self, owner: str, ids: Sequence[str]) -> list[str]:
        gone, steps = await self._call(writing.delete_records, owner, ids)
        self._vectors.follow(steps)
        return gone

    async def adelete_owner(self, owner: str) -> int:
        return await self._call(writing.delete_owner, owner)

    async def aset_recall(self, owner: str, *, on: bool) -> None:
        await self._call(rows.set_recall, owner, on=on)

    async def arecall(self, owner: str) -> bool:
        return await self._call(rows.is_recall_on, owner)

    async def asession_key(self) -> bytes:
        return self._session_key

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        task = asyncio.current_task()
        # First among the tasks of this process: those that wait need no connection.
        async with self._names.hold(name):
            if task in self._held:
                async with self._advisory(self._held[task], name):
                    yield
                return
            async with AsyncExitStack() as lent:
                async with postgres_errors(LOCK_SECONDS):
                    connection = await lent.enter_async_context(self._locking.one())
                async with self._advisory(connection, name):
                    self._held[task] = connection
                    try:
                        yield
                    finally:
                        del self._held[task]

    async def aclose(self) -> None:
        await self._calling.close()
        await self._locking.close()

    async def aload(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        return await self._call(sessions.load_session, owner, session, last)

    async def asave(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        await self._call(sessions.save_session, buffer, rewrite=rewrite)

    async def aactive(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        return await self._call(sessions.active_sessions, owner)

    async def aend(self, owner: str, session: str, records: Sequence[MemoryRecord]) -> bool:
        steps = await self._call(writing.end_session, owner, session, records)
        self._vectors.follow(steps or ())
        return steps is not None

    async def aforget_sessions(self, owner: str) -> int:
        return await self._call(sessions.forget_sessions, owner)

    async def _matrix(self, connection: Connection, owner: str, layer: Layer) -> VectorMatrix:
        version = await rows.version(connection, owner)
        if version is None:
            return VectorMatrix()
        held = self._vectors.get(owner, layer, version)
        if held is None:
            version, held = await rows.vectors(connection, version[0], layer)
            if version:
                self._vectors.keep(owner, layer, version, held)
        return held

    async def _call(
        self, work: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async with postgres_errors():
            return await self._do(work, *args, **kwargs)

    async def _do(
        self, work: Callable[Concatenate[Connection, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        held = self._held.get(asyncio.current_task())
        if held is None:
            async with self._calling.one() as connection:
                return await work(connection, *args, **kwargs)
        try:
            return await work(held, *args, **kwargs)
        except BaseException:
            if held.info.transaction_status is not TransactionStatus.IDLE:
                await held.close()
            raise

    @asynccontextmanager
    async def _advisory(self, connection: Connection, name: str) -> AsyncIterator[None]:
        digest = blake2b(f"{self._place.schema}\0{name}".encode(), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        async with postgres_errors(LOCK_SECONDS):
            await connection.execute("SELECT pg_advisory_lock(%s)", (key,))
        try:
            yield
        finally:
            try:
                async with postgres_errors():
                    await connection.execute("SELECT pg_advisory_unlock(%s)", (key,))
            except UnavailableError:
                # The lock went with its connection; what was written under it before stands.
                await connection.close()


async def open_postgres(place: PostgresPlace, *, model: str) -> PostgresStore:
    """Open the store in `place`, whose schema is made or brought up to date.

    Raises:
        SetupError: the server refuses the URL's user or database, or has no pgvector.
        OtherModelError, StoreConflictError: its vectors are of another model, or a newer program made it.
        UnavailableError: nobody answers.
    """
    calling, locking = Connections(place, size=CALLS_AT_ONCE), Connections(place, size=LOCKS_AT_ONCE)
    fresh = {"model": model, "memory": "layers", "session_key": secrets.token_hex(32)}
    about = await open_schema(calling, place, rows.MIGRATIONS, fresh, with_vectors=[calling, locking])
    if about["model"] != model:
        await calling.close()
        found = about["model"]
        raise OtherModelError(
            f"the schema {place.schema!r} was made with the model {found!r}, not {model!r}: open it with {found!r}, "
            "or use another schema",
            found,
        )
    return PostgresStore(place, calling, locking, bytes.fromhex(about["session_key"]))
