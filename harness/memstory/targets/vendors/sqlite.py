"""SQLite as a memory: a table of rows, found by words with FTS5 or by meaning with the extension sqlite-vec."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from math import fsum, sqrt
from operator import mul
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Environment, Json
from memstory.contract.values import MADE_BY
from memstory.targets.adapter import AdapterFactory
from memstory.targets.embedders import EmbeddingFactory
from memstory.targets.rows import EMBEDS, ROWS, VECTORS, Row, RowQuery, RowsTarget, VectorRowsTarget

# A row keeps its place when it is replaced, and no place is ever given again.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS memories (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, user TEXT NOT NULL, session TEXT, key TEXT,
    kind TEXT, text TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_user ON memories (user, key);
"""
_WORDS: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (owner, body)"
_WORDS_AND_VECTORS: Final = """CREATE VIRTUAL TABLE IF NOT EXISTS words
                               USING fts5 (owner, body, vector UNINDEXED, tokenize = 'porter unicode61')"""
# A partition for each user: a search looks at the user's own vectors and at no others.
_VECTORS: Final = """CREATE VIRTUAL TABLE IF NOT EXISTS vectors
                     USING vec0 (user TEXT PARTITION KEY, embedding FLOAT[{length}] distance_metric=cosine)"""
_FIELDS: Final = ("place", "id", "user", "session", "key", "kind", "text", "metadata", "created_at")
_COLUMNS: Final = ", ".join(f"m.{name}" for name in _FIELDS)
_WRITE: Final = f"INSERT OR REPLACE INTO memories VALUES ({', '.join('?' * len(_FIELDS))})"  # noqa: S608  (our own words)

_OTHER: Final = "pysqlite3"
_WORDS_WEIGH: Final = 1.25
"""Of a sum with cosines that weigh 1: with a static table, words tell more. See docs/decisions/embeddings.md."""
_WORDS_ASKED: Final = 32
"""More words of one query cost time and hardly change the ranking."""


class SqliteTarget(RowsTarget):
    """One SQLite file in the workspace: a table of rows, and one by which they are searched; a write is all or none."""

    refusal_types = ()
    index: ClassVar[str]
    """The table by which rows are searched; its `rowid` is a row's place."""
    connection: sqlite3.Connection

    def connect(self, env: Environment) -> None:
        self.connection = self.open_file(Path(env.workspace) / "memories.sqlite3")
        # SQLite's own JSON has no booleans, which it finds as 1, and no whole numbers beyond 64 bits.
        self.connection.create_function("has_value", 3, _has_value, deterministic=True)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(_SCHEMA)
        self.connection.execute(self.index_schema())

    def disconnect(self) -> None:
        self.connection.close()

    def write(self, rows: Sequence[Row]) -> set[str]:
        with self.connection:
            return {row.id for row in rows if self._write_row(row)}

    def find(self, query: RowQuery) -> list[Row]:
        where, values = _condition(query)
        sql = f"SELECT {_COLUMNS} FROM memories m WHERE {where} ORDER BY m.place"  # noqa: S608  (our own words)
        return [_row(found) for found in self.connection.execute(sql, values).fetchall()]

    def remove(self, rows: Sequence[Row]) -> None:
        with self.connection:
            for table, column in ((self.index, "rowid"), ("memories", "place")):
                self.connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [[row.place] for row in rows])  # noqa: S608  (our own words)

    def open_file(self, path: Path) -> sqlite3.Connection:
        """Return a connection to the file."""
        raise NotImplementedError

    def index_schema(self) -> str:
        """Return the statement that makes the table `index`."""
        raise NotImplementedError

    def write_index(self, place: int, row: Row) -> None:
        """Write a row of `index`; there is none at this place."""
        raise NotImplementedError

    def _write_row(self, row: Row) -> bool:
        """Write a row; return whether its id was known."""
        known = self.connection.execute("SELECT place FROM memories WHERE id = ?", [row.id]).fetchone()
        if known:
            self.connection.execute(f"DELETE FROM {self.index} WHERE rowid = ?", known)  # noqa: S608  (our own words)
        values = {name: getattr(row, name) for name in _FIELDS[1:]} | {"metadata": json.dumps(dict(row.metadata))}
        written = self.connection.execute(_WRITE, [known[0] if known else None, *values.values()])
        self.write_index(int(written.lastrowid or 0), row)
        return bool(known)

    def _rank(self, sql: str, values: Sequence[Json]) -> list[tuple[Row, float]]:
        with closing(self.connection.execute(sql, values)) as found:
            return [(_row(columns), score) for *columns, score in found]


