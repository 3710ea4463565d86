"""Records of the layers as rows, as `memory_rows` has those of the topics memory."""

from __future__ import annotations

from memstory_reference.commands.memory_rows import Row
from memstory_reference.systems.layers.identity import iso_now
from memstory_reference.systems.layers.recall.retrieval import Ranked
from memstory_reference.systems.layers.records.entries import entry_of, format_working_memory_entries
from memstory_reference.systems.layers.records.record import MemoryRecord, Standing


def row_of_record(record: MemoryRecord) -> Row:
    """Return a record as JSON; `kind` is its layer, the text is the line that a prompt would have."""
    metadata = {"count": record.count, "standing": str(record.standing)}
    return {
        "owner": record.owner,
        "kind": str(record.layer),
        "id": record.id,
        "topic": None,
        "text": _text(record),
        "created_at": iso_now(record.created_at),
        "metadata": metadata if record.superseded_by is None else {**metadata, "superseded_by": record.superseded_by},
    }


def row_of_ranked(found: Ranked) -> Row:
    """Return a record that was found, with its score."""
    return {**row_of_record(found.record), "score": round(found.score, 6)}


def _text(record: MemoryRecord) -> str:
    line = format_working_memory_entries([entry_of(record)])
    return line if record.standing is Standing.ACTIVE else f"({record.standing}) {line}"
