"""LangGraph's store in Postgres with pgvector: a schema a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from memstory.contract.target import Capability, Environment, Item, Receipt, Ref, Scope, Target
from memstory.targets.embedders import Embedders
from memstory.targets.frameworks.langgraph import TIME_TO_LIVE, LanggraphFactory, LanggraphTarget
from memstory.targets.frameworks.langgraph_sqlite import CAPABILITIES as OF_DATABASES
from memstory.targets.vector_stores.postgres_store import (
    OPTION,
    PostgresServers,
    address_within,
    declining,
    prepare,
    schema_of,
)

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, IndexConfig, TTLConfig
    from langgraph.store.postgres.base import PostgresIndexConfig

# A second process would start a second server.
CAPABILITIES: frozenset[Capability] = (OF_DATABASES - {"other_process"}) | {"embedder.fixed", f"option.{OPTION}"}


class PostgresTarget(LanggraphTarget):
    """The asynchronous store on one connection, as its own `from_conn_string` makes it."""

    _server: str

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders)
        self._servers = servers
        self._stack = AsyncExitStack()

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        from langgraph.store.postgres.aio import AsyncPostgresStore  # noqa: PLC0415  (a vendor: only where chosen)

        url = await self._servers.url(env)
        self._server = await prepare(url, env.workspace)
        address = address_within(url, schema_of(env.workspace))
        made = AsyncPostgresStore.from_conn_string(
            address, index=cast("PostgresIndexConfig", index), ttl=cast("TTLConfig", TIME_TO_LIVE)
        )
        store = await self._stack.enter_async_context(made)
        await store.setup()
        return store

    async def close(self) -> None:
        await self._stack.aclose()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with declining():
            return await super().add(items, scope)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with declining():
            return await super().update(ref, item, scope)

    async def about(self) -> Mapping[str, str]:
        store = f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')} AsyncPostgresStore"
        return {"embedder": self._embedder.model, "store": store, "server": self._server}


class LanggraphPostgresFactory(LanggraphFactory):
    """LangGraph's Postgres store, with the embedder that the reference uses too; MEMSTORY_POSTGRES names the server."""

    name: ClassVar[str] = "langgraph-postgres"
    spec: ClassVar[str | None] = "memstory.targets.frameworks.langgraph_postgres:LanggraphPostgresFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    _servers: PostgresServers

    async def start(self, folder: Path) -> None:
        self._servers = PostgresServers(folder)

    def target(self) -> Target:
        return PostgresTarget(self._embedders, self._servers)

    async def stop(self) -> None:
        await self._servers.stop()
        await super().stop()
