"""LanceDB: one table in the workspace, metadata in a column of its own JSON type, since its schema is fixed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.errors import NotSupported
from memstory.contract.target import OPERATORS, Environment, Json, Scope
from memstory.targets.embedders import EmbeddingFactory
from memstory.targets.rows import VECTORS, Row, RowQuery, VectorRowsTarget, expression

_TABLE: Final = "memories"
_TEXTS: Final = ("id", "user", "session", "kind", "key", "created_at", "text")
_COLUMNS: Final = [*_TEXTS, "place", "metadata"]
_SIGNS: Final[Mapping[str, str]] = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
# A search without a limit gives ten.
_EVERYTHING: Final = 10_000_000


class LancedbTarget(VectorRowsTarget):
    """A database in the workspace; every write is a version of the table."""

    not_default: ClassVar = {
        "distance_type cosine": "default l2; the score of a hit is a similarity",
        "read_consistency_interval 0": "default none: an open table shows nothing of what other processes write",
    }
    capabilities = VECTORS | {
        "other_process",
        "job.optimize",
        "search.min_score",
        "search.where",
        "search.where.any",
        *OPERATORS.values(),
    }
    name = "lancedb"
    _table: Any

    def connect(self, env: Environment) -> None:
        arrow = import_module("pyarrow")
        # Without an interval of 0 a table that is open shows nothing of what other processes write.
        fresh = timedelta(0)
        folder = Path(env.workspace) / "lancedb"
        database = import_module("lancedb").connect(str(folder), read_consistency_interval=fresh)
        fields = [*((name, arrow.string()) for name in _TEXTS), ("place", arrow.int64()), ("metadata", arrow.json_())]
        schema = arrow.schema([*fields, ("vector", arrow.list_(arrow.float32(), self.length))])
        # Not `create_table` alone: another release writes the type of JSON otherwise, and finds no schema equal.
        is_there = (folder / f"{_TABLE}.lance").is_dir()
        make = partial(database.create_table, _TABLE, schema=schema, exist_ok=True)
        self._table = database.open_table(_TABLE) if is_there else make()

    def disconnect(self) -> None:
        del self._table

    def store_name(self) -> str:
        return f"lancedb {version('lancedb')}"

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        written = [
            {**{name: getattr(row, name) for name in _COLUMNS}, "metadata": json.dumps(dict(row.metadata)),
             "vector": list(row.vector)}
            # A merge takes an id once.
            for row in {row.id: row for row in rows}.values()
        ]  # fmt: skip
        # Ids are not unique in a table: to add a known one would keep both.
        self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(written)
        return ()

    def find(self, query: RowQuery) -> list[Row]:
        found = self._table.search().where(_condition(query)).select(_COLUMNS).limit(_EVERYTHING).to_list()
        return [_row(one) for one in found]

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        if not count:
            return []
        # Without the metric it measures the squared distance. The condition holds before the search, not behind it.
        asked = self._table.search(list(query.vector)).distance_type("cosine").where(_condition(query), prefilter=True)
        if query.min_score is not None:
            # The upper bound itself is left out, and the lowest score is not.
            asked = asked.distance_range(upper_bound=math.nextafter(1 - query.min_score, math.inf))
        found = asked.select([*_COLUMNS, "_distance"]).limit(count).to_list()
        return [(_row(one), 1 - one["_distance"]) for one in found]

    def remove(self, rows: Sequence[Row]) -> None:
        self._table.delete(f"id IN ({', '.join(_text(row.id) for row in rows)})")

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if job != "optimize":
            raise NotSupported(f"job.{job}")
        await self._thread.run(self._table.optimize)
        return None


class LancedbFactory(EmbeddingFactory):
    """LanceDB, embedded, with the embedder that the reference uses too."""

    name: ClassVar[str] = "lancedb"
    adapter = LancedbTarget


def _condition(query: RowQuery) -> str:
    """Return the condition as SQL: it takes no parameters, so that texts are quoted here."""
    equal = {"user": query.user, "id": query.id, "key": query.key, "session": query.session}
    parts = [f"`{name}` = {_text(value)}" for name, value in equal.items() if value is not None]
    if query.kinds:
        parts.append(f"kind IN ({', '.join(map(_text, query.kinds))})")
    return expression(parts, query, _equal, _compare)


def _equal(name: str, value: Json) -> str:
    return f"json_extract(metadata, {_path(name)}) = {_text(json.dumps(value, ensure_ascii=False))}"


def _compare(name: str, operator: str, bound: Any) -> str:
    if operator == "exists":
        return f"{'' if bound else 'NOT '}json_exists(metadata, {_path(name)})"
    if operator == "ne":
        return f"NOT (json_exists(metadata, {_path(name)}) AND {_equal(name, bound)})"
    if operator == "in":
        return f"({' OR '.join(_equal(name, one) for one in bound)})"
    return f"json_get_float(metadata, {_text(name)}) {_SIGNS[operator]} {bound}"


def _path(name: str) -> str:
    return _text(f"$[{json.dumps(name, ensure_ascii=False)}]")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _row(found: Mapping[str, Any]) -> Row:
    return Row(**{**{name: found[name] for name in _COLUMNS}, "metadata": json.loads(found["metadata"])})
