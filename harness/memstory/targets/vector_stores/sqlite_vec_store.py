"""Memories in one SQLite file, found by the extension sqlite-vec: all the SQL of the target `sqlite-vec`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from memstory.contract.target import Hit, Item, Query, Ref, Scope
from memstory.targets.sqlite_store import (
    COLUMNS,
    Condition,
    connected,
    find,
    hit_of,
    insert,
    joined,
    named,
    rewrite,
)

# A partition for each user: a search looks at the user's own vectors and at no others.
_VECTORS: Final = """CREATE VIRTUAL TABLE IF NOT EXISTS vectors
                     USING vec0 (user TEXT PARTITION KEY, embedding FLOAT[{size}] distance_metric=cosine)"""
_USUAL_COUNT: Final = 10

Vector = Sequence[float]


class SqliteVecStore:
    """The file; use it in the thread that made it. Each method is one transaction.

    `driver` works as `sqlite3` does and loads extensions, `vendor` is the module sqlite_vec, `size` is the length of
    every vector.
    """

    def __init__(self, path: Path, driver: Any, vendor: Any, size: int) -> None:
        self._bytes = vendor.serialize_float32
        self._connection = connected(driver, path)
        self._connection.enable_load_extension(True)  # noqa: FBT003  (the driver's way)
        vendor.load(self._connection)
        self._connection.enable_load_extension(False)  # noqa: FBT003  (the same)
        self._connection.execute(_VECTORS.format(size=size))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, items: Sequence[Item], vectors: Sequence[Vector], scope: Scope, now: str) -> list[tuple[str, bool]]:
        """Store all of `items` or none; return the id of each, and whether it replaced what its key named."""
        with self._connection:
            return [self._add(item, vector, scope, now) for item, vector in zip(items, vectors, strict=True)]

    def find(self, conditions: Sequence[Condition], limit: int | None = None) -> list[Hit]:
        """Return memories, oldest first."""
        return find(self._connection, conditions, limit)

    def search(self, vector: Vector, query: Query, scope: Scope, conditions: Sequence[Condition]) -> list[Hit]:
        """Return the memories nearest to `vector` of those for which `conditions` hold, best first."""
        where, values = joined(conditions)
        # The conditions go into the search, not behind it: k memories are found if there are so many.
        among = f"AND v.rowid IN (SELECT m.id FROM memories m WHERE {where})" if conditions else ""  # noqa: S608  (our own words)
        # A cosine distance d is a similarity of 1 - d.
        sql = f"""SELECT {COLUMNS}, 1 - v.distance FROM vectors v JOIN memories m ON m.id = v.rowid
                  WHERE v.embedding MATCH ? AND k = ? AND v.user = ? {among} ORDER BY v.distance"""  # noqa: S608  (the same)
        count = _USUAL_COUNT if query.top_k is None else query.top_k
        with closing(self._connection.execute(sql, [self._bytes(vector), count, scope.user, *values])) as rows:
            return [hit_of(row) for row in rows]

    def rewrite(self, id_: str, item: Item, vector: Vector) -> None:
        """Replace the text of a memory, and its metadata where `item` has some."""
        with self._connection:
            rewrite(self._connection, id_, item)
            sql = "UPDATE vectors SET embedding = ? WHERE rowid = ?"
            self._connection.execute(sql, [self._bytes(vector), int(id_)])

    def delete(self, conditions: Sequence[Condition]) -> bool:
        """Delete memories; return whether there were any."""
        found = [str(hit.id) for hit in self.find(conditions)]
        with self._connection:
            for id_ in found:
                self._forget(id_)
        return bool(found)

    def _add(self, item: Item, vector: Vector, scope: Scope, now: str) -> tuple[str, bool]:
        known = self.find(named(Ref(key=item.key, kind=item.kind), scope.user)) if item.key is not None else []
        if known:
            self._forget(str(known[0].id))
        id_ = insert(self._connection, item, scope, now, known[0].id if known else None)
        sql = "INSERT INTO vectors (rowid, user, embedding) VALUES (?, ?, ?)"
        self._connection.execute(sql, [int(id_), scope.user, self._bytes(vector)])
        return id_, bool(known)

    def _forget(self, id_: str) -> None:
        self._connection.execute("DELETE FROM vectors WHERE rowid = ?", [int(id_)])
        self._connection.execute("DELETE FROM memories WHERE id = ?", [id_])
