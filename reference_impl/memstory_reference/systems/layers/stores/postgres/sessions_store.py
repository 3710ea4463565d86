"""The active sessions in Postgres: a row a session and a row a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence

from psycopg.rows import TupleRow

from memstory_reference.storage.postgres.connections_store import Connection
from memstory_reference.systems.layers.records.candidates import (
    MAX_TURNS,
    SessionMemoryBuffer,
    SpokenTurn,
    buffer_data,
    buffer_of,
    turn_data,
    turn_of,
)

_SESSIONS = "SELECT owner, session, started_at, last_at, data FROM sessions"


async def save_session(connection: Connection, buffer: SessionMemoryBuffer, *, rewrite: bool) -> None:
    """Write a session, of its turns those that are new or were looked at; with `rewrite` all of them."""
    key = (buffer.owner, buffer.session)
    async with connection.transaction(), connection.cursor() as cursor:
        if rewrite:
            await cursor.execute("DELETE FROM turns WHERE owner = %s AND session = %s", key)
        await cursor.execute(
            "INSERT INTO sessions (owner, session, started_at, last_at, data) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (owner, session) DO UPDATE SET started_at = excluded.started_at, last_at = excluded.last_at, "
            "data = excluded.data",
            (*key, buffer.started_at, buffer.last_at, json.dumps(buffer_data(buffer))),
        )
        first = buffer.turns[0].number if buffer.turns else 0
        await cursor.execute(
            "SELECT number, extracted FROM turns WHERE owner = %s AND session = %s AND number >= %s", (*key, first)
        )
        stored: dict[int, bool] = dict(await cursor.fetchall())
        new = [turn for turn in buffer.turns if turn.number not in stored]
        await cursor.executemany(
            "INSERT INTO turns VALUES (%s, %s, %s, %s, %s)",
            [(*key, turn.number, turn.extracted, json.dumps(turn_data(turn))) for turn in new],
        )
        changed = [turn for turn in buffer.turns if stored.get(turn.number, turn.extracted) != turn.extracted]
        await cursor.executemany(
            "UPDATE turns SET extracted = %s WHERE owner = %s AND session = %s AND number = %s",
            [(turn.extracted, *key, turn.number) for turn in changed],
        )
        await cursor.execute(
            "DELETE FROM turns WHERE owner = %s AND session = %s AND number <= %s AND extracted",
            (*key, buffer.turn_count - MAX_TURNS),
        )


async def load_session(
    connection: Connection, owner: str, session: str, last: int | None
) -> SessionMemoryBuffer | None:
    """Return an active session with its last turns, or all of them."""
    cursor = await connection.execute(f"{_SESSIONS} WHERE owner = %s AND session = %s", (owner, session))
    row = await cursor.fetchone()
    if row is None:
        return None
    found = await connection.execute(
        "SELECT number, extracted, data FROM turns WHERE owner = %s AND session = %s ORDER BY number DESC LIMIT %s",
        (owner, session, last),
    )
    turns = [turn_of(number, json.loads(data), extracted=done) for number, done, data in await found.fetchall()]
    return _buffer(row, turns[::-1])


async def active_sessions(connection: Connection, owner: str | None) -> list[SessionMemoryBuffer]:
    """Return the active sessions of an owner, or of all, without their turns, the longest silent first."""
    cursor = await connection.execute(
        f"{_SESSIONS} WHERE %(owner)s::text IS NULL OR owner = %(owner)s ORDER BY last_at, owner, session",
        {"owner": owner},
    )
    return [_buffer(row, ()) for row in await cursor.fetchall()]


async def remove_session(connection: Connection, owner: str, session: str | None = None) -> int:
    """Take a session off, or all of an owner; return how many there were. In the caller's transaction."""
    condition, values = (
        "owner = %(owner)s AND (%(session)s::text IS NULL OR session = %(session)s)",
        {
            "owner": owner,
            "session": session,
        },
    )
    await connection.execute(f"DELETE FROM turns WHERE {condition}", values)  # noqa: S608  (a fixed text)
    return (await connection.execute(f"DELETE FROM sessions WHERE {condition}", values)).rowcount  # noqa: S608


async def forget_sessions(connection: Connection, owner: str) -> int:
    """Drop an owner's active sessions; return how many there were."""
    async with connection.transaction():
        return await remove_session(connection, owner)


def _buffer(row: TupleRow, turns: Sequence[SpokenTurn]) -> SessionMemoryBuffer:
    owner, session, started_at, last_at, text = row
    return buffer_of(owner, session, started_at, last_at, json.loads(text), turns)
