"""LanceDB: one table in the workspace, metadata as JSON in a column, since its schema is fixed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.target import Capability, Environment, Target
from memstory.targets.embedding_factory import EmbeddingFactory
from memstory.targets.vector_stores.row_target import ABLE, Row, RowsTarget, Wanted

CAPABILITIES: Final[frozenset[Capability]] = ABLE | {"other_process"}
_TABLE: Final = "memories"
_TEXTS: Final = ("id", "user", "session", "kind", "key", "created_at", "text", "metadata")
_COLUMNS: Final = [*_TEXTS, "place"]
# A search without a limit gives ten.
_EVERYTHING: Final = 10_000_000


class LancedbTarget(RowsTarget):
    """A database in the workspace; every write is a version of the table."""

    able = CAPABILITIES
    name = "lancedb"
    _table: Any

    def connect(self, env: Environment, size: int) -> None:
        arrow = import_module("pyarrow")
        # Without an interval of 0 a table that is open shows nothing of what other processes write.
        fresh = timedelta(0)
        folder = Path(env.workspace) / "lancedb"
        database = import_module("lancedb").connect(str(folder), read_consistency_interval=fresh)
        fields = [*((name, arrow.string()) for name in _TEXTS), ("place", arrow.int64())]
        schema = arrow.schema([*fields, ("vector", arrow.list_(arrow.float32(), size))])
        self._table = database.create_table(_TABLE, schema=schema, exist_ok=True)

    def disconnect(self) -> None:
        del self._table

    def store_name(self) -> str:
        return f"lancedb {version('lancedb')}"

    def write(self, rows: Sequence[Row]) -> None:
        written = [
            {**{name: getattr(row, name) for name in _COLUMNS}, "metadata": json.dumps(dict(row.metadata)),
             "vector": list(row.vector)}
            for row in rows
        ]  # fmt: skip
        # Ids are not unique in a table: to add a known one would keep both.
        self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(written)

    def find(self, wanted: Wanted) -> list[Row]:
        found = self._table.search().where(_condition(wanted)).select(_COLUMNS).limit(_EVERYTHING).to_list()
        return [_row(one) for one in found]

    def near(self, vector: Sequence[float], wanted: Wanted, count: int) -> list[tuple[Row, float]]:
        if count < 1:
            return []
        # Without the metric it measures the squared distance. The condition holds before the search, not behind it.
        asked = self._table.search(list(vector)).distance_type("cosine").where(_condition(wanted), prefilter=True)
        found = asked.select([*_COLUMNS, "_distance"]).limit(count).to_list()
        return [(_row(one), 1 - one["_distance"]) for one in found]

    def remove(self, ids: Sequence[str]) -> None:
        self._table.delete(f"id IN ({', '.join(map(_text, ids))})")


class LancedbFactory(EmbeddingFactory):
    """LanceDB, embedded, with the embedder that the reference uses too."""

    name: ClassVar[str] = "lancedb"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.lancedb:LancedbFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return LancedbTarget(self._embedders)


def _condition(wanted: Wanted) -> str:
    """Return the condition as SQL: it takes no parameters, so that texts are quoted here."""
    equal = {"user": wanted.user, "id": wanted.id, "key": wanted.key, "session": wanted.session}
    parts = [f"`{name}` = {_text(value)}" for name, value in equal.items() if value is not None]
    if wanted.kinds:
        parts.append(f"kind IN ({', '.join(map(_text, wanted.kinds))})")
    return " AND ".join(parts)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _row(found: Mapping[str, Any]) -> Row:
    return Row(**{**{name: found[name] for name in _COLUMNS}, "metadata": json.loads(found["metadata"])})
