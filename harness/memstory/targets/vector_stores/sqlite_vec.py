"""SQLite with the extension sqlite-vec: a table of memories and beside it one of vectors, a partition a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    Scope,
    Target,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TimedEmbedder
from memstory.targets.embedding_factory import EmbeddingFactory, vector_length
from memstory.targets.sqlite_store import having, loading_driver, name_of, of_kinds, within
from memstory.targets.table_target import TableTarget, written
from memstory.targets.vector_stores.sqlite_vec_store import SqliteVecStore

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add.metadata", "add.metadata.lists"),
        *("add", "add.key", "add.verbatim", "add.exact", "add.batch_atomic", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "other_process", "clock", "persistent"),
        *("scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder"),
    }
)


class SqliteVecTarget(TableTarget):
    """One SQLite file in the workspace."""

    _store: SqliteVecStore
    _clock: Clock
    _embedder: TimedEmbedder
    _driver: Any

    def __init__(self, embedders: Embedders) -> None:
        super().__init__("sqlite-vec")
        self._embedders = embedders

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock, self._embedder, self._driver = clock, self._embedders.of(env), loading_driver()
        self.embedding = self._embedder.watch
        length = await vector_length(self._embedder, env)
        path, vendor = Path(env.workspace) / "memories.sqlite3", import_module("sqlite_vec")
        self._store = await self._thread.run(SqliteVecStore, path, self._driver, vendor, length)

    async def about(self) -> Mapping[str, str]:
        store, driver = f"sqlite-vec {version('sqlite-vec')}", name_of(self._driver)
        return {"embedder": self._embedder.model, "store": store, "driver": driver}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        vectors = await self._embedder.embed([item.text for item in items], "document")
        stored = await self._thread.run(self._store.add, items, vectors, scope, self._clock.now().isoformat())
        return written(items, stored)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, CAPABILITIES)
        narrows = scope.session is not None or query.kinds or query.where
        conditions = [*within(scope), *of_kinds(query.kinds), *having(dict(query.where))] if narrows else []
        (vector,) = await self._embedder.embed([query.text], "query")
        return await self._thread.run(self._store.search, vector, query, scope, conditions)

    async def rewrite(self, id_: str, item: Item) -> None:
        (vector,) = await self._embedder.embed([item.text], "document")
        await self._thread.run(self._store.rewrite, id_, item, vector)


class SqliteVecFactory(EmbeddingFactory):
    """The SQLite extension sqlite-vec, with the embedder that the reference uses too."""

    name: ClassVar[str] = "sqlite-vec"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.sqlite_vec:SqliteVecFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return SqliteVecTarget(self._embedders)
