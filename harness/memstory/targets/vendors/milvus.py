"""Milvus Lite, the embedded form of Milvus: one collection with the user as a field, metadata as JSON beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.errors import Refused
from memstory.contract.target import OPERATORS, Environment, Json
from memstory.targets.embedders import EmbeddingFactory
from memstory.targets.rows import VECTORS, Row, RowQuery, VectorRowsTarget, expression

_COLLECTION: Final = "memories"
_FIELDS: Final = ("user", "session", "kind", "key", "created_at", "place", "text", "metadata")
_ID_LENGTH: Final = 64
_PAGE: Final = 1_000
_SIGNS: Final[Mapping[str, str]] = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "!="}


class MilvusTarget(VectorRowsTarget):
    """A client with its file in the workspace; all but id and vector are dynamic fields."""

    not_default: ClassVar = {
        "ids of our own": "default numbers that it counts; a story names what it stored",
    }
    # Milvus Lite refuses `in` on what lies within a JSON field, which the server takes.
    capabilities = (VECTORS | {"search.where", "search.where.any", "search.min_score", *OPERATORS.values()}) - {
        "search.where.in"
    }
    name = "milvus"
    _client: Any

    def connect(self, env: Environment) -> None:
        self._client = import_module("pymilvus").MilvusClient(str(Path(env.workspace) / "milvus.db"))
        if not self._client.has_collection(_COLLECTION):
            self._client.create_collection(
                _COLLECTION, dimension=self.length, id_type="string", max_length=_ID_LENGTH, metric_type="COSINE"
            )
        self._client.load_collection(_COLLECTION)

    def disconnect(self) -> None:
        self._client.close()

    def store_name(self) -> str:
        return f"pymilvus {version('pymilvus')}, milvus-lite {version('milvus-lite')}"

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        self._client.upsert(_COLLECTION, [{**_fields(row)} for row in rows])
        return ()

    def find(self, query: RowQuery) -> list[Row]:
        return [_row(found) for page in self._pages(query) for found in page]

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        if not count:
            return []
        # The radius itself is left out, and the lowest score is not.
        bound = {} if query.min_score is None else {"radius": math.nextafter(query.min_score, -math.inf)}
        (found,) = self._client.search(
            _COLLECTION, [list(query.vector)], filter=_condition(query), limit=count, output_fields=[*_FIELDS],
            search_params=bound,
        )  # fmt: skip
        return [(_row({"id": one["id"], **one["entity"]}), one["distance"]) for one in found]

    def remove(self, rows: Sequence[Row]) -> None:
        self._client.delete(_COLLECTION, ids=[row.id for row in rows])

    def _pages(self, query: RowQuery) -> Iterator[Sequence[Mapping[str, Any]]]:
        pages = self._client.query_iterator(
            _COLLECTION, filter=_condition(query), output_fields=["id", *_FIELDS], batch_size=_PAGE
        )
        try:
            while page := pages.next():
                yield page
        finally:
            pages.close()


class MilvusFactory(EmbeddingFactory):
    """Milvus Lite, with the embedder that the reference uses too."""

    name: ClassVar[str] = "milvus"
    adapter = MilvusTarget


def _condition(query: RowQuery) -> str:
    """Return the condition as Milvus reads one; values are quoted as in JSON."""
    equal = {"user": query.user, "id": query.id, "key": query.key, "session": query.session}
    parts = [f"{name} == {_value(name, value)}" for name, value in equal.items() if value is not None]
    if query.kinds:
        parts.append(f"kind in {json.dumps([*query.kinds], ensure_ascii=False)}")
    return expression(parts, query, _equal, _compare)


def _equal(name: str, value: Json) -> str:
    return f"{_path(name)} == {_value(name, value)}"


def _compare(name: str, operator: str, bound: Any) -> str:
    if operator == "exists":
        return f"{'' if bound else 'not '}exists {_path(name)}"
    return f"{_path(name)} {_SIGNS[operator]} {_value(name, bound)}"


def _path(name: str) -> str:
    return f"metadata[{_value(name, name)}]"


def _value(name: str, value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise Refused(f"where: {name} is {value!r:.80}; Milvus compares texts, numbers and booleans")
    return json.dumps(value, ensure_ascii=False)


def _fields(row: Row) -> Mapping[str, Json]:
    return {"id": row.id, "vector": list(row.vector), **{name: getattr(row, name) for name in _FIELDS}}


def _row(found: Mapping[str, Any]) -> Row:
    return Row(id=str(found["id"]), **{name: found[name] for name in _FIELDS if found.get(name) is not None})
