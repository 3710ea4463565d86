"""SQLite's full-text search as a memory: the keyword baseline that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    Scope,
    Target,
    TargetFactory,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.sqlite_store import having, of_kinds, within
from memstory.targets.table_target import TableTarget, written
from memstory.targets.words.fts5_store import VERSION, Fts5Store

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add.metadata", "add.metadata.lists"),
        *("add", "add.key", "add.verbatim", "add.exact", "add.batch_atomic", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where", "search.lexical"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "other_process", "clock", "persistent"),
        *("scope.user", "scope.session", "scope.session_all"),
    }
)


class Fts5Target(TableTarget):
    """One SQLite file in the workspace."""

    _store: Fts5Store
    _clock: Clock

    def __init__(self) -> None:
        super().__init__("fts5")

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock = clock
        self._store = await self._thread.run(Fts5Store, Path(env.workspace) / "memories.sqlite3")

    async def about(self) -> Mapping[str, str]:
        return {"store": VERSION, "words": "as written, not stemmed"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        stored = await self._thread.run(self._store.add, items, scope, self._clock.now().isoformat())
        return written(items, stored)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, CAPABILITIES)
        conditions = [*within(scope), *of_kinds(query.kinds), *having(dict(query.where))]
        return await self._thread.run(self._store.search, query, scope, conditions)

    async def rewrite(self, id_: str, item: Item) -> None:
        await self._thread.run(self._store.rewrite, id_, item)


class Fts5Factory(TargetFactory):
    """SQLite's full-text search, ranked by bm25; case and accents of words do not count, and nothing is stemmed."""

    name: ClassVar[str] = "fts5"
    spec: ClassVar[str | None] = "memstory.targets.words.fts5:Fts5Factory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return Fts5Target()
