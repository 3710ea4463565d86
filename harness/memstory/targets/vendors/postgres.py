"""Postgres with pgvector: a server, perhaps not ours alone, a schema for each workspace, and a plain table of rows."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused, SetupError
from memstory.contract.target import Environment, Target
from memstory.targets.adapter import is_gone, owner_of
from memstory.targets.embedders import Embedders, EmbeddingFactory, EmbeddingTarget
from memstory.targets.rows import VECTORS, Row, RowQuery, VectorRowsTarget

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection

    from memstory.contract.target import Environment


VARIABLE: Final = "MEMSTORY_POSTGRES"
OPTION: Final = "postgres"
GROUP: Final = "memstory.postgres"
_PREFIX: Final = "memstory_target_"
# Any number, as long as it is the same wherever this is done: two cases must not make the extension at once.
_LOCK: Final = 5_807_221_940


class PostgresServers:
    """The server that an option or the environment names, else one that a package offers to start in a folder.

    A package offers one under the entry point group `memstory.postgres`: called with a folder it gives an object with
    `start() -> URL` and `halt()`, both of which block; started again in the same folder it finds the same data.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: Any = None
        self._named: str | None = None
        self._starting = asyncio.Lock()

    async def url(self, env: Environment) -> str:
        """Return the address of a server that runs; SetupError where there is none."""
        named = env.options.get(OPTION) or os.environ.get(VARIABLE)
        if named:
            self._named = str(named)
            return self._named
        async with self._starting:
            if self._own is None:
                self._own = _offered_server()(self._folder)
            return str(await asyncio.to_thread(self._own.start))

    async def stop(self) -> None:
        """Stop what was started, and leave a server that was named as it was found."""
        if self._own is not None:
            await asyncio.to_thread(self._own.halt)
        if self._named is not None:
            await drop_unused(self._named)


class PostgresTarget(EmbeddingTarget):
    """A target whose data are in the schema of its workspace, on the server that its factory knows."""

    server: str | None = None

    def __init__(self, embedders: Embedders, servers: PostgresServers) -> None:
        super().__init__(embedders)
        self._servers = servers

    async def schema_address(self, env: Environment) -> str:
        """Prepare the schema, and return the address of the server for a client that is to see it."""
        url = await self._servers.url(env)
        self.server = await prepare(url, env.workspace)
        return _address_within(url, schema_of(env.workspace))


class PostgresFactory(EmbeddingFactory):
    """Makes targets on Postgres; MEMSTORY_POSTGRES names the server."""

    adapter: ClassVar[type[PostgresTarget]]
    _servers: PostgresServers

    async def start(self, folder: Path) -> None:
        self._servers = PostgresServers(folder)

    def target(self) -> Target:
        return self.adapter(self._embedders, self._servers)

    async def stop(self) -> None:
        await self._servers.stop()
        await super().stop()


def schema_of(workspace: str) -> str:
    """Return the name of the schema of `workspace`: the same whenever it is opened again."""
    return f"{_PREFIX}{blake2b(workspace.encode(), digest_size=12).hexdigest()}"


def _address_within(url: str, schema: str) -> str:
    """Return the address of a server for a client that is to see `schema`, and the one in which extensions are."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415  (a vendor: only where it was chosen)

    return make_conninfo(url, options=f"-c search_path={schema},public")


async def prepare(url: str, workspace: str) -> str:
    """Make the schema of `workspace` and the extension `vector` where they are missing; return what the server is.

    Raises:
        SetupError: the server does not answer, or lacks something.
    """
    from psycopg import Error, sql  # noqa: PLC0415  (a vendor: only where it was chosen)

    schema = sql.Identifier(schema_of(workspace))
    try:
        async with await _connect(url) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            owner = sql.Literal(owner_of(workspace))
            await connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, owner))
            asked = await connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            (pgvector,) = await asked.fetchone() or ("of an unknown version",)
            return f"Postgres {connection.info.parameter_status('server_version')}, pgvector {pgvector}"
    except Error as error:
        # Without the address, which may hold a password.
        raise SetupError(
            f"the Postgres server of {VARIABLE} or of the option '{OPTION}' cannot be used: {str(error).strip()}. "
            "It must answer, have pgvector, and allow a schema to be made."
        ) from error


@contextmanager
def data_refusals() -> Iterator[None]:
    """Refuse what Postgres cannot hold, such as a text with a NUL, in its own words."""
    from psycopg import DataError  # noqa: PLC0415  (a vendor: only where it was chosen)

    try:
        yield
    except DataError as error:
        raise Refused(str(error).splitlines()[0]) from error


async def drop_unused(url: str) -> None:
    """Drop the schemas of this machine's workspaces that are gone: nobody opens them again."""
    from psycopg import sql  # noqa: PLC0415  (a vendor: only where it was chosen)

    async with await _connect(url) as connection:
        asked = await connection.execute(
            "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE starts_with(nspname, %s)",
            [_PREFIX],
        )
        for name, owner in await asked.fetchall():
            if is_gone(owner or ""):
                await connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


