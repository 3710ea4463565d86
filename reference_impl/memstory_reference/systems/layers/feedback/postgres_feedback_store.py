"""Feedback in a schema of Postgres of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from memstory_reference.systems.layers.feedback.session_labels import (
    FeedbackLabel,
    FeedbackSource,
    SessionFeedbackRecord,
)
from memstory_reference.systems.layers.stores.postgres.connections_store import Connections, answering
from memstory_reference.systems.layers.stores.postgres.place import PostgresPlace
from memstory_reference.systems.layers.stores.postgres.schema_store import open_schema

# The comment is kept as JSON: a text of Postgres cannot hold every character that people send.
_MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE session_feedback (
        id text COLLATE "C" PRIMARY KEY, owner text NOT NULL, session text NOT NULL, at timestamptz NOT NULL,
        label text NOT NULL, source text NOT NULL, comment text NOT NULL
    );
    CREATE INDEX by_owner ON session_feedback (owner, at);
    """,
)


class PostgresSessionFeedback:
    """A `SessionFeedbackBackend` that several processes share."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def aappend(self, record: SessionFeedbackRecord) -> None:
        async with answering(), self._connections.one() as connection:
            await connection.execute(
                "INSERT INTO session_feedback VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (
                    record.id,
                    record.owner,
                    record.session,
                    record.at,
                    str(record.label),
                    str(record.source),
                    json.dumps(record.comment),
                ),
            )

    async def alist(self, owner: str) -> list[SessionFeedbackRecord]:
        async with answering(), self._connections.one() as connection:
            rows = await connection.execute(
                "SELECT id, owner, session, at, label, source, comment FROM session_feedback "
                "WHERE owner = %s ORDER BY at, id",
                (owner,),
            )
            return [_record(*row) for row in await rows.fetchall()]

    async def adelete_owner(self, owner: str) -> int:
        async with answering(), self._connections.one() as connection:
            return (await connection.execute("DELETE FROM session_feedback WHERE owner = %s", (owner,))).rowcount

    async def aclose(self) -> None:
        await self._connections.close()


async def open_feedback(place: PostgresPlace) -> PostgresSessionFeedback:
    """Open the feedback in `place`; raises as `open_schema` does."""
    connections = Connections(place, size=1)
    await open_schema(connections, place, _MIGRATIONS)
    return PostgresSessionFeedback(connections)


def _record(  # noqa: PLR0917  (the row's columns)
    identifier: str, owner: str, session: str, at: datetime, label: str, source: str, comment: str
) -> SessionFeedbackRecord:
    return SessionFeedbackRecord(
        id=identifier,
        owner=owner,
        session=session,
        at=at,
        label=FeedbackLabel(label),
        source=FeedbackSource(source),
        comment=json.loads(comment),
    )