class Fts5Target(SqliteTarget):
    """Found by FTS5's bm25."""

    not_default: ClassVar = {
        "tokenize porter": "default unicode61 alone; words are stemmed",
    }
    capabilities = ROWS | {
        *("add.metadata.lists", "add.batch_atomic", "search.where", "search.lexical"),
        *("restart", "crash", "other_process", "clock", "persistent"),
    }
    name = "fts5"
    usual_count = None
    index = "words"

    def open_file(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path)

    def index_schema(self) -> str:
        return _WORDS

    def store_name(self) -> str:
        return f"SQLite {sqlite3.sqlite_version} FTS5"

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "words": "as written, not stemmed"}

    def write_index(self, place: int, row: Row) -> None:
        sql = "INSERT INTO words (rowid, owner, body) VALUES (?, ?, ?)"
        self.connection.execute(sql, [place, _tag(row.user), row.text])

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        match = match_of(query.text, query.user)
        if match is None:
            return []
        where, values = _condition(query)
        # The owner's tag is only there to be matched: it counts nothing.
        sql = f"""SELECT {_COLUMNS}, -bm25(words, 0.0, 1.0) AS score FROM words JOIN memories m ON m.place = words.rowid
                  WHERE words MATCH ? AND {where} ORDER BY score DESC, m.place LIMIT ?"""  # noqa: S608  (our own words)
        return self._rank(sql, [match, *values, -1 if count is None else count])


class HybridTarget(SqliteTarget, VectorRowsTarget):
    """Found by FTS5's bm25 of stemmed words and by cosines, whose z-scores over the memories in question are added.

    Every vector of a user is looked at, in plain Python: 10 ms for a thousand of 256 numbers.
    """

    capabilities = Fts5Target.capabilities | EMBEDS | {"search.hybrid"}
    name = "hybrid"
    has_fixed_length = False
    index = "words"

    def open_file(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path)

    def index_schema(self) -> str:
        return _WORDS_AND_VECTORS

    def store_name(self) -> str:
        return f"SQLite {sqlite3.sqlite_version} FTS5, and vectors beside"

    async def about(self) -> Mapping[str, str]:
        how = {"words": "stemmed (porter)", "ranking": "bm25 + cosine, as z-scores", MADE_BY: "memstory"}
        return {**await super().about(), **how}

    def write_index(self, place: int, row: Row) -> None:
        sql = "INSERT INTO words (rowid, owner, body, vector) VALUES (?, ?, ?, ?)"
        self.connection.execute(sql, [place, _tag(row.user), row.text, array("f", row.vector).tobytes()])

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        where, values = _condition(query)
        sql = f"""SELECT {_COLUMNS}, words.vector FROM memories m JOIN words ON words.rowid = m.place
                  WHERE {where} ORDER BY m.place"""  # noqa: S608  (our own words)
        found = self.connection.execute(sql, values).fetchall()
        match = match_of(query.text, query.user)
        matched = "SELECT rowid, -bm25(words, 0.0, 1.0) FROM words WHERE words MATCH ?"
        worded = dict(self.connection.execute(matched, [match])) if match else {}
        near = z_scores([sum(map(mul, memoryview(vector).cast("f"), query.vector)) for *_, vector in found])
        shared = z_scores([worded.get(place, 0.0) for place, *_ in found])
        scored = [
            (_row(columns), one + _WORDS_WEIGH * other)
            for (*columns, _), one, other in zip(found, near, shared, strict=True)
        ]
        return sorted(scored, key=lambda pair: -pair[1])[:count]


def z_scores(values: Sequence[float]) -> list[float]:
    """Return how many standard deviations each value is above their mean; zeros where all are equal.

    >>> z_scores([1.0, 3.0]), z_scores([2.0, 2.0]), z_scores([])
    ([-1.0, 1.0], [0.0, 0.0], [])
    """
    mean = fsum(values) / len(values) if values else 0.0
    spread = sqrt(fsum((value - mean) ** 2 for value in values) / len(values)) if values else 0.0
    return [(value - mean) / spread if spread else 0.0 for value in values]


