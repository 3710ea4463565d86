"""What backends on Postgres share: a server, perhaps not ours alone, and on it a schema for each workspace."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memstory.contract.errors import Refused, SetupError
from memstory.targets.vector_stores.left_over import is_gone, owner_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection

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
                self._own = _offered()(self._folder)
            return str(await asyncio.to_thread(self._own.start))

    async def stop(self) -> None:
        """Stop what was started, and leave a server that was named as it was found."""
        if self._own is not None:
            await asyncio.to_thread(self._own.halt)
        if self._named is not None:
            await drop_unused(self._named)


def schema_of(workspace: str) -> str:
    """Return the name of the schema of `workspace`: the same whenever it is opened again."""
    return f"{_PREFIX}{blake2b(workspace.encode(), digest_size=12).hexdigest()}"


def address_within(url: str, schema: str) -> str:
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
def declining() -> Iterator[None]:
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


def _offered() -> Any:
    for entry in entry_points(group=GROUP):
        return entry.load()
    raise SetupError(f"there is no Postgres server with pgvector: set {VARIABLE}=postgresql://user@host/database")
