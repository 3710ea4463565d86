"""Rows of a table to turns and candidates, and turns to rows: the same columns in SQLite and in Postgres; pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.ranking.pool import Candidate
from memstory_reference.systems.turns.stores.store import Written
from memstory_reference.systems.turns.turn import Turn, moment_of

COLUMNS = "number, id, key, kind, speaker, session, said_at, noted_at, text, metadata"
CANDIDATE_COLUMNS = "number, id, session, speaker, said_at, noted_at, text, stems"
WRITTEN_COLUMNS = (
    "id",
    "key",
    "kind",
    "speaker",
    "session",
    "said_at",
    "noted_at",
    "text",
    "metadata",
    "stems",
    "words",
)


class Row(Protocol):
    """A row that is read by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...


def turn_of(row: Row) -> Turn:
    """Return the turn of a row that has `COLUMNS`."""
    return Turn(
        id=row["id"],
        text=row["text"],
        noted_at=datetime.fromisoformat(row["noted_at"]),
        kind=row["kind"],
        key=row["key"],
        speaker=row["speaker"],
        session=row["session"],
        said_at=row["said_at"],
        metadata=json.loads(row["metadata"]),
    )


def candidate_of(
    row: Row, cosine: float, vector: NDArray[np.float32], beside: tuple[int | None, int | None]
) -> Candidate:
    """Return the candidate of a row that has `CANDIDATE_COLUMNS`; `beside` are the turns before and after it."""
    return Candidate(
        id=row["id"],
        place=row["number"],
        before=beside[0],
        after=beside[1],
        session=row["session"],
        speaker=row["speaker"],
        moment=moment_of(row["said_at"] or row["noted_at"]),
        is_dated=row["said_at"] is not None,
        text=row["text"],
        stems=row["stems"].split(),
        cosine=cosine,
        vector=vector,
    )


def values_of(one: Written) -> Sequence[Any]:
    """Return the values of `WRITTEN_COLUMNS`."""
    turn = one.turn
    return (
        *(turn.id, turn.key, turn.kind, turn.speaker, turn.session, turn.said_at, turn.noted_at.isoformat(), turn.text),
        *(json.dumps(dict(turn.metadata), ensure_ascii=False), " ".join(one.stems), len(one.stems)),
    )