class SqliteVecTarget(SqliteTarget, VectorRowsTarget):
    """Found by the extension sqlite-vec."""

    not_default: ClassVar = {
        "distance_metric cosine": "default l2; the score of a hit is a similarity",
    }
    capabilities = VECTORS | {"add.batch_atomic", "search.where", "other_process"}
    name = "sqlite-vec"
    index = "vectors"
    _driver: Any
    _bytes: Any

    def open_file(self, path: Path) -> sqlite3.Connection:
        self._driver, vendor = loading_driver(), import_module("sqlite_vec")
        self._bytes = vendor.serialize_float32
        connection: sqlite3.Connection = self._driver.connect(path)
        connection.enable_load_extension(True)  # noqa: FBT003  (the driver's way)
        vendor.load(connection)
        connection.enable_load_extension(False)  # noqa: FBT003  (the same)
        return connection

    def index_schema(self) -> str:
        return _VECTORS.format(length=self.length)

    def store_name(self) -> str:
        return f"sqlite-vec {version('sqlite-vec')}"

    async def about(self) -> Mapping[str, str]:
        return {**await super().about(), "driver": name_of(self._driver)}

    def write_index(self, place: int, row: Row) -> None:
        sql = "INSERT INTO vectors (rowid, user, embedding) VALUES (?, ?, ?)"
        self.connection.execute(sql, [place, row.user, self._bytes(row.vector)])

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        where, values = _condition(query)
        # The conditions go into the search, not behind it: k memories are found if there are so many.
        narrows = query.session is not None or query.kinds or query.where
        among = f"AND v.rowid IN (SELECT m.place FROM memories m WHERE {where})" if narrows else ""  # noqa: S608  (our own words)
        # A cosine distance d is a similarity of 1 - d.
        sql = f"""SELECT {_COLUMNS}, 1 - v.distance FROM vectors v JOIN memories m ON m.place = v.rowid
                  WHERE v.embedding MATCH ? AND k = ? AND v.user = ? {among} ORDER BY v.distance"""  # noqa: S608  (the same)
        return self._rank(sql, [self._bytes(query.vector), count, query.user, *(values if narrows else ())])


class Fts5Factory(AdapterFactory):
    """SQLite's full-text search, ranked by bm25; case and accents of words do not count, and nothing is stemmed."""

    name: ClassVar[str] = "fts5"
    adapter = Fts5Target


class HybridFactory(EmbeddingFactory):
    """SQLite's full-text search of stemmed words, and vectors: what a plain install measures with.

    Its embedder is `static`, which needs no package, unless the option `embedder` names another.
    """

    name: ClassVar[str] = "hybrid"
    adapter = HybridTarget
    usual_embedder = "static"


class SqliteVecFactory(EmbeddingFactory):
    """The SQLite extension sqlite-vec, with the embedder that the reference uses too."""

    name: ClassVar[str] = "sqlite-vec"
    adapter = SqliteVecTarget


def loading_driver() -> Any:
    """Return a module that works as `sqlite3` does and whose connections load extensions.

    Raises:
        NotSupported: there is none on this machine.
    """
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    if find_spec(_OTHER) is None:
        raise NotSupported(
            "search",
            "the sqlite3 of this Python cannot load extensions, and this backend searches by one. "
            f"Use a Python that can, or: pip install {_OTHER}",
        )
    return import_module(_OTHER)


def name_of(driver: Any) -> str:
    """Return what a report says of `driver`."""
    return f"SQLite {driver.sqlite_version} by {driver.__name__}"


def match_of(text: str, user: str) -> str | None:
    """Return the words of `text` as an expression of FTS5 within the memories of `user`; None if it has no word.

    What users type is not a query language here: quotes, colons and stars would change its meaning.
    """
    words = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))
    asked = " OR ".join(f'"{word}"' for word in list(words)[:_WORDS_ASKED])
    return f'owner : "{_tag(user)}" AND body : ({asked})' if asked else None


def _tag(user: str) -> str:
    # One word for the tokenizer, whatever characters the user's name has.
    return f"u{blake2b(user.encode(), digest_size=16).hexdigest()}"


def _condition(query: RowQuery) -> tuple[str, list[Json]]:
    """Return what is true of the rows that are query, as a part of a WHERE clause over `memories m`."""
    equal = {"user": query.user, "id": query.id, "key": query.key, "session": query.session}
    parts: list[tuple[str, list[Json]]] = [
        (f"m.{name} = ?", [value]) for name, value in equal.items() if value is not None
    ]
    if query.kinds:
        parts.append((f"m.kind IN ({', '.join('?' * len(query.kinds))})", [*query.kinds]))
    for name, value in query.where.items():
        if not isinstance(value, (str, int, float)):
            raise Refused(f"where: {name} is compared with a text, number or boolean, not with {value!r:.80}")
        parts.append(("has_value(m.metadata, ?, ?)", [name, json.dumps(value)]))
    return " AND ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def _has_value(metadata: str, name: str, value: str) -> bool:
    """Return whether metadata has this value: 1 is 1.0, but neither true nor "1"."""
    found, wanted = json.loads(metadata).get(name), json.loads(value)
    return isinstance(found, bool) is isinstance(wanted, bool) and bool(found == wanted)


def _row(found: Sequence[Any]) -> Row:
    fields = dict(zip(_FIELDS, found, strict=True))
    return Row(**{**fields, "metadata": json.loads(fields["metadata"])})
