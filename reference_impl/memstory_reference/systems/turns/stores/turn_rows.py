"""Rows of a table to turns, turns to rows, and what is ranked of them: the same in SQLite and in Postgres; pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from memstory_reference.storage.sql_database import checksum
from memstory_reference.systems.turns.ranking.pool import BY_ASSISTANT, IS_DATED, IS_FOREIGN
from memstory_reference.systems.turns.stores.columns import Features
from memstory_reference.systems.turns.turn import ASSISTANT, KINDS, Turn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VERSION = 2
"""To be raised with every change of what is ranked of a turn, such as its signs or stems: then a store reads all its
texts again."""

COLUMNS = "number, id, key, kind, speaker, session, said_at, noted_at, text, metadata"
WRITTEN_COLUMNS = ("id", "key", "kind", "speaker", "session", "said_at", "noted_at", "text", "metadata")


class Row(Protocol):
    """A row that is read by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...


def turn_of(row: Row) -> Turn:
    """Return the turn of a row that has `COLUMNS`; ValueError or TypeError of one that memstory has not written so."""
    turn = Turn(
        id=row["id"],
        text=row["text"],
        noted_at=datetime.fromisoformat(row["noted_at"]),
        kind=row["kind"],
        key=row["key"],
        speaker=row["speaker"],
        session=row["session"],
        said_at=row["said_at"],
        metadata={} if row["metadata"] == "{}" else json.loads(row["metadata"]),
    )
    optional = (turn.key, turn.speaker, turn.session)
    if not all(isinstance(one, str) for one in (turn.id, turn.text, *(one for one in optional if one is not None))):
        raise TypeError("a text is none")
    if turn.kind not in KINDS or not isinstance(turn.metadata, dict):
        raise ValueError("its kind or its metadata is none")
    if turn.moment.tzinfo is None or turn.noted_at.tzinfo is None:
        raise ValueError("its moment has no offset")
    return turn


def values_of(turn: Turn) -> Sequence[Any]:
    """Return the values of `WRITTEN_COLUMNS`."""
    return (
        *(turn.id, turn.key, turn.kind, turn.speaker, turn.session, turn.said_at, turn.noted_at.isoformat(), turn.text),
        json.dumps(dict(turn.metadata), ensure_ascii=False),
    )


def seal_of(values: Sequence[Any]) -> str:
    """Return the checksum of the values of `WRITTEN_COLUMNS`, but for the key: that goes over to another turn."""
    return checksum([values[0], *values[2:]])


def features_of(turn: Turn, number: int, words: int) -> Features:
    """Return what is ranked of a turn that has so many words."""
    return Features(
        number=number,
        moment=microseconds(turn.moment),
        kind=turn.kind,
        session=turn.session,
        speaker=turn.speaker,
        signs=IS_DATED * (turn.said_at is not None)
        | BY_ASSISTANT * (turn.role == ASSISTANT)
        | IS_FOREIGN * turn.is_foreign,
        words=words,
    )


def microseconds(moment: datetime) -> int:
    """Return an aware moment as a number: microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
