"""Brings a schema of Postgres up to date: migrations in their order, one process at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from psycopg import AsyncConnection, OperationalError, errors
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier, Literal

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.storage.postgres.connections_store import conninfo, reason_of
from memstory_reference.storage.postgres.place import BESIDE, PostgresPlace
from memstory_reference.storage.postgres.tables import parts_of

LOG = logging.getLogger(__name__)

Connection: TypeAlias = AsyncConnection[TupleRow]

_ONE_AT_A_TIME = 0x6D656D73746F7279
"""The advisory lock of all who migrate in one database."""

OPENING_SECONDS = 60.0
"""How long an opening may wait, be it for another that migrates; its own migrations may take what they take."""

Migrations: TypeAlias = Sequence[str] | Mapping[int, str]
"""What makes the next version of each, or, by the version that is found (0 of none), what makes the newest at once."""

_VERSION = "schema"
MEMORY = "memory"
"""What a schema says of itself: which memory it holds."""
_UNNAMED = "layers"
"""The memory whose schemas did not say so."""
_PASSING = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""What a server says that will answer later."""


async def open_schema(
    place: PostgresPlace, migrations: Migrations, about: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Make or update the schema of `place`; return what it says about itself, to which `about` adds what is missing.

    Raises:
        SetupError: the server refuses this user or database.
        StoreConflictError: a newer program made the schema.
        UnavailableError: nobody answers.
    """
    async with _alone(place) as (connection, limit):
        return await _migrate(connection, place, migrations, about or {}, limit)


async def check_schema(place: PostgresPlace, migrations: Migrations) -> None:
    """Raise InputError if to open the schema of `place` would make or change it."""
    async with _alone(place) as (connection, _):
        rows = await connection.execute(
            "SELECT to_regclass(format('%%I.about', %s::text)) IS NOT NULL", (place.schema,)
        )
        found = await _about(connection) if await rows.fetchone() == (True,) else {}
    if found.get(_VERSION) != str(_newest(migrations)):
        made = f"was made by another version ({found[_VERSION]})" if _VERSION in found else "holds no memory"
        raise InputError(
            f"the schema {place.schema!r} {made}, and to open it would change it. Name another, or open it once by "
            "'memstory-reference memory status'"
        )


def partition_by_owner(table: str, *keys: str) -> str:
    """Return the SQL by which a plain table becomes a partitioned one with the same rows, each owner's side by side.

    It has the `keys`, each of which begins with the owner, and no other index, identity or foreign key.
    """
    # Indexes last: then they have the names that those of the plain table had, and are built at once.
    return f"""
    ALTER TABLE {table} RENAME TO {table}_whole;
    CREATE TABLE {table} (LIKE {table}_whole INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY HASH (owner);
    {parts_of(table)}
    INSERT INTO {table} SELECT * FROM {table}_whole ORDER BY owner;
    DROP TABLE {table}_whole;
    {"".join(f"ALTER TABLE {table} ADD {key};" for key in keys)}
    """  # noqa: S608  (names of our own tables)


async def claim_schema(place: PostgresPlace, owner: str) -> None:
    """Make the schema if need be, and note in the database whose it is, for `drop_unclaimed`."""
    async with _alone(place) as (connection, _):
        schema = Identifier(place.schema)
        await connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        await connection.execute(SQL("COMMENT ON SCHEMA {} IS {}").format(schema, Literal(owner)))


async def drop_unclaimed(place: PostgresPlace, prefix: str, is_gone: Callable[[str], bool]) -> list[str]:
    """Remove the schemas of this prefix whose owner is gone, with those beside them; return their names."""
    async with _alone(place) as (connection, _):
        rows = await connection.execute(
            "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE starts_with(nspname, %s)",
            (prefix,),
        )
        dropped = [str(name) for name, owner in await rows.fetchall() if owner is not None and is_gone(owner)]
    for name in dropped:
        # Each in its own transaction: a server has locks for some hundred schemas at once.
        await drop_schemas(PostgresPlace(url=place.url, schema=name))
    return dropped


async def drop_schemas(place: PostgresPlace) -> None:
    """Remove a schema and those beside it, with all that is in them."""
    async with _alone(place) as (connection, _):
        for one in (place, *(place.sibling(name) for name in BESIDE)):
            await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(one.schema)))


@asynccontextmanager
async def _alone(place: PostgresPlace) -> AsyncIterator[tuple[Connection, asyncio.Timeout]]:
    """Lend a connection in a transaction that nobody else can make or remove schemas beside, and its time limit."""
    try:
        async with (
            asyncio.timeout(OPENING_SECONDS) as limit,
            await AsyncConnection.connect(conninfo(place), autocommit=True) as connection,
            connection.transaction(),
        ):
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
            yield connection, limit
    except TimeoutError as error:
        raise UnavailableError(f"Postgres has not answered for {OPENING_SECONDS:g} seconds") from error
    except errors.InsufficientPrivilege as error:
        raise SetupError(f"Postgres lets this user not do what the store needs: {reason_of(error)}") from error
    except OperationalError as error:
        reason = reason_of(error)
        if "FATAL:" in reason and not any(words in reason for words in _PASSING):
            # The server did answer, and says who or what is wrong: a password, a database, a role.
            raise SetupError(f"Postgres refuses the store's URL: {reason}. Correct the URL") from error
        msg = f"Postgres does not answer: {reason}. Start the server, or correct the store's URL"
        raise UnavailableError(msg) from error


async def _migrate(
    connection: Connection,
    place: PostgresPlace,
    migrations: Migrations,
    about: Mapping[str, str],
    limit: asyncio.Timeout,
) -> dict[str, str]:
    known = await (await connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (place.schema,))).fetchone()
    if known == (False,):
        await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(place.schema)))
    await connection.execute("CREATE TABLE IF NOT EXISTS about (name text PRIMARY KEY, value text NOT NULL)")
    _check_kind(await _about(connection), place, about)
    for name, value in {_VERSION: "0", **about}.items():
        await connection.execute("INSERT INTO about VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, value))
    found = await _about(connection)
    version, newest = int(found[_VERSION]), _newest(migrations)
    if version > newest:
        raise StoreConflictError(
            f"the schema {place.schema!r} has version {version}, this program knows {newest}: "
            "use a newer memstory, or another schema"
        )
    limit.reschedule(None)  # a table that is written anew takes minutes
    for migration in _steps(migrations, version, place):
        await connection.execute(migration)
    if 0 < version < newest:
        versions = (version, newest)
        LOG.warning(
            "the schema %r: taken over from an earlier version of memstory (%d, now %d)", place.schema, *versions
        )
    await connection.execute("UPDATE about SET value = %s WHERE name = %s", (str(newest), _VERSION))
    return found


def _newest(migrations: Migrations) -> int:
    return len(migrations) if isinstance(migrations, Sequence) else max(migrations) + 1


def _steps(migrations: Migrations, version: int, place: PostgresPlace) -> Sequence[str]:
    if isinstance(migrations, Sequence):
        return migrations[version:]
    if version == _newest(migrations):
        return []
    if version not in migrations:
        raise StoreConflictError(
            f"the schema {place.schema!r} has version {version}, this program takes over those of "
            f"{', '.join(map(str, filter(None, migrations)))}: open it with the version of memstory that made it, "
            "or use another schema"
        )
    return [migrations[version]]


def _check_kind(found: Mapping[str, str], place: PostgresPlace, about: Mapping[str, str]) -> None:
    """Raise StoreConflictError where a schema holds another memory than that of `about`."""
    holds, wanted = (one.get(MEMORY, _UNNAMED) for one in (found, about))
    if _VERSION in found and holds != wanted:
        raise StoreConflictError(
            f"the schema {place.schema!r} holds a memory of {holds}, not of {wanted}: name another one by "
            "the parameter schema=NAME of the URL"
        )


async def _about(connection: Connection) -> dict[str, str]:
    rows = await (await connection.execute("SELECT name, value FROM about")).fetchall()
    return {str(name): str(value) for name, value in rows}
