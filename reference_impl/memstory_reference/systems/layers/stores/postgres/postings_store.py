"""Which rows hold a token, as bitmaps in Postgres: of ten thousand rows a word in all of them takes forty short rows.

An owner's rows are numbered from 0; `part` p of a token has a bit for each of the rows 256 p to 256 p + 255, from the
left. A writer holds the owner's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.postgres.connections_store import Connection
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, text_of
from memstory_reference.text.token_sets import token_set

PART = 256
"""Rows of one bitmap; `bit(256)` in the schema."""

_LONGEST_TOKEN = 64
"""Characters of a token that stand in the index as they are; an entry of a B-tree has at most 2,704 bytes."""

Key: TypeAlias = tuple[int, str, str, int]
"""Owner, layer, token, part."""

_EACH = "unnest(%s::int[], %s::text[], %s::text[], %s::int[], %s::text[]) AS u (owner, layer, token, part, bits)"
_SAME = "p.owner = u.owner AND p.layer = u.layer AND p.token = u.token AND p.part = u.part"
_SET = """
    INSERT INTO postings AS p (owner, layer, token, part, bits)
    SELECT owner, layer, token, part, bits::bit(256) FROM {each}
    ON CONFLICT (owner, layer, token, part) DO UPDATE SET bits = p.bits | excluded.bits
"""
_CLEAR = "UPDATE postings AS p SET bits = p.bits & ~ u.bits::bit(256) FROM {each} WHERE {same}"
_DROP_EMPTY = "DELETE FROM postings AS p USING {each} WHERE {same} AND p.bits = 0::bit(256)"


async def index(connection: Connection, rows: Iterable[tuple[int, int, MemoryRecord]]) -> None:
    """Note the tokens of rows: owner, number and record of each."""
    masks = _masks(rows)
    if masks:
        await connection.execute(_SET.format(each=_EACH), _columns(masks))


async def unindex(connection: Connection, rows: Iterable[tuple[int, int, MemoryRecord]]) -> None:
    """Take rows out; a token that nobody holds any more leaves no trace."""
    masks = _masks(rows)
    if masks:
        for statement in (_CLEAR, _DROP_EMPTY):
            await connection.execute(statement.format(each=_EACH, same=_SAME), _columns(masks))


async def rows_with_tokens(
    connection: Connection, owner: int | None, layer: Layer, tokens: AbstractSet[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the rows of an owner's number that hold any of the tokens, and how many each holds."""
    cursor = await connection.execute(
        "SELECT part, bits::text FROM postings WHERE owner = %s AND layer = %s AND token = ANY(%s)",
        (owner, str(layer), [_entry(token) for token in tokens]),
    )
    found = await cursor.fetchall()
    held = np.zeros((1 + max((part for part, _ in found), default=0), PART), np.int64)
    for part, bits in found:
        held[part] += np.frombuffer(bits.encode("ascii"), np.uint8) - ord("0")
    numbers = np.flatnonzero(held)
    return numbers, held.reshape(-1)[numbers]


def _masks(rows: Iterable[tuple[int, int, MemoryRecord]]) -> dict[Key, int]:
    masks: dict[Key, int] = {}
    for owner, number, record in rows:
        part, place = divmod(number, PART)
        for token in token_set(text_of(record.content)):
            key = (owner, str(record.layer), _entry(token), part)
            masks[key] = masks.get(key, 0) | 1 << (PART - 1 - place)
    return masks


def _columns(masks: Mapping[Key, int]) -> Sequence[Sequence[object]]:
    owners, layers, tokens, parts = zip(*masks, strict=True)
    return [list(owners), list(layers), list(tokens), list(parts), [f"{mask:0{PART}b}" for mask in masks.values()]]


def _entry(token: str) -> str:
    return token if len(token) <= _LONGEST_TOKEN else blake2b(token.encode("utf-8", "surrogatepass")).hexdigest()
