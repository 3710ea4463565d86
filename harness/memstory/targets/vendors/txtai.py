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
from memstory.contract.target import Environment, Tree
from memstory.targets.embedders import BlockingEmbedder, Embedders, EmbeddingFactory, EmbeddingTarget
from memstory.targets.rows import EMBEDS, ROWS, Row, RowQuery, RowsTarget

_SELECT: Final = "SELECT id, text, data, score FROM txtai WHERE"


class TxtaiTarget(RowsTarget, EmbeddingTarget):
    """One index for all users, which calls the embedder itself; who owns a memory is a column of it."""

    not_default: ClassVar = {
        "method external": "default a transformer of its own; all adapters embed alike",
        "content on": "default off, where a search gives ids alone",
    }
    capabilities = ROWS | EMBEDS | {"search.where", "restart", "persistent"}
    name = "txtai"
    usual_count = None
    refusal_types = ()
    _index: Any
    _path: str
    _blocking: BlockingEmbedder

    def __init__(self, embedders: Embedders) -> None:
        RowsTarget.__init__(self)
        EmbeddingTarget.__init__(self, embedders)

    async def open(self, env: Environment, clock: Clock) -> None:
        self.choose_embedder(env)
        self._blocking = BlockingEmbedder(self.embedder)
        await super().open(env, clock)

    def connect(self, env: Environment) -> None:
        self._path = str(Path(env.workspace) / "txtai")
        self._index = _open(self._path, self._blocking)

    def disconnect(self) -> None:
        # Also when nothing is left; but what was never written to has nothing to save.
        if self._index.ann is not None:
            self._index.save(self._path)
        self._index.close()

    def store_name(self) -> str:
        return f"txtai {version('txtai')}"

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        self._index.upsert([(row.id, _data(row)) for row in rows])
        return ()

    def find(self, query: RowQuery) -> list[Row]:
        # txtai returns 3 by default.
        count = self._index.count()
        return [_row(found) for found in self._ask(query, count)] if count else []

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        return [(_row(found), found["score"]) for found in self._ask(query, count, near=query.text)]

    def remove(self, rows: Sequence[Row]) -> None:
        self._index.delete([row.id for row in rows])

    def _ask(self, query: RowQuery, limit: int | None, **near: str) -> Any:
        similar = ["similar(:near)"] if near else []
        conditions, values = _conditions(_equal(query))
        # What is written into the statement are names, which `_conditions` has looked at.
        sql = f"{_SELECT} {' AND '.join([*similar, *conditions])}"
        return self._index.search(sql, limit, parameters={**values, **near})


class TxtaiFactory(EmbeddingFactory):
    """txtai with content, with the embedder that the reference uses too; it is on disk once it is closed."""

    name: ClassVar[str] = "txtai"
    adapter = TxtaiTarget


def _open(path: str, embedder: BlockingEmbedder) -> Any:
    # Takes seconds: only where it was chosen.
    kind = import_module("txtai.embeddings").Embeddings

    # A function, for txtai calls whatever else it is given to get one; it does not say whether it stores or asks.
    def transform(texts: Sequence[str]) -> Any:
        return import_module("numpy").array(embedder.embed(texts, "document"), dtype="float32")

    settings = {"method": "external", "transform": transform, "content": True}
    index = kind(settings)
    return index.load(path, config=settings) if index.exists(path) else index


def _equal(query: RowQuery) -> dict[str, Tree]:
    columns = {
        "owner": query.user,
        "id": query.id,
        "caller_key": query.key,
        "session": query.session,
        "kind": list(query.kinds) or None,
    }
    given = {name: value for name, value in columns.items() if value is not None}
    return {**given, **{f"metadata.{name}": value for name, value in query.where.items()}}


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


def _data(row: Row) -> dict[str, Tree]:
    return {
        "text": row.text,
        "owner": row.user,
        "session": row.session,
        "kind": row.kind,
        "caller_key": row.key,
        "metadata": dict(row.metadata),
    }


def _row(found: Mapping[str, Tree]) -> Row:
    data = json.loads(found["data"])
    data["user"], data["key"] = data.pop("owner"), data.pop("caller_key")
    return Row(id=found["id"], **data)
