"""What becomes of replaced records when the records that replaced them are deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from memstory_reference.systems.layers.operations.dedup import share_a_slot
from memstory_reference.systems.layers.records.record import MemoryRecord, Standing


def records_to_release(
    replaced: Sequence[MemoryRecord], gone: Mapping[str, MemoryRecord], now: datetime
) -> list[MemoryRecord]:
    """Return the records of `replaced` that change when those of `gone` are deleted, newest first.

    A record goes back to what it was replaced by in the end: to another that is left; else it is active again, or
    archived if its successor was. Of several values of one property only the newest is active again.
    """
    changed: list[MemoryRecord] = []
    newest_first = sorted(replaced, key=lambda row: (row.created_at, row.id), reverse=True)
    for record in newest_first:
        last = gone.get(record.superseded_by or "")
        if last is None or record.id in gone:
            continue
        while (further := gone.get(last.superseded_by or "")) is not None:
            last = further
        if last.superseded_by is not None:
            changed.append(replace(record, superseded_by=last.superseded_by, updated_at=now))
            continue
        newer = next((one for one in changed if _is_newer_value(one, record)), None)
        if newer is not None:
            changed.append(replace(record, superseded_by=newer.id, updated_at=now))
        else:
            standing = Standing.ARCHIVED if last.standing is Standing.ARCHIVED else Standing.ACTIVE
            changed.append(replace(record, standing=standing, superseded_by=None, updated_at=now))
    return changed


def _is_newer_value(one: MemoryRecord, record: MemoryRecord) -> bool:
    return one.standing is not Standing.SUPERSEDED and share_a_slot(one.content, record.content)
