"""The crisis log in a schema of Postgres of its own, so that nothing that reads memory can read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from memstory_reference.systems.layers.audit.crisis_events import ClassifierPath, CrisisLevel, CrisisLogRecord
from memstory_reference.systems.layers.stores.postgres.connections_store import Connections, answering
from memstory_reference.systems.layers.stores.postgres.place import PostgresPlace
from memstory_reference.systems.layers.stores.postgres.schema_store import open_schema

_MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE crisis_log (
        id text COLLATE "C" PRIMARY KEY, owner text NOT NULL, session text NOT NULL, at timestamptz NOT NULL,
        level text NOT NULL, classifier_path text NOT NULL, signals text NOT NULL
    );
    CREATE INDEX by_owner ON crisis_log (owner, at);
    """,
)


class PostgresCrisisLog:
    """A `CrisisLogBackend` that several processes share."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def aappend(self, record: CrisisLogRecord) -> None:
        async with answering(), self._connections.one() as connection:
            await connection.execute(
                "INSERT INTO crisis_log VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (
                    record.id,
                    record.owner,
                    record.session,
                    record.at,
                    str(record.level),
                    str(record.classifier_path),
                    json.dumps(list(record.signals)),
                ),
            )

    async def alist(self, owner: str) -> list[CrisisLogRecord]:
        async with answering(), self._connections.one() as connection:
            rows = await connection.execute(
                "SELECT id, owner, session, at, level, classifier_path, signals FROM crisis_log "
                "WHERE owner = %s ORDER BY at, id",
                (owner,),
            )
            return [_record(*row) for row in await rows.fetchall()]

    async def apurge(self, before: datetime) -> int:
        async with answering(), self._connections.one() as connection:
            return (await connection.execute("DELETE FROM crisis_log WHERE at < %s", (before,))).rowcount

    async def aclose(self) -> None:
        await self._connections.close()


async def open_crisis_log(place: PostgresPlace) -> PostgresCrisisLog:
    """Open the log in `place`; raises as `open_schema` does."""
    connections = Connections(place, size=1)
    await open_schema(connections, place, _MIGRATIONS)
    return PostgresCrisisLog(connections)


def _record(  # noqa: PLR0917  (the row's columns)
    identifier: str, owner: str, session: str, at: datetime, level: str, path: str, signals: str
) -> CrisisLogRecord:
    return CrisisLogRecord(
        id=identifier,
        owner=owner,
        session=session,
        at=at,
        level=CrisisLevel(level),
        classifier_path=ClassifierPath(path),
        signals=tuple(json.loads(signals)),
    )
