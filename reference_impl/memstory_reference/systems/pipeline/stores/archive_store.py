"""Sessions that are to be compressed, and the one transaction that puts a summary in their place."""

from __future__ import annotations

from collections.abc import Sequence

from memstory_reference.storage.sql_database import SqlDatabase
from memstory_reference.systems.pipeline.chunk import MemoryChunk
from memstory_reference.systems.pipeline.ingest.planning import Insertion
from memstory_reference.systems.pipeline.stores.changes_store import TableWriter
from memstory_reference.systems.pipeline.stores.rows_store import sound_memories
from memstory_reference.systems.pipeline.stores.tables_store import MEMORY_COLUMNS


class ArchiveStore:
    """Blocking; knows sessions of uncompressed episodic memories."""

    def __init__(self, database: SqlDatabase, rows: TableWriter) -> None:
        self._db = database
        self._rows = rows

    def sessions(self, owner: str) -> list[str]:
        """Return the sessions that have uncompressed episodic memories, the oldest first."""
        rows = self._db.execute(
            "SELECT session FROM memories WHERE owner = ? AND kind = 'episodic' AND compressed = 0 "
            "GROUP BY session ORDER BY min(created_at), session",
            (owner,),
        )
        return [row["session"] for row in rows]

    def episodes(self, owner: str, session: str) -> list[tuple[MemoryChunk, str]]:
        """Return the uncompressed episodic memories of a session in the order of time, each with its hash."""
        sql = (
            f"SELECT {MEMORY_COLUMNS} FROM memories WHERE owner = ? AND kind = 'episodic' AND compressed = 0 "  # noqa: S608
            "AND session = ? ORDER BY created_at, row"
        )
        return list(sound_memories(self._db, sql, (owner, session)))

    def archive(self, summary: Insertion, originals: Sequence[tuple[MemoryChunk, str]]) -> bool:
        """Store a summary and flag what it was made of, at once; False if any of that has changed meanwhile."""
        owner = summary.memory.user_id
        with self._rows.alone(owner):
            for memory, content_hash in originals:
                same = self._db.execute(
                    "SELECT 1 FROM memories WHERE owner = ? AND id = ? AND hash = ? AND compressed = 0",
                    (owner, memory.id, content_hash),
                ).fetchone()
                if same is None:
                    return False
            self._rows.insert(owner, [summary])
            flagged = [(summary.memory.id, owner, memory.id) for memory, _ in originals]
            self._db.executemany("UPDATE memories SET compressed = 1, summary = ? WHERE owner = ? AND id = ?", flagged)
            self._rows.memories.note_changes(memory.id for memory, _ in originals)
        return True
