"""Qdrant in its local mode, one collection with the user as payload, as its makers advise for many tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.errors import Refused
from memstory.contract.target import OPERATORS, Environment, Json
from memstory.targets.embedders import EmbeddingFactory
from memstory.targets.rows import VECTORS, Row, RowQuery, VectorRowsTarget, conditions_on

_COLLECTION: Final = "memories"
_PAGE: Final = 1_000


class QdrantTarget(VectorRowsTarget):
    """A local client in the workspace."""

    capabilities = VECTORS | {"search.where", "search.where.any", "search.min_score", *OPERATORS.values()}
    name = "qdrant"
    _client: Any
    _models: Any

    def connect(self, env: Environment) -> None:
        vendor = import_module("qdrant_client")
        self._models = vendor.models
        self._client = vendor.QdrantClient(path=str(Path(env.workspace) / "qdrant"))
        if not self._client.collection_exists(_COLLECTION):
            vectors = self._models.VectorParams(size=self.length, distance=self._models.Distance.COSINE)
            self._client.create_collection(_COLLECTION, vectors_config=vectors)

    def disconnect(self) -> None:
        self._client.close()

    def store_name(self) -> str:
        return f"qdrant-client {version('qdrant-client')}, local mode"

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        points = [
            self._models.PointStruct(id=row.id, vector=list(row.vector), payload={**_payload(row)}) for row in rows
        ]
        self._client.upsert(_COLLECTION, points=points)
        return ()

    def find(self, query: RowQuery) -> list[Row]:
        rows, after = [], None
        while True:
            points, after = self._client.scroll(
                _COLLECTION, scroll_filter=self._filter(query), limit=_PAGE, offset=after
            )
            rows += [_row(point) for point in points]
            if after is None:
                return rows

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        if not count:
            return []
        found = self._client.query_points(
            _COLLECTION, query=list(query.vector), query_filter=self._filter(query), limit=count, with_payload=True,
            score_threshold=query.min_score,
        )  # fmt: skip
        return [(_row(point), point.score) for point in found.points]

    def remove(self, rows: Sequence[Row]) -> None:
        self._client.delete(_COLLECTION, points_selector=self._models.PointIdsList(points=[row.id for row in rows]))

    def _filter(self, query: RowQuery) -> Any:
        models = self._models
        equal = {"user": query.user, "key": query.key, "session": query.session}
        must = [_equal(models, name, value) for name, value in equal.items() if value is not None]
        must += _conditions(models, query.where)
        if query.where_any:
            must.append(models.Filter(should=[models.Filter(must=_conditions(models, one)) for one in query.where_any]))
        if query.id is not None:
            must.append(models.HasIdCondition(has_id=[query.id]))
        if query.kinds:
            must.append(models.FieldCondition(key="kind", match=models.MatchAny(any=list(query.kinds))))
        return models.Filter(must=must)


class QdrantFactory(EmbeddingFactory):
    """Qdrant in its local mode, with the embedder that the reference uses too."""

    name: ClassVar[str] = "qdrant"
    adapter = QdrantTarget


def _conditions(models: Any, where: Mapping[str, Json]) -> list[Any]:
    path = "metadata.{}".format
    return conditions_on(
        where,
        lambda name, value: _equal(models, path(name), value),
        lambda name, operator, bound: _compare(models, path(name), operator, bound),
    )


def _equal(models: Any, name: str, value: Json) -> Any:
    if isinstance(value, float):
        return models.FieldCondition(key=name, range=models.Range(gte=value, lte=value))
    if not isinstance(value, (str, int)):
        raise Refused(f"where: {name} is {value!r:.80}; Qdrant compares texts, numbers and booleans")
    return models.FieldCondition(key=name, match=models.MatchValue(value=value))


def _compare(models: Any, name: str, operator: str, bound: Any) -> Any:
    if operator == "exists":
        missing = models.IsEmptyCondition(is_empty=models.PayloadField(key=name))
        return models.Filter(must_not=[missing]) if bound else missing
    if operator == "ne":
        return models.Filter(must_not=[_equal(models, name, bound)])
    if operator == "in":
        return models.FieldCondition(key=name, match=models.MatchAny(any=list(bound)))
    side = {"ge": "gte", "le": "lte"}.get(operator, operator)
    return models.FieldCondition(key=name, range=models.Range(**{side: bound}))


def _payload(row: Row) -> Mapping[str, Json]:
    return {
        "user": row.user, "session": row.session, "kind": row.kind, "key": row.key, "created_at": row.created_at,
        "place": row.place, "text": row.text, "metadata": dict(row.metadata),
    }  # fmt: skip


def _row(point: Any) -> Row:
    return Row(id=str(point.id), **point.payload)
