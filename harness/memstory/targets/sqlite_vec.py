"""SQLite with the extension sqlite-vec: a table of memories and beside it one of vectors, a partition a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from memstory.clock import Clock
from memstory.embedders import Embedders, TextEmbedder
from memstory.errors import NotSupported, Refused
from memstory.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Target,
    TargetFactory,
)
from memstory.targets.one_thread import OneThread
from memstory.targets.sqlite_store import having, loading_driver, name_of, named, of_kinds, within
from memstory.targets.sqlite_vec_store import SqliteVecStore

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.key", "add.verbatim", "add.exact", "add.batch_atomic", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "clock", "persistent", "scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder"),
    }
)
_PROBE = "How many numbers has a vector?"


class SqliteVecTarget(Target):
    """One SQLite file in the workspace."""

    _store: SqliteVecStore
    _clock: Clock
    _embedder: TextEmbedder
    _driver: Any

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._thread = OneThread("sqlite-vec")

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock, self._embedder, self._driver = clock, self._embedders.of(env), loading_driver()
        (probe,) = await self._embedder.embed([next(iter(env.vectors), _PROBE)], "document")
        path, vendor = Path(env.workspace) / "memories.sqlite3", import_module("sqlite_vec")
        self._store = await self._thread.run(SqliteVecStore, path, self._driver, vendor, len(probe))

    async def close(self) -> None:
        await self._thread.run(self._store.close)
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        store, driver = f"sqlite-vec {version('sqlite-vec')}", name_of(self._driver)
        return {"embedder": self._embedder.model, "store": store, "driver": driver}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        vectors = await self._embedder.embed([item.text for item in items], "document")
        stored = await self._thread.run(self._store.add, items, vectors, scope, self._clock.now().isoformat())
        return Receipt(
            items=[
                _receipt(id_, item, "updated" if replaced else "stored")
                for (id_, replaced), item in zip(stored, items, strict=True)
            ]
        )

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._thread.run(self._store.find, named(ref, scope.user), 1)
        return found[0] if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        if query.min_score is not None:
            raise NotSupported("search.min_score")
        if query.token_budget is not None:
            raise NotSupported("search.budget")
        narrows = scope.session is not None or query.kinds or query.where
        conditions = [*within(scope), *of_kinds(query.kinds), *having(dict(query.where))] if narrows else []
        (vector,) = await self._embedder.embed([query.text], "query")
        return await self._thread.run(self._store.search, vector, query, scope, conditions)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await self._thread.run(self._store.find, [*within(scope), *of_kinds(kinds)], limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self.get(ref, scope)
        if known is None or known.id is None:
            raise Refused(f"update: nothing is remembered under {ref.id or ref.key!r}")
        (vector,) = await self._embedder.embed([item.text], "document")
        await self._thread.run(self._store.rewrite, known.id, item, vector)
        return Receipt(items=[_receipt(known.id, item, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        names_nothing = ref.id is None and ref.key is None
        every = [*within(scope), *of_kinds([ref.kind] if ref.kind else [])]
        return await self._thread.run(self._store.delete, every if names_nothing else named(ref, scope.user))


def _receipt(id_: str, item: Item, outcome: str) -> ReceiptItem:
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)


class SqliteVecFactory(TargetFactory):
    """The SQLite extension sqlite-vec, with the embedder that the reference uses too."""

    name: ClassVar[str] = "sqlite-vec"
    spec: ClassVar[str | None] = "memstory.targets.sqlite_vec:SqliteVecFactory"

    def __init__(self, embedders: Embedders | None = None) -> None:
        self._embedders = embedders or Embedders()

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return SqliteVecTarget(self._embedders)

    async def stop(self) -> None:
        await self._embedders.close()