async def _connect(url: str) -> AsyncConnection:
    from psycopg import AsyncConnection  # noqa: PLC0415  (a vendor: only where it was chosen)

    return await AsyncConnection.connect(url)


def _offered_server() -> Any:
    for entry in entry_points(group=GROUP):
        return entry.load()
    raise SetupError(f"there is no Postgres server with pgvector: set {VARIABLE}=postgresql://user@host/database")


_COLUMNS: Final = ("id", "user_name", "session", "kind", "key", "created_at", "place", "text", "metadata")
_FIELDS: Final = ("id", "user", *_COLUMNS[2:])
_READ: Final = f"id::text, {', '.join(_COLUMNS[1:])}"
_TABLE: Final = """CREATE TABLE IF NOT EXISTS memories (
    id uuid PRIMARY KEY, user_name text NOT NULL, session text, kind text, key text, created_at text NOT NULL,
    place bigint NOT NULL, text text NOT NULL, metadata jsonb NOT NULL, vector vector({size}) NOT NULL)"""
_WRITE: Final = f"""INSERT INTO memories ({", ".join(_COLUMNS)}, vector)
    VALUES ({", ".join("%s" for _ in _COLUMNS)}, %s) ON CONFLICT (id) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in (*_COLUMNS[1:], "vector"))}"""  # noqa: S608  (our own words)


class PgvectorTarget(PostgresTarget, VectorRowsTarget):
    """One connection; every write is a transaction."""

    capabilities = VECTORS | {"add.batch_atomic", "search.where", f"option.{OPTION}"}
    name = "pgvector"
    _connection: Connection
    _address: str

    async def open(self, env: Environment, clock: Clock) -> None:
        self._address = await self.schema_address(env)
        await super().open(env, clock)

    def connect(self, env: Environment) -> None:
        import psycopg  # noqa: PLC0415  (a vendor: only where it was chosen)

        self._connection = psycopg.connect(self._address, autocommit=True)
        self._connection.execute(_TABLE.format(size=self.length))
        self._connection.execute("CREATE INDEX IF NOT EXISTS memories_of ON memories (user_name)")

    def disconnect(self) -> None:
        self._connection.close()

    def store_name(self) -> str:
        return str(self.server)

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        values = [
            (*(getattr(row, name) for name in _FIELDS[:-1]), json.dumps(dict(row.metadata)), _vector(row.vector))
            for row in rows
        ]
        with data_refusals(), self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(_WRITE, values)
        return ()

    def find(self, query: RowQuery) -> list[Row]:
        condition, values = _condition(query)
        return [_row(found) for found in self._select(f"SELECT {_READ} FROM memories WHERE {condition}", values)]  # noqa: S608  (our own words)

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        condition, values = _condition(query)
        # Exact: without an index on vectors, Postgres compares all rows of the user.
        sql = f"""SELECT {_READ}, 1 - (vector <=> %s::vector) FROM memories WHERE {condition}
                  ORDER BY vector <=> %s::vector, place LIMIT %s"""  # noqa: S608  (our own words)
        vector = _vector(query.vector)
        return [
            (_row(found[:-1]), found[-1]) for found in self._select(sql, [vector, *values, vector, max(count or 0, 0)])
        ]

    def remove(self, rows: Sequence[Row]) -> None:
        self._connection.execute("DELETE FROM memories WHERE id = ANY(%s::uuid[])", [[row.id for row in rows]])

    def _select(self, sql: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        from psycopg import DataError  # noqa: PLC0415  (a vendor: only where it was chosen)

        try:
            return self._connection.execute(sql, values).fetchall()
        except DataError:
            return []  # an id or a name that Postgres cannot hold is that of no row


class PgvectorFactory(PostgresFactory):
    """Postgres with pgvector, with the embedder that the reference uses too; MEMSTORY_POSTGRES names the server."""

    name: ClassVar[str] = "pgvector"
    adapter = PgvectorTarget


def _condition(query: RowQuery) -> tuple[str, list[Any]]:
    equal = {"user_name": query.user, "id::text": query.id, "key": query.key, "session": query.session}
    parts: list[tuple[str, list[Any]]] = [
        (f"{name} = %s", [value]) for name, value in equal.items() if value is not None
    ]
    if query.kinds:
        parts.append(("kind = ANY(%s)", [list(query.kinds)]))
    # Equal, and of the same type; `@>` alone would also find a list that holds the value.
    parts += [("metadata -> %s = %s::jsonb", [name, json.dumps(value)]) for name, value in query.where.items()]
    return " AND ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def _vector(vector: Sequence[float]) -> str:
    return f"[{','.join(map(str, vector))}]"


def _row(found: Sequence[Any]) -> Row:
    fields: Mapping[str, Any] = dict(zip(_FIELDS, found, strict=True))
    return Row(**fields)
