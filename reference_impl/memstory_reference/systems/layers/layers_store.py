"""The layers' store, on SQLite (a file, or memory alone: C-24, CF-6) and Postgres; one suite of tests holds for both.

Rows are in namespaces (owner, layer). Searches, `alatest` and counts of what is retrieved see active rows alone. What
is deleted is overwritten, where that is in our hands: a person who deletes a memory wants it gone.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory.contract.values import Tree
from memstory_reference.storage.held_rows import Change, HeldOwners, best_by_tokens
from memstory_reference.storage.sql_database import EVERY, Database, SqlDatabase, SqlRow, batches_of_values, checksum
from memstory_reference.storage.vector_matrix import VectorMatrix, normalized_or_none, unit_vector
from memstory_reference.systems.layers.identity import iso_now, microseconds
from memstory_reference.systems.layers.records import (
    MAX_TURNS,
    Candidate,
    Decision,
    Fact,
    Layer,
    MemoryRecord,
    Rule,
    SessionMemoryBuffer,
    SpokenTurn,
    Standing,
    content_data,
    content_of,
    text_of,
)
from memstory_reference.systems.layers.tables_store import (
    COLUMNS,
    SCHEMA,
    SCHEMA_VERSION,
    WRITTEN,
    entry_of,
    moment_of,
    record_of,
    values_of,
)
from memstory_reference.text.words import token_set

LOG = logging.getLogger(__name__)
ACTIVE: Sequence[Standing] = (Standing.ACTIVE,)
_HALF = re.compile("[\ud800-\udfff]")
_UPDATE = (
    "UPDATE records SET content = ?, created_at = ?, updated_at = ?, session = ?, count = ?, standing = ?, "
    "superseded_by = ?, vector = ?, checksum = ? WHERE namespace = ? AND id = ?"
)
P = ParamSpec("P")
T = TypeVar("T")


class ScoredRow(NamedTuple):
    """A row that a search found: its moment of making, in microseconds; `score` is the cosine or the token recall.

    Most of what a search finds is never shown: `get` reads those that are. It leaves a damaged row out, the search may
    name it.
    """

    id: str
    moment: int
    score: float


@dataclass(frozen=True, slots=True)
class LayersRows:
    """Reads and writes by one database, and knows what several hold in memory. Blocking; one thread at a time."""

    database: SqlDatabase
    _held: HeldOwners

    def session_key(self) -> bytes:
        """Return the secret of this store, which is made when it is first asked for."""
        self.database.execute(
            "INSERT INTO about VALUES ('session_key', ?) ON CONFLICT DO NOTHING", (secrets.token_hex(32),)
        )
        (value,) = self.database.execute("SELECT value FROM about WHERE name = 'session_key'").fetchone()
        try:
            return bytes.fromhex(value)
        except ValueError as error:
            raise UnavailableError(
                f"{self.database.place}: the key that names the sessions of this store is damaged; restore a backup"
            ) from error

    def put(self, records: Iterable[MemoryRecord], buffer: SessionMemoryBuffer | None = None) -> None:
        """Write all rows and the session they come from, or none, also if `records` fails, or the process dies."""
        every = list(records)
        with self._alone({record.owner for record in every} | ({buffer.owner} if buffer else set())) as changes:
            self._put(every, changes)
            if buffer is not None:
                self._write_session(buffer)

    def end(self, owner: str, session: str, records: Iterable[MemoryRecord]) -> bool:
        """Take a session off and write what it leaves, both or neither; False, with nothing written, if it is over."""
        every = list(records)
        with self._alone({owner, *(record.owner for record in every)}) as changes:
            if not self._remove_session(owner, session):
                return False
            self._put(every, changes)
        return True

    def save_session(self, buffer: SessionMemoryBuffer, *, rewrite: bool = False) -> None:
        """Write a session; turns that are stored and that it does not hold stay.

        Of stored turns only `extracted` is written; with `rewrite` all turns are those of the buffer, word for word.
        """
        with self.database.transaction(buffer.owner):
            if rewrite:
                key = (buffer.owner, buffer.session)
                self.database.execute("DELETE FROM turns WHERE owner = ? AND session = ?", key)
            self._write_session(buffer)
        if rewrite:
            self.database.forget_log()

    def _write_session(self, buffer: SessionMemoryBuffer) -> None:
        """Write a session, and of its turns those that are new or were looked at, in the caller's transaction."""
        key = (buffer.owner, buffer.session)
        self.database.execute(
            "INSERT INTO sessions (owner, session, started_at, last_at, data) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (owner, session) DO UPDATE SET started_at = excluded.started_at, "
            "last_at = excluded.last_at, data = excluded.data",
            (*key, *_session_columns(buffer)),
        )
        first = buffer.turns[0].number if buffer.turns else 0
        found = self.database.execute(
            "SELECT number, extracted FROM turns WHERE owner = ? AND session = ? AND number >= ?", (*key, first)
        )
        stored = {row["number"]: bool(row["extracted"]) for row in found}
        new = [turn for turn in buffer.turns if turn.number not in stored]
        self.database.executemany(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?)", [(*key, *_turn_columns(turn)) for turn in new]
        )
        changed = [turn for turn in buffer.turns if stored.get(turn.number, turn.extracted) != turn.extracted]
        self.database.executemany(
            "UPDATE turns SET extracted = ? WHERE owner = ? AND session = ? AND number = ?",
            [(turn.extracted, *key, turn.number) for turn in changed],
        )
        self.database.execute(
            "DELETE FROM turns WHERE owner = ? AND session = ? AND number <= ? AND extracted = 1",
            (*key, buffer.turn_count - MAX_TURNS),
        )

    def load_session(self, owner: str, session: str, last: int | None = None) -> SessionMemoryBuffer | None:
        """Return an active session with its `last` turns, or all of them."""
        key = (owner, session)
        rows = self.database.rows("SELECT * FROM sessions WHERE owner = ? AND session = ?", key)
        if not rows:
            return None
        found = self.database.rows(
            "SELECT number, extracted, data, checksum FROM turns WHERE owner = ? AND session = ? "
            "ORDER BY number DESC LIMIT ?",
            (*key, EVERY if last is None else last),
        )
        turns = [turn for one in found if (turn := _turn(one)) is not None]
        return _buffer(rows[0], turns[::-1])

    def active_sessions(self, owner: str | None = None) -> list[SessionMemoryBuffer]:
        """Return the active sessions of an owner, or of all, without their turns, the longest silent first."""
        condition, values = ("", ()) if owner is None else ("WHERE owner = ?", (owner,))
        rows = self.database.rows(f"SELECT * FROM sessions {condition} ORDER BY last_at, owner, session", values)  # noqa: S608
        return [buffer for row in rows if (buffer := _buffer(row, [])) is not None]

    def forget_sessions(self, owner: str) -> int:
        """Drop an owner's active sessions with all that was held; return how many there were."""
        with self.database.transaction(owner):
            gone = self._remove_session(owner)
        if gone:
            self.database.forget_log()
        return gone

    def _remove_session(self, owner: str, session: str | None = None) -> int:
        """Take a session off, or all of an owner; return how many there were. In the caller's transaction."""
        which = (owner,) if session is None else (owner, session)
        condition = "owner = ?" if session is None else "owner = ? AND session = ?"
        self.database.execute(f"DELETE FROM turns WHERE {condition}", which)  # noqa: S608  (one of two fixed texts)
        return int(self.database.execute(f"DELETE FROM sessions WHERE {condition}", which).rowcount)  # noqa: S608

    def get(self, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """Return the owner's rows that exist, whatever their standing, in the order of `ids`."""
        names = self._namespaces(owner)
        found = {record.id: record for record in self._whole(owner, names, self._by_ids(names, ids))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def list_records(
        self,
        owner: str,
        layers: Sequence[Layer] = tuple(Layer),
        standings: Sequence[Standing] = ACTIVE,
        limit: int | None = None,
    ) -> list[MemoryRecord]:
        """Return rows, newest first, ties by id."""
        names = self._namespaces(owner, layers)
        condition = f"standing IN ({_marks(standings)}) ORDER BY created_at DESC, id LIMIT ?"
        values = (*map(str, standings), EVERY if limit is None else limit)
        return self._whole(owner, names, self._rows(names, condition, values))

    def nearest(
        self, owner: str, layer: Layer, vector: NDArray[np.float32], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows nearest by cosine, exactly: best first, ties by newer, then id; rows without vector are out.

        `since` leaves out what was created before it.
        """
        query = normalized_or_none(vector)
        if query is None:
            return []
        # The version first: what is written in between is then read once more.
        version = self._version(owner)
        return self._held.search(
            owner,
            layer,
            version,
            read=lambda: self._matrix(owner, layer),
            by=lambda matrix: [
                ScoredRow(one, matrix.moment(one), score)
                for one, score in matrix.nearest(query, limit, since=microseconds(since) if since else None)
            ],
        )

    def by_tokens(
        self, owner: str, layer: Layer, tokens: AbstractSet[str], limit: int, since: datetime | None = None
    ) -> list[ScoredRow]:
        """Return the rows by their share of `tokens`, best first, ties by newer, then id; a row with none is out."""
        found = self.database.rows(
            "SELECT number, version FROM namespaces AS n LEFT JOIN versions AS v ON v.owner = n.owner "
            "WHERE n.owner = ? AND n.layer = ?",
            (owner, str(layer)),
        )
        entries = sorted(map(self._entry, tokens))
        if not found or not entries:
            return []
        ((number, version),) = found
        lists = self._held.lists(owner, layer, version, entries, read=lambda missing: self._postings(number, missing))
        if not any(map(len, lists)):
            return []
        # A stable sort merges lists that are in order each; it takes a fifth of the time.
        every = np.sort(np.concatenate(lists), kind="stable")
        starts = np.append(0, np.flatnonzero(every[1:] != every[:-1]) + 1)
        numbers, held = every[starts], np.diff(starts, append=len(every))
        # With a date it is not known yet which rows count.
        numbers, held = best_by_tokens(numbers, held, limit if since is None else None)
        share = dict(zip(numbers.tolist(), held.tolist(), strict=True))
        scored = [
            ScoredRow(identifier, moment, share[row] / len(tokens))
            for row, identifier, moment in self._by_numbers(number, list(share), since)
        ]
        return best_first(scored)[:limit]

    def counts(self, owner: str) -> dict[tuple[Layer, Standing], int]:
        """Count an owner's rows; a missing pair is 0."""
        names = self._namespaces(owner, list(Layer))
        condition = f"standing IN ({_marks(list(Standing))}) GROUP BY namespace, standing"
        rows = self._rows(names, condition, list(map(str, Standing)), columns="namespace, standing, count(*)")
        return {(Layer(names[number]), Standing(standing)): count for number, standing, count in rows}

    def without_vector(self, owner: str, limit: int) -> list[MemoryRecord]:
        """Return active rows that were written while there was no embedding, oldest first."""
        names = self._namespaces(owner)
        condition = "standing = 'active' AND vector IS NULL ORDER BY created_at, id LIMIT ?"
        return self._whole(owner, names, self._rows(names, condition, (limit,)))

    def damaged_ids(self, owner: str) -> list[str]:
        """Return the ids of rows that were changed outside memstory: no read gives them, a delete removes them."""
        names = self._namespaces(owner)
        rows = self._rows(names, "1 = 1 ORDER BY row")
        return [row["id"] for row in rows if self._record(row, owner, names[row["namespace"]]) is None]

    def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Delete rows for good, with every trace in the indexes; return the ids that existed, in the order of `ids`."""
        with self._alone({owner}) as changes:
            names = self._namespaces(owner)
            rows = self._by_ids(names, ids)
            for row in rows:
                layer = names[row["namespace"]]
                gone = self._unindex(row, self._record(row, owner, layer))
                changes.append((owner, Change(part=layer, row=row["row"], id=row["id"], gone=gone)))
            self.database.executemany(
                "DELETE FROM records WHERE namespace = ? AND row = ?", [(row["namespace"], row["row"]) for row in rows]
            )
        if rows:
            self.database.forget_log()
        found = {row["id"] for row in rows}
        return [one for one in dict.fromkeys(ids) if one in found]

    def delete_owner(self, owner: str) -> int:
        """Delete all rows of an owner, and the switch; return how many rows there were."""
        gone = 0
        with self.database.transaction(owner):
            for number in self._namespaces(owner):
                gone += self.database.execute("DELETE FROM records WHERE namespace = ?", (number,)).rowcount
                self.database.execute("DELETE FROM tokens WHERE namespace = ?", (number,))
            for table in ("namespaces", "versions", "recall_off"):
                self.database.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608  (three names)
        self._held.drop(owner)
        if gone:
            self.database.forget_log()
        return gone

    def set_recall(self, owner: str, *, on: bool) -> None:
        """Keep whether an owner's memory is read, until it is switched again or the owner forgotten."""
        insert = "INSERT INTO recall_off VALUES (?) ON CONFLICT DO NOTHING"
        self.database.execute("DELETE FROM recall_off WHERE owner = ?" if on else insert, (owner,))

    def recall(self, owner: str) -> bool:
        """Say whether an owner's memory is read: yes, unless it was switched off."""
        return self.database.execute("SELECT 1 FROM recall_off WHERE owner = ?", (owner,)).fetchone() is None

    @contextmanager
    def _alone(self, owners: AbstractSet[str]) -> Iterator[list[tuple[str, Change]]]:
        """Read and write, all or nothing, while nobody else writes for these owners; what was changed is followed."""
        changes = list[tuple[str, Change]]()
        with self.database.transaction(*owners):
            before = {owner: self._version(owner) for owner in owners}
            yield changes
            # Drawn and not counted: a number would come again once an owner was forgotten.
            drawn = {owner: secrets.token_hex(8) for owner, _ in changes}
            self.database.executemany(
                "INSERT INTO versions VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET version = excluded.version",
                list(drawn.items()),
            )
        for owner, version in drawn.items():
            own = [change for name, change in changes if name == owner]
            self._held.follow(owner, before[owner], version, own)

    def _put(self, records: Sequence[MemoryRecord], changes: list[tuple[str, Change]]) -> None:
        # Under one id the later wins, but may keep the vector of the earlier.
        latest = dict[tuple[str, Layer, str], MemoryRecord]()
        for record in records:
            key = (record.owner, record.layer, record.id)
            earlier = latest.get(key)
            has_vector = normalized_or_none(record.vector) is not None
            if earlier is None or has_vector or text_of(earlier.content) != text_of(record.content):
                latest[key] = record
            else:
                latest[key] = replace(record, vector=earlier.vector)
        for owner, layer in dict.fromkeys((owner, layer) for owner, layer, _ in latest):
            own = [record for key, record in latest.items() if key[:2] == (owner, layer)]
            self._write(owner, layer, own, changes)

    def _write(
        self, owner: str, layer: Layer, records: Sequence[MemoryRecord], changes: list[tuple[str, Change]]
    ) -> None:
        namespace = self._namespace(owner, layer)
        columns = f"{COLUMNS}, vector"
        old = {row["id"]: row for row in self._in_namespace(namespace, columns, "id", [one.id for one in records])}
        was = {one: self._record(row, owner, layer) for one, row in old.items()}
        vectors = dict[str, bytes | None]()
        for record in records:
            vector, known = normalized_or_none(record.vector), was.get(record.id)
            is_kept = vector is None and known is not None and text_of(known.content) == text_of(record.content)
            vectors[record.id] = old[record.id]["vector"] if is_kept else None if vector is None else vector.tobytes()
        rows = {record.id: values_of(record, namespace, vectors[record.id]) for record in records}
        new = [one for one in rows if one not in old]
        self.database.insert("records", WRITTEN, [rows[one] for one in new])
        self.database.executemany(_UPDATE, [(*rows[one][2:], namespace, one) for one in rows if one in old])
        numbers = {
            row["id"]: row["row"] for row in (*old.values(), *self._in_namespace(namespace, "id, row", "id", new))
        }
        written = list[tuple[int, str, int]]()
        for record in records:
            row = numbers[record.id]
            tokens = self._tokens(record)
            known = was.get(record.id)
            gone: AbstractSet[str] | None = frozenset()
            if record.id in old:
                gone = self._unindex(old[record.id], known, kept=tokens)
            fresh = tokens - self._tokens(known) if known is not None else tokens
            written += [(namespace, token, row) for token in sorted(fresh)]
            change = Change(
                part=layer,
                row=row,
                id=record.id,
                moment=microseconds(record.created_at),
                vector=unit_vector(vectors[record.id]) if record.is_active else None,
                gone=gone,
                fresh=fresh,
            )
            changes.append((owner, change))
        self.database.insert("tokens", "namespace, token, row", written)

    def _unindex(
        self, row: SqlRow, known: MemoryRecord | None, kept: AbstractSet[str] = frozenset()
    ) -> AbstractSet[str] | None:
        """Take a row's tokens out but for those that are `kept`; return them, None if it is damaged."""
        if known is None:
            # Its tokens are those of another text: found by the row's number, which takes longer.
            self.database.execute("DELETE FROM tokens WHERE namespace = ? AND row = ?", (row["namespace"], row["row"]))
            return None
        gone = self._tokens(known) - kept
        self.database.executemany(
            "DELETE FROM tokens WHERE namespace = ? AND token = ? AND row = ?",
            [(row["namespace"], token, row["row"]) for token in gone],
        )
        return gone

    def _tokens(self, record: MemoryRecord) -> AbstractSet[str]:
        """Return what finds a row by its words: nothing does, if it is not active."""
        return set(map(self._entry, token_set(text_of(record.content)))) if record.is_active else frozenset()

    def _entry(self, token: str) -> str:
        return entry_of(token) if self.database.is_shared else token

    def _matrix(self, owner: str, layer: Layer) -> VectorMatrix:
        matrix = VectorMatrix()
        condition = "standing = 'active' AND vector IS NOT NULL"
        for identifier, blob, created_at in self._rows(
            self._namespaces(owner, [layer]), condition, columns="id, vector, created_at"
        ):
            moment, vector = moment_of(created_at), unit_vector(blob)
            # None if it is damaged: what was written has length 1.
            if moment is not None and vector is not None and isinstance(identifier, str):
                matrix.put(identifier, vector, moment)
        return matrix

    def _postings(self, namespace: int, tokens: Sequence[str]) -> dict[str, NDArray[np.int64]]:
        """Return the numbers of the rows that hold each token, in order."""
        found = dict.fromkeys(tokens, np.zeros(0, np.int64))
        rows = self._in_namespace(namespace, "token, row", "token", tokens, table="tokens", order="ORDER BY token, row")
        for token, own in groupby(rows, key=lambda row: row[0]):
            found[token] = np.array([number for _, number in own], np.int64)
        return found

    def _by_numbers(self, namespace: int, rows: Sequence[int], since: datetime | None) -> list[tuple[int, str, int]]:
        """Return the number, the id and the moment in microseconds of rows."""
        found, least = list[tuple[int, str, int]](), microseconds(since) if since else None
        # The sign keeps SQLite from reading all rows of the namespace for a list of numbers.
        within = "namespace = ?" if self.database.is_shared else "+namespace = ?"
        for marks, part in batches_of_values(rows):
            sql = f"SELECT row, id, created_at FROM records WHERE {within} AND row IN ({marks})"  # noqa: S608
            found += [
                (row, identifier, moment)
                for row, identifier, text in self.database.rows(sql, (namespace, *part))
                if isinstance(identifier, str) and (moment := moment_of(text)) is not None
                if least is None or moment >= least
            ]
        return found

    def _by_ids(self, names: Mapping[int, str], ids: Sequence[str]) -> list[SqlRow]:
        # Nothing has an id that no text can be.
        parts = batches_of_values([one for one in ids if not _HALF.search(one)])
        return [row for marks, part in parts for row in self._rows(names, f"id IN ({marks})", part)]

    def _rows(
        self, names: Mapping[int, str], condition: str, values: Sequence[object] = (), *, columns: str = COLUMNS
    ) -> Sequence[SqlRow]:
        sql = f"SELECT {columns} FROM records WHERE namespace IN ({_marks(names)}) AND {condition}"  # noqa: S608
        return self.database.rows(sql, (*names, *values)) if names else []

    def _in_namespace(
        self,
        namespace: int,
        columns: str,
        key: str,
        values: Sequence[object],
        *,
        table: str = "records",
        order: str = "",
    ) -> list[SqlRow]:
        return [
            row
            for marks, part in batches_of_values(values)
            for row in self.database.rows(
                f"SELECT {columns} FROM {table} WHERE namespace = ? AND {key} IN ({marks}) {order}",  # noqa: S608
                (namespace, *part),
            )
        ]

    def _whole(self, owner: str, names: Mapping[int, str], rows: Sequence[SqlRow]) -> list[MemoryRecord]:
        found = (self._record(row, owner, names[row["namespace"]]) for row in rows)
        return [record for record in found if record is not None]

    def _record(self, row: SqlRow, owner: str, layer: str) -> MemoryRecord | None:
        """Return a row's record; None, and a line in the log, if it was changed outside memstory."""
        try:
            return record_of(row, owner, Layer(layer))
        except (ValueError, TypeError) as error:
            advice = "Restore a backup, or delete it by its id"
            self.database.leave_out(f"record {row['id']}", error, advice, (owner, row["id"]))
            return None

    def _version(self, owner: str) -> object:
        row = self.database.execute("SELECT version FROM versions WHERE owner = ?", (owner,)).fetchone()
        return row and row["version"]

    def _namespaces(self, owner: str, layers: Sequence[str] | None = None) -> Mapping[int, str]:
        """Return the layers of an owner by their numbers."""
        rows = self.database.rows("SELECT number, layer FROM namespaces WHERE owner = ?", (owner,))
        return {number: layer for number, layer in rows if layers is None or layer in layers}

    def _namespace(self, owner: str, layer: Layer) -> int:
        found = self._namespaces(owner, [layer])
        if found:
            return next(iter(found))
        row = self.database.execute(
            "INSERT INTO namespaces (owner, layer) VALUES (?, ?) RETURNING number", (owner, str(layer))
        ).fetchone()
        return int(row["number"])


def by_rows(
    work: Callable[Concatenate[LayersRows, P], T],
) -> Callable[Concatenate[LayersStore, P], Coroutine[Any, Any, T]]:
    """Return what does `work` by the rows of a store, in the thread of its database."""

    @wraps(work)
    async def run(store: LayersStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.arun(work, *args, **kwargs)

    return run


class LayersStore:
    """The three layers of many owners, and the buffers of sessions that have not ended, so that an end is atomic.

    A put replaces the row of the same owner, layer and id; where it brings no vector and the text is unchanged, the row
    keeps the vector that it has. A store that does not answer raises `UnavailableError`, and has then written nothing.
    What a task does under a lock fails once the lock is lost, instead of meeting somebody else's.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._db = database
        self._held = HeldOwners()
        self._key: bytes | None = None

    aput_batch = by_rows(LayersRows.put)
    aget = by_rows(LayersRows.get)
    asearch_similar = by_rows(LayersRows.nearest)
    asearch_tokens = by_rows(LayersRows.by_tokens)
    acounts = by_rows(LayersRows.counts)
    awithout_vector = by_rows(LayersRows.without_vector)
    adamaged_ids = by_rows(LayersRows.damaged_ids)
    adelete = by_rows(LayersRows.delete)
    adelete_owner = by_rows(LayersRows.delete_owner)
    aset_recall = by_rows(LayersRows.set_recall)
    arecall = by_rows(LayersRows.recall)
    aload = by_rows(LayersRows.load_session)
    asave = by_rows(LayersRows.save_session)
    aactive = by_rows(LayersRows.active_sessions)
    aend = by_rows(LayersRows.end)
    aforget_sessions = by_rows(LayersRows.forget_sessions)

    async def aput(self, record: MemoryRecord) -> None:
        """Write one row."""
        await self.aput_batch([record])

    async def alist(
        self, owner: str, layer: Layer | None = None, standings: Sequence[Standing] = ACTIVE, limit: int | None = None
    ) -> list[MemoryRecord]:
        """Return the rows of a layer, or of all, newest first, ties by id."""
        return await self.arun(LayersRows.list_records, owner, [layer] if layer else list(Layer), standings, limit)

    async def alatest(self, owner: str, layer: Layer) -> MemoryRecord | None:
        """Return the newest row, whatever its age."""
        return next(iter(await self.alist(owner, layer, limit=1)), None)

    async def alost(self) -> int:
        """Return how many rows, of all owners, some read lacks since the store was damaged, as far as is known."""
        return self._db.count_lost("records")

    async def asession_key(self) -> bytes:
        """Return the secret with which this store's sessions are hashed: at least 16 random bytes, made once."""
        if self._key is None:
            self._key = await self.arun(LayersRows.session_key)
        return self._key

    def lock(self, name: str) -> AbstractAsyncContextManager[object]:
        """Hold `name` against everybody who writes to the same store; not to be taken twice by one task."""
        return self._db.hold(name)

    async def aclose(self) -> None:
        """Release the store; closing twice is harmless."""
        await self._db.aclose()

    async def arun(self, work: Callable[Concatenate[LayersRows, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` finds or writes by the rows, which may ask them several things at once.

        It goes by the database of the lock that the task holds, or by one that is lent for this alone.
        """
        return await self._db.run(lambda database: work(LayersRows(database, self._held), *args, **kwargs))


_VERSIONS = """
INSERT INTO versions SELECT owner, hex(randomblob(8)) FROM (SELECT DISTINCT owner FROM namespaces)
    WHERE NOT EXISTS (SELECT 1 FROM versions);
"""
"""In a file of an earlier version owners have none, and each search would read all of their vectors."""


def layers_database(file: Path, *, model: str) -> Database:
    """Open or make the layers' file, or one in memory."""
    return Database(file, schema=f"{SCHEMA}{_VERSIONS}", about={"schema": SCHEMA_VERSION, "model": model})


def best_first(found: Sequence[ScoredRow]) -> list[ScoredRow]:
    """Return rows by their scores, ties by newer, then id."""
    return sorted(found, key=lambda one: (-one.score, -one.moment, one.id))


def _marks(values: Mapping[int, str] | Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _session_columns(buffer: SessionMemoryBuffer) -> tuple[str, str, str]:
    data: dict[str, Tree] = {
        "arc_id": buffer.arc_id,
        "turn_count": buffer.turn_count,
        "held": [
            {
                "id": one.id,
                "layer": str(one.layer),
                "content": content_data(one.content),
                "turns": list(one.turns),
                "decision": str(one.decision),
                "reason": one.reason,
            }
            for one in buffer.held
        ],
        "missed": {str(number): list(lanes) for number, lanes in buffer.missed.items()},
    }
    return iso_now(buffer.started_at), iso_now(buffer.last_at), json.dumps(data)


def _buffer(row: SqlRow, turns: Sequence[SpokenTurn]) -> SessionMemoryBuffer | None:
    try:
        data: dict[str, Tree] = json.loads(row["data"])
        return SessionMemoryBuffer(
            owner=row["owner"],
            session=row["session"],
            arc_id=data["arc_id"],
            started_at=datetime.fromisoformat(row["started_at"]),
            last_at=datetime.fromisoformat(row["last_at"]),
            turn_count=data["turn_count"],
            turns=tuple(turns),
            held=tuple(_candidate(one) for one in data["held"]),
            # A session of an older version has none.
            missed={int(number): tuple(lanes) for number, lanes in data.get("missed", {}).items()},
        )
    except (ValueError, TypeError, KeyError) as error:
        LOG.error("an active session is damaged and begins again: %s", error)  # noqa: TRY400  (the reason says all)
        return None


def _candidate(data: Mapping[str, Tree]) -> Candidate:
    content = content_of(Layer(data["layer"]), data["content"])
    if not isinstance(content, Fact | Rule):
        raise TypeError(f"a candidate is a fact or a rule, not {type(content).__name__}")
    decision = Decision(data["decision"])
    return Candidate(
        id=data["id"], content=content, turns=tuple(data["turns"]), decision=decision, reason=data["reason"]
    )


def _turn_columns(turn: SpokenTurn) -> tuple[object, ...]:
    # Escaped, as a text of SQLite cannot hold half of a character, and what people send can.
    data = json.dumps({"user": turn.user, "assistant": turn.assistant})
    return turn.number, turn.extracted, data, checksum([turn.number, data])


def _turn(row: SqlRow) -> SpokenTurn | None:
    try:
        if row["checksum"] in (None, checksum([row["number"], row["data"]])):
            data: dict[str, Tree] = json.loads(row["data"])
            user, assistant = data["user"], data["assistant"]
            return SpokenTurn(number=row["number"], user=user, assistant=assistant, extracted=bool(row["extracted"]))
    except (ValueError, TypeError, KeyError):
        pass
    LOG.error("turn %s of a session is damaged and left out", row["number"])
    return None
