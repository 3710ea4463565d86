"""SQLite's full-text search as a memory: the keyword baseline that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from memstory.clock import Clock
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
from memstory.targets.fts5_store import VERSION, Fts5Store
from memstory.targets.one_thread import OneThread
from memstory.targets.sqlite_store import having, named, of_kinds, within

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.key", "add.verbatim", "add.exact", "add.batch_atomic", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where", "search.lexical"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "crash", "clock", "persistent", "scope.user", "scope.session", "scope.session_all"),
    }
)


class Fts5Target(Target):
    """One SQLite file in the workspace."""

    _store: Fts5Store
    _clock: Clock

    def __init__(self) -> None:
        self._thread = OneThread("fts5")

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock = clock
        self._store = await self._thread.run(Fts5Store, Path(env.workspace) / "memories.sqlite3")

    async def close(self) -> None:
        await self._thread.run(self._store.close)
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        return {"store": VERSION}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        stored = await self._thread.run(self._store.add, items, scope, self._clock.now().isoformat())
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
        conditions = [*within(scope), *of_kinds(query.kinds), *having(dict(query.where))]
        return await self._thread.run(self._store.search, query, scope, conditions)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return await self._thread.run(self._store.find, [*within(scope), *of_kinds(kinds)], limit)

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self.get(ref, scope)
        if known is None or known.id is None:
            raise Refused(f"update: nothing is remembered under {ref.id or ref.key!r}")
        await self._thread.run(self._store.rewrite, known.id, item)
        return Receipt(items=[_receipt(known.id, item, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        names_nothing = ref.id is None and ref.key is None
        every = [*within(scope), *of_kinds([ref.kind] if ref.kind else [])]
        conditions = every if names_nothing else named(ref, scope.user)
        return await self._thread.run(self._store.delete, conditions)


def _receipt(id_: str, item: Item, outcome: str) -> ReceiptItem:
    return ReceiptItem(id=id_, text=item.text, outcome=outcome, kind=item.kind, key=item.key)


class Fts5Factory(TargetFactory):
    """SQLite's full-text search, ranked by bm25."""

    name: ClassVar[str] = "fts5"
    spec: ClassVar[str | None] = "memstory.targets.fts5:Fts5Factory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return Fts5Target()
