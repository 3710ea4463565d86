"""LangGraph's store in one SQLite file in the workspace; its vectors are the extension sqlite-vec."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from memstory.contract.target import Capability, Environment, Target
from memstory.targets.frameworks.langgraph import CAPABILITIES as IN_MEMORY
from memstory.targets.frameworks.langgraph import TIME_TO_LIVE, LanggraphFactory, LanggraphTarget
from memstory.targets.sqlite_store import loading_driver, name_of

if TYPE_CHECKING:
    import aiosqlite
    from langgraph.store.base import BaseStore, IndexConfig, TTLConfig
    from langgraph.store.sqlite.aio import AsyncSqliteStore

# The store does not embed the text alone (see docs/how-to/backends.md), so that vectors of texts do not fit it.
CAPABILITIES: frozenset[Capability] = (IN_MEMORY - {"embedder.fixed"}) | {
    *("add.ttl", "restart", "restart.embedder", "crash", "other_process", "persistent")
}
# What `aiosqlite.connect` sets: how many rows it fetches at once.
_ROWS_AT_ONCE = 64


class SqliteTarget(LanggraphTarget):
    """The asynchronous store, on a connection that can load extensions."""

    _driver: Any
    _connection: aiosqlite.Connection
    _sweeping: AsyncSqliteStore

    async def open_store(self, index: IndexConfig, env: Environment) -> BaseStore:
        import aiosqlite  # noqa: PLC0415  (a vendor: only where it was chosen)
        from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415  (the same)

        self._driver = loading_driver()
        path = Path(env.workspace) / "langgraph.sqlite3"
        # As the store's own `from_conn_string` opens it, except for the driver.
        connect = partial(self._driver.connect, path, isolation_level=None)
        self._connection = await aiosqlite.Connection(connect, _ROWS_AT_ONCE)
        store = AsyncSqliteStore(self._connection, index=index, ttl=cast("TTLConfig", TIME_TO_LIVE))
        await store.setup()
        self._sweeping = store
        return store

    async def settle(self) -> None:
        # What its sweeper does by itself every few minutes: until then the store gives what is over.
        await self._sweeping.sweep_ttl()

    async def close(self) -> None:
        await self._connection.close()

    async def about(self) -> Mapping[str, str]:
        store = f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')} AsyncSqliteStore"
        return {"embedder": self._embedder.model, "store": store, "driver": name_of(self._driver)}


class LanggraphSqliteFactory(LanggraphFactory):
    """LangGraph's SQLite store, with the embedder that the reference uses too."""

    name: ClassVar[str] = "langgraph-sqlite"
    spec: ClassVar[str | None] = "memstory.targets.frameworks.langgraph_sqlite:LanggraphSqliteFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return SqliteTarget(self._embedders)
