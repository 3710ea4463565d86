"""txtai: an index of vectors beside a table, asked in its SQL; what is in memory is written down when it is closed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    Ref,
    Scope,
    Target,
    Tree,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TimedEmbedder
from memstory.targets.embedding_factory import EmbeddingFactory
from memstory.targets.given_ids import GivenIds
from memstory.targets.one_thread import OneThread
from memstory.targets.receipts import stored, unknown, updated
from memstory.targets.waited_embedder import WaitedEmbedder

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.key", "add.metadata", "add.verbatim", "add.exact", "get.id", "get.key", "list", "update"),
        *("search", "search.scores", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("restart", "persistent", "scope.user", "scope.session", "scope.session_all"),
        *("embedder.fixed", "option.embedder"),
    }
)
_SELECT: Final = "SELECT id, text, data, score FROM txtai WHERE"


class TxtaiTarget(Target):
    """One index for all users; who owns a memory is a column of it."""

    _index: Any
    _embedder: TimedEmbedder
    _ids: GivenIds
    _path: str

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        self._thread = OneThread("txtai")

    async def open(self, env: Environment, clock: Clock) -> None:
        self._embedder, self._ids = self._embedders.of(env), GivenIds(env)
        self.embedding = self._embedder.watch
        self._path = str(Path(env.workspace) / "txtai")
        self._index = await self._thread.run(_open, self._path, WaitedEmbedder(self._embedder))

    async def close(self) -> None:
        await self._thread.run(self._close)
        self._thread.close()

    async def about(self) -> Mapping[str, str]:
        return {"embedder": self._embedder.model, "store": f"txtai {version('txtai')}"}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        ids = [self._ids.next() if item.key is None else _id_of_key(item, scope) for item in items]
        rows = [(id_, _row(item, scope)) for id_, item in zip(ids, items, strict=True)]
        await self._thread.run(self._index.upsert, rows)
        return stored(items, ids)

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._thread.run(self._rows, _named(ref, scope), 1)
        return _hit(found[0]) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        refuse_undeclared(query, scope, CAPABILITIES)
        equal = {**_within(scope, query.kinds), **{f"metadata.{name}": value for name, value in query.where.items()}}
        return [_hit(row) for row in await self._thread.run(self._rows, equal, query.top_k, query.text)]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        return [_hit(row) for row in await self._thread.run(self._listed, _within(scope, kinds), limit)]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        known = await self._thread.run(self._rows, _named(ref, scope), 1)
        if not known:
            raise unknown(ref)
        id_, row = known[0]["id"], json.loads(known[0]["data"])
        metadata = dict(item.metadata) or row["metadata"]
        await self._thread.run(self._index.upsert, [(id_, {**row, "text": item.text, "metadata": metadata})])
        return updated(item, id_)

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            found = await self.list(scope, [ref.kind] if ref.kind is not None else [])
        else:
            hit = await self.get(ref, scope)
            found = [hit] if hit is not None else []
        return bool(await self._thread.run(self._index.delete, [hit.id for hit in found])) if found else False

    def _rows(self, equal: Mapping[str, Tree], limit: int | None, near: str | None = None) -> Any:
        asked = {} if near is None else {"near": near}
        similar = ["similar(:near)"] if asked else []
        conditions, values = _conditions(equal)
        # What is written into the statement are names, which `_conditions` has looked at.
        sql = f"{_SELECT} {' AND '.join([*similar, *conditions])}"
        return self._index.search(sql, limit, parameters={**values, **asked})

    def _listed(self, equal: Mapping[str, Tree], limit: int | None) -> Any:
        # txtai returns 3 by default.
        return self._rows(equal, self._index.count() if limit is None else limit) if self._index.count() else []

    def _close(self) -> None:
        # Also when nothing is left; but what was never written to has nothing to save.
        if self._index.ann is not None:
            self._index.save(self._path)
        self._index.close()


class TxtaiFactory(EmbeddingFactory):
    """txtai with content, with the embedder that the reference uses too; it is on disk once it is closed."""

    name: ClassVar[str] = "txtai"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.txtai:TxtaiFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return TxtaiTarget(self._embedders)


def _open(path: str, embedder: WaitedEmbedder) -> Any:
    # Takes seconds: only where it was chosen.
    kind = import_module("txtai.embeddings").Embeddings

    # A function, for txtai calls whatever else it is given to get one; it does not say whether it stores or asks.
    def transform(texts: Sequence[str]) -> Any:
        return import_module("numpy").array(embedder.embed(texts, "document"), dtype="float32")

    settings = {"method": "external", "transform": transform, "content": True}
    index = kind(settings)
    return index.load(path, config=settings) if index.exists(path) else index


def _id_of_key(item: Item, scope: Scope) -> str:
    # Ids are those of the whole index: whose key it is belongs to it.
    return json.dumps([scope.user, item.kind, item.key])


def _row(item: Item, scope: Scope) -> dict[str, Tree]:
    return {
        "text": item.text,
        "owner": scope.user,
        "session": scope.session,
        "kind": item.kind,
        "caller_key": item.key,
        "metadata": dict(item.metadata),
    }


def _within(scope: Scope, kinds: Sequence[str]) -> dict[str, Tree]:
    session = {"session": scope.session} if scope.session is not None else {}
    return {"owner": scope.user, **session, **({"kind": list(kinds)} if kinds else {})}


def _named(ref: Ref, scope: Scope) -> dict[str, Tree]:
    named = {"id": ref.id} if ref.id is not None else {"caller_key": ref.key}
    return {"owner": scope.user, **named, **({"kind": ref.kind} if ref.kind is not None else {})}


def _conditions(equal: Mapping[str, Tree]) -> tuple[list[str], dict[str, Tree]]:
    """Return conditions in txtai's SQL and the values that their parameters stand for; a list means one of these."""
    conditions: list[str] = []
    values: dict[str, Tree] = {}
    for number, (name, value) in enumerate(equal.items()):
        if not name.replace(".", "").replace("_", "").isalnum():
            raise Refused(f"where: txtai has no column '{name}'; names are letters, digits, dots and underscores")
        if any(isinstance(one, Mapping) for one in (value if isinstance(value, list) else [value])):
            raise Refused(f"where: '{name}' is compared with values, not with a mapping")
        several = {f"v{number}_{place}": one for place, one in enumerate(value)} if isinstance(value, list) else {}
        values |= several or {f"v{number}": value}
        marks = ", ".join(f":{parameter}" for parameter in several)
        conditions.append(f"[{name}] IN ({marks})" if several else f"[{name}] = :v{number}")
    return conditions, values


def _hit(found: Mapping[str, Tree]) -> Hit:
    row = json.loads(found["data"])
    return Hit(
        id=found["id"],
        text=row["text"],
        score=found["score"],
        kind=row["kind"],
        key=row["caller_key"],
        metadata=row["metadata"],
    )
